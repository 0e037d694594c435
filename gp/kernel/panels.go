package kernel

import (
	"sync"

	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

// function returns k as a function of package panel, if it has one, and the unit of r². The unit
// is the square of a single length scale, unless the weights include the scales.
func (k *Base) function(d int) (f panel.Function, unit float64, ok bool) {
	if k.phi.vector == nil {
		return f, 0, false
	}
	f.Statistic = [...]simd.Statistic{simd.Squared, simd.Manhattan, simd.Dot, simd.Mismatches}[k.st.kind]
	w := 1.0
	switch {
	case len(k.st.weights) == 1 && !k.st.norms:
		w = k.st.weights[0]
	case k.st.kind == mismatches:
		return f, 0, false
	default:
		f.Weights = make([]float64, d)
		for c := range f.Weights {
			f.Weights[c] = k.st.weights[c%len(k.st.weights)]
		}
	}
	k.phi.vector(&f, w)
	return f, 1 / w, true
}

// panelPrepared evaluates dense rows with the vector kernels, and others in another way.
type panelPrepared struct {
	other Prepared
	f     panel.Function
	unit  float64 // of r² in the statistic
	y     panel.Rows[float64]

	columns func() *panel.Columns[float64] // packed when first needed
}

func newPanelPrepared(other Prepared, f panel.Function, unit float64, y panel.Rows[float64]) *panelPrepared {
	columns := sync.OnceValue(func() *panel.Columns[float64] { return panel.Pack[float64](f, y) })
	return &panelPrepared{other, f, unit, y, columns}
}

// scaled returns factor·p. other does the same for rows that are not dense.
func (p *panelPrepared) scaled(factor float64, other Prepared) *panelPrepared {
	f := p.f
	if f.Factor != 0 {
		factor *= f.Factor
	}
	f.Factor = factor
	return newPanelPrepared(other, f, p.unit, p.y)
}

func (p *panelPrepared) Fill(dst []float64, ld int, x Rows, i0, i1 int, s *Scratch) {
	columns := p.columns()
	height := columns.Height()
	s.block.Reset(columns, height)
	for i := i0; i < i1; i += height {
		end := min(i+height, i1)
		if !evaluate(&s.block, x, i, end, nil, nil) {
			p.other.Fill(dst, ld, x, i0, i1, s)
			return
		}
		s.block.Copy(dst[(i-i0)*ld:], ld)
	}
}

// evaluate sets the block to rows of x, and t = K·v if v is not nil. It returns
// false if the rows are not dense.
func evaluate[T Float](b *panel.Block[T], x Rows, i0, i1 int, v *panel.Vectors[T], t []float64) bool {
	switch x := x.(type) {
	case *Points[float64]:
		panel.Evaluate(b, x.packed(), i0, i1, v, t)
	case *Points[float32]:
		panel.Evaluate(b, x.packed(), i0, i1, v, t)
	default:
		return false
	}
	return true
}

// panels are the centres of an operator in panels of one type of number.
type panels struct {
	height  int                      // rows of K at a time
	set     func(v []float64, c int) // packs v, M×c, for products from the right
	newTile func() *panelTile        // the memory of one worker
}

// panelTile is a block of rows of K, and the sum Kᵀt of one task.
type panelTile struct {
	begin func(c int) // a task with c right-hand sides
	// evaluate sets the block to rows of x, and t = K·v if t is not nil. It
	// returns false if the rows are not dense.
	evaluate      func(x Rows, i0, i1 int, t []float64) bool
	addTransposed func(t []float64) // adds Kᵀt to the sum
	addTo         func(w []float64) // adds the sum to w, M×c
}

// newPanels returns p with the options applied, and its precision.
func newPanels(p *panelPrepared, opts Options) (*panels, Precision) {
	if opts.Precision == Float32 && p.f.Statistic != simd.Mismatches {
		return packPanels[float32](p.expand(opts.Distances, reach32), p.y), Float32
	}
	return packPanels[float64](p.expand(opts.Distances, reach64), p.y), Float64
}

func packPanels[T Float](f panel.Function, y panel.Rows[float64]) *panels {
	columns, v := panel.Pack[T](f, y), new(panel.Vectors[T])
	p := &panels{height: columns.Height(), set: func(w []float64, c int) { v.Set(columns, w, c) }}
	p.newTile = func() *panelTile {
		block, sum := panel.NewBlock(columns, p.height), new(panel.Sum[T])
		return &panelTile{
			begin: func(c int) { sum.Reset(columns, c) },
			evaluate: func(x Rows, i0, i1 int, t []float64) bool {
				if t == nil {
					return evaluate(block, x, i0, i1, nil, nil)
				}
				return evaluate(block, x, i0, i1, v, t)
			},
			addTransposed: func(t []float64) { block.AddTransposed(sum, t) },
			addTo:         sum.AddTo,
		}
	}
	return p
}
