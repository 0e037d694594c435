package sketch

import (
	"math"
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

// wave is the function that a dense map applies to projections s = Wx.
type wave int

const (
	pairs   wave = iota // cos s_0, sin s_0, cos s_1, …
	cosines             // cos(s_j + phase_j)
	rectify             // max(s_j, 0)
	plain               // s_j
)

// dense is a map that stores its frequencies, φ = factor·wave(Wx), where W is rows×d. Dense
// inputs go through panels, in which cosines and sines are cos 2πt for t = Wx/2π and t − 1/4.
type dense struct {
	target
	wave   wave
	factor float64
	wt     []float64 // Wᵀ, d×rows
	rows   int
	phase  []float64 // of cosines, in radians

	columns *panel.Columns[float64]
	blocks  sync.Pool // of *panel.Block[float64]
}

// newDense draws W row by row.
func newDense(t target, rows int) *dense {
	m := &dense{target: t, rows: rows, wt: make([]float64, t.Dim()*rows)}
	w := make([]float64, t.Dim())
	for j := range rows {
		m.frequency(w, m.rng(j))
		m.setRow(j, w)
	}
	return m
}

func (m *dense) setRow(j int, w []float64) {
	for c, v := range w {
		m.wt[c*m.rows+j] = v
	}
}

// finish sets the wave and the factor, after which the map is ready.
func (m *dense) finish(w wave, factor float64) *dense {
	m.wave, m.factor = w, factor
	f := panel.Function{Statistic: simd.Dot, Func: simd.Affine, P0: 1, Factor: factor}
	unit, copies := 1.0, 1
	switch w {
	case pairs:
		f.Func, f.Phase = simd.CosTurns, make([]float64, m.Features())
		unit, copies = 0.5/math.Pi, 2
		for j := 1; j < len(f.Phase); j += 2 {
			f.Phase[j] = -0.25
		}
	case cosines:
		f.Func, f.Phase = simd.CosTurns, make([]float64, m.Features())
		unit = 0.5 / math.Pi
		for j, p := range m.phase {
			f.Phase[j] = p * unit
		}
	}
	d, y := m.Dim(), make([]float64, m.Features()*m.Dim())
	for j := range m.Features() {
		for c := range d {
			y[j*d+c] = m.wt[c*m.rows+j/copies] * unit
		}
	}
	m.columns = panel.Pack[float64](f, panel.Rows[float64]{Data: y, N: m.Features(), D: d})
	m.blocks.New = func() any { return panel.NewBlock(m.columns, m.columns.Height()) }
	return m
}

// Apply computes the features in O(n·M·d), or O(M) per stored element of sparse rows.
func (m *dense) Apply(dst []float64, x kernel.Rows) error {
	if err := m.checkApply(dst, x); err != nil {
		return err
	}
	switch x := x.(type) {
	case *kernel.Points[float64]:
		evaluate(m, dst, x)
	case *kernel.Points[float32]:
		evaluate(m, dst, x)
	default:
		v, s := make([]float64, m.Dim()), make([]float64, m.rows)
		for i := range x.Len() {
			kernel.CopyRow(v, x, i)
			m.project(s, v)
			m.apply(dst[i*m.Features():][:m.Features()], s)
		}
	}
	return nil
}

// evaluate computes features in panels and writes them out. For products see [FeatureOperator].
func evaluate[T kernel.Float](m *dense, dst []float64, x *kernel.Points[T]) {
	rows := panel.Rows[T]{Data: x.Data(), N: x.Len(), D: x.Dim()}
	block := m.blocks.Get().(*panel.Block[float64])
	defer m.blocks.Put(block)
	height, width := m.columns.Height(), m.Features()
	for i := 0; i < x.Len(); i += height {
		end := min(i+height, x.Len())
		panel.Evaluate(block, rows, i, end, nil, nil)
		to := dst[i*width : end*width]
		block.Copy(to, width)
		if m.wave == rectify {
			for j, v := range to {
				to[j] = max(v, 0)
			}
		}
	}
}

// project sets s = Wv, in the order of the coordinates.
func (m *dense) project(s, v []float64) {
	clear(s)
	for c, a := range v {
		if a == 0 {
			continue
		}
		for j, w := range m.wt[c*m.rows:][:len(s)] {
			s[j] += a * w
		}
	}
}

// apply writes the features of one input with the projections s.
func (m *dense) apply(dst, s []float64) {
	switch m.wave {
	case pairs:
		writePairs(dst, s, m.factor)
	case cosines:
		for j, v := range s {
			dst[j] = m.factor * math.Cos(v+m.phase[j])
		}
	case rectify:
		for j, v := range s {
			dst[j] = m.factor * max(v, 0)
		}
	default:
		for j, v := range s {
			dst[j] = m.factor * v
		}
	}
}

// writePairs writes scale·(cos s_0, sin s_0, cos s_1, …).
func writePairs(dst, s []float64, scale float64) {
	for j, v := range s {
		sin, cos := math.Sincos(v)
		dst[2*j], dst[2*j+1] = scale*cos, scale*sin
	}
}
