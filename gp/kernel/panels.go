package kernel

import (
	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

// vectorProfile is a profile that package simd has a function for.
type vectorProfile interface {
	// vector sets what it is as a function of the statistic times w.
	vector(f *panel.Function, w float64)
}

func (gaussian) vector(f *panel.Function, w float64)    { f.Func, f.P0 = simd.ExpScaled, -w/2 }
func (exponential) vector(f *panel.Function, w float64) { f.Func, f.P0 = simd.ExpScaled, -w }
func (matern12) vector(f *panel.Function, w float64)    { f.Func, f.P0 = simd.Matern12, w }
func (matern32) vector(f *panel.Function, w float64)    { f.Func, f.P0 = simd.Matern32, 3*w }
func (matern52) vector(f *panel.Function, w float64)    { f.Func, f.P0 = simd.Matern52, 5*w }
func (linear) vector(f *panel.Function, w float64)      { f.Func, f.P0 = simd.Affine, w }

func (o overlap) vector(f *panel.Function, w float64) {
	f.Func, f.P0, f.P1 = simd.Affine, -w/o.d, 1
}

func (q rationalQuadratic) vector(f *panel.Function, w float64) {
	f.Func, f.P0, f.P1 = simd.RationalQuadratic, w/(2*q.alpha), -q.alpha
}

func (p polynomial) vector(f *panel.Function, w float64) {
	f.Func, f.P0, f.P1, f.Power = simd.Power, w, p.offset, p.degree
}

func (arcCosine) vector(f *panel.Function, _ float64) { f.Func, f.Norms = simd.ArcCosine, true }

// function returns k as package panel knows it, if it does.
func (k *Base) function(d int) (f panel.Function, ok bool) {
	phi, ok := k.phi.(vectorProfile)
	if !ok {
		return f, false
	}
	f.Statistic = map[StatisticKind]simd.Statistic{
		SquaredDistance: simd.Squared, Manhattan: simd.Manhattan,
		InnerProduct: simd.Dot, Mismatches: simd.Mismatches,
	}[k.st.Kind]
	w := 1.0
	switch {
	case len(k.st.Weights) == 1 && !k.st.Norms:
		w = k.st.Weights[0]
	case k.st.Kind == Mismatches:
		return f, false
	default:
		f.Weights = make([]float64, d)
		for c := range f.Weights {
			f.Weights[c] = k.st.Weights[c%len(k.st.Weights)]
		}
	}
	phi.vector(&f, w)
	return f, true
}

// panelPrepared evaluates dense rows with the vector kernels, and others like
// the densePrepared in it.
type panelPrepared struct {
	densePrepared
	columns *panel.Columns[float64]
}

// preparePanels returns p with packed columns if k is a kernel for them.
func preparePanels(k Elementwise, p *densePrepared) Prepared {
	base, ok := k.(*Base)
	if !ok {
		return p
	}
	f, ok := base.function(p.d)
	if !ok {
		return p
	}
	return &panelPrepared{*p, panel.Pack[float64](f, panel.Rows[float64]{Data: p.y, N: p.m, D: p.d, Stride: p.d})}
}

func (p *panelPrepared) Fill(dst []float64, ld int, x Rows, i0, i1 int, s *Scratch) {
	height := p.columns.Height()
	s.block.Reset(p.columns, height)
	for i := i0; i < i1; i += height {
		end := min(i+height, i1)
		if !p.evaluate(&s.block, x, i, end, nil, nil) {
			p.densePrepared.Fill(dst, ld, x, i0, i1, s)
			return
		}
		s.block.Copy(dst[(i-i0)*ld:], ld)
	}
}

// evaluate sets the block to rows of x, and t = K·v if v is not nil. It returns
// false if the rows are not dense.
func (p *panelPrepared) evaluate(b *panel.Block[float64], x Rows, i0, i1 int, v *panel.Vectors[float64], t []float64) bool {
	switch x := x.(type) {
	case *Points[float64]:
		panel.Evaluate(b, panel.Rows[float64]{Data: x.data, N: x.n, D: x.d, Stride: x.stride}, i0, i1, v, t)
	case *Points[float32]:
		panel.Evaluate(b, panel.Rows[float32]{Data: x.data, N: x.n, D: x.d, Stride: x.stride}, i0, i1, v, t)
	default:
		return false
	}
	return true
}
