package sketch

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// dense is a map that holds its frequencies: ψ = f(Wx), W of rows×d.
type dense struct {
	target
	wt   []float64 // Wᵀ, d×rows
	rows int
	// finish writes the M features of one input, of projections s = Wx.
	finish func(dst, s []float64)
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

// Apply computes the features in O(n·M·d), or O(M) per stored element of sparse
// rows.
func (m *dense) Apply(dst []float64, x kernel.Rows) error {
	read, err := m.checkApply(dst, x)
	if err != nil {
		return err
	}
	v, s := make([]float64, m.Dim()), make([]float64, m.rows)
	for i := range x.Len() {
		clear(v)
		read(v, i)
		m.project(s, v)
		m.finish(dst[i*m.Features():][:m.Features()], s)
	}
	return nil
}

// project sets s = Wv, in the order of the coordinates.
func (m *dense) project(s, v []float64) {
	clear(s)
	to := blas64.Vector{N: m.rows, Inc: 1, Data: s}
	for c, a := range v {
		if a != 0 {
			blas64.Axpy(a, blas64.Vector{N: m.rows, Inc: 1, Data: m.wt[c*m.rows:][:m.rows]}, to)
		}
	}
}

// pairs writes scale·(cos s_0, sin s_0, cos s_1, …).
func pairs(dst, s []float64, scale float64) {
	for j, v := range s {
		sin, cos := math.Sincos(v)
		dst[2*j], dst[2*j+1] = scale*cos, scale*sin
	}
}
