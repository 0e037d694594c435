package gp

import (
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Mean is the prior mean of a process: zero, a constant, or affine in the
// input. Its coefficients are given, or fitted by generalised least squares,
//
//	β̂ = (HᵀA⁻¹H)⁻¹HᵀA⁻¹y,  A = K + noise,
//
// the maximum of the marginal likelihood over β; predictions then take β̂ for
// true. The zero Mean is the mean zero.
type Mean struct {
	basis  meanBasis
	coef   []float64
	fitted bool
}

type meanBasis int

const (
	basisNone meanBasis = iota
	basisConstant
	basisLinear
)

// ConstantMean is the prior mean c.
func ConstantMean(c float64) Mean { return Mean{basis: basisConstant, coef: []float64{c}} }

// FittedConstant is a constant prior mean, fitted.
func FittedConstant() Mean { return Mean{basis: basisConstant, fitted: true} }

// LinearMean is the prior mean intercept + Σ_c slopes_c x_c, for dense rows.
func LinearMean(intercept float64, slopes ...float64) Mean {
	return Mean{basis: basisLinear, coef: append([]float64{intercept}, slopes...)}
}

// FittedLinear is an affine prior mean, fitted, for dense rows. With fewer
// points than coefficients, the coefficients are about the smallest that fit.
func FittedLinear() Mean { return Mean{basis: basisLinear, fitted: true} }

// check verifies that the mean is finite and can read x.
func (m Mean) check(x kernel.Rows) error {
	for i, c := range m.coef {
		if !isFinite(c) {
			return valueError("coefficient of the mean", i, c, "finite")
		}
	}
	if m.basis != basisLinear || x == nil {
		return nil
	}
	if _, ok := denseRow(x); !ok {
		return fmt.Errorf("gp: a linear mean cannot read %T, want dense points", x)
	}
	if !m.fitted && len(m.coef) != x.Dim()+1 {
		return shapeError("coefficients of the mean", len(m.coef), x.Dim()+1)
	}
	return nil
}

// denseRow returns a reader of the rows of dense points: it fills dst.
func denseRow(x kernel.Rows) (read func(i int, dst []float64), ok bool) {
	switch p := x.(type) {
	case interface{ Row(int) []float64 }:
		return func(i int, dst []float64) { copy(dst, p.Row(i)) }, true
	case interface{ Row(int) []float32 }:
		return func(i int, dst []float64) {
			for c, v := range p.Row(i) {
				dst[c] = float64(v)
			}
		}, true
	}
	return nil, false
}

// features returns H, n×p row-major.
func (m Mean) features(x kernel.Rows) (h []float64, p int) {
	n := x.Len()
	switch m.basis {
	case basisNone:
		return nil, 0
	case basisConstant:
		h = make([]float64, n)
		for i := range h {
			h[i] = 1
		}
		return h, 1
	}
	read, _ := denseRow(x)
	p = x.Dim() + 1
	h = make([]float64, n*p)
	for i := range n {
		h[i*p] = 1
		read(i, h[i*p+1:(i+1)*p])
	}
	return h, p
}

// with is the mean with the coefficients given.
func (m Mean) with(beta []float64) Mean { return Mean{basis: m.basis, coef: beta} }

// at returns the mean at every row; the coefficients must be given.
func (m Mean) at(x kernel.Rows) []float64 {
	out := make([]float64, x.Len())
	if m.basis == basisConstant && len(m.coef) == 1 {
		for i := range out {
			out[i] = m.coef[0]
		}
		return out
	}
	h, p := m.features(x)
	for i := range out {
		for j := range min(p, len(m.coef)) {
			out[i] += h[i*p+j] * m.coef[j]
		}
	}
	return out
}

// addGrad adds the gradient of the mean to dst.
func (m Mean) addGrad(dst []float64) {
	if m.basis == basisLinear && len(m.coef) > 0 {
		for c := range dst {
			dst[c] += m.coef[c+1]
		}
	}
}

// leastSquares returns β̂ for targets y, given A = LLᵀ.
func (m Mean) leastSquares(x kernel.Rows, y []float64, l *Cholesky) []float64 {
	n := len(y)
	h, p := m.features(x)
	if n == 0 || p == 0 {
		return make([]float64, p)
	}
	ht := make([]float64, p*n) // rows: L⁻¹h_j
	for i := range n {
		for j := range p {
			ht[j*n+i] = h[i*p+j]
		}
	}
	l.solveRowsL(ht, p)
	ry := append([]float64(nil), y...)
	l.SolveL(ry)
	return normalEquations(ht, ry, p)
}

// normalEquations solves min_β ‖Σ_j β_j h_j − y‖² for the p rows h_j of ht,
// with a little ridge, relative to each h_j, where they are collinear.
func normalEquations(ht, y []float64, p int) []float64 {
	n := len(y)
	a, beta, scale := make([]float64, p*p), make([]float64, p), make([]float64, p)
	for j := range p {
		scale[j] = norm(ht[j*n : (j+1)*n])
		if scale[j] == 0 {
			scale[j] = 1
		}
		beta[j] = dot(ht[j*n:(j+1)*n], y) / scale[j]
		for k := range j + 1 {
			a[j*p+k] = dot(ht[j*n:(j+1)*n], ht[k*n:(k+1)*n]) / scale[j] / scale[k]
		}
		if a[j*p+j] == 0 {
			a[j*p+j] = 1
		}
	}
	l, _, err := NewCholesky("HᵀA⁻¹H", a, p)
	if err != nil { // a Gramian: only overflow brings us here
		return make([]float64, p)
	}
	l.Solve(beta)
	for j := range beta {
		beta[j] /= scale[j]
	}
	return beta
}
