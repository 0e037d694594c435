package gp

import (
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/bkbtuner/bkb/internal/blocked"
)

// Approximation says how a sparse posterior treats k − q, the part of the kernel
// outside the span of its inducing points, with q = zᵀz'.
type Approximation int

const (
	// DTC, the deterministic training conditional, keeps it in the variance of predictions and
	// leaves it out of the likelihood.
	DTC Approximation = iota
	// SoR, the subset of regressors, leaves it out everywhere, so that its variance starves
	// far from the inducing points. It is here for comparison.
	SoR
	// FITC keeps it in the variance and counts it once for each input as noise of the
	// observations, so that too few inducing points do not make it overconfident.
	FITC
)

// system is the regression on z with V = LLᵀ and w = V⁻¹ Σ_i W_i r_i z_i.
type system struct {
	l *cholesky
	w []float64
}

// solveSystem factors V and solves for w by QR of the rows √W_i (z_i, r_i) and (√λ I,
// 0), so that no condition number is squared. It takes points i in the given order and
// skips those without weight. It costs 4um² operations for u points. resid may be nil.
func solveSystem(z, resid []float64, weight func(i int) float64, order []int, m int, lambda float64) system {
	if m == 0 {
		return system{&cholesky{}, nil}
	}
	a, b := make([]float64, 0, (len(order)+m)*m), make([]float64, 0, len(order))
	for _, i := range order {
		w := weight(i)
		if w <= 0 {
			continue
		}
		root := math.Sqrt(w)
		for _, v := range z[i*m : (i+1)*m] {
			a = append(a, root*v)
		}
		last := 0.0
		if resid != nil {
			last = root * resid[i]
		}
		b = append(b, last)
	}
	top := len(b)
	a = append(a, make([]float64, m*m)...)
	for j := range m {
		a[(top+j)*m+j] = math.Sqrt(lambda)
	}
	if s, ok := choleskyQR(a, b, m, lambda); ok {
		return s
	}
	return householder(a, b, m)
}

// squareable is the largest condition number of AᵀA for choleskyQR.
const squareable = 1e11

// choleskyQR is A = QLᵀ by two Cholesky factorisations, with all products in blocks
// (CholeskyQR2, Yamamoto et al. 2015).
//
//	AᵀA = L₁L₁ᵀ,  A₁ = AL₁⁻ᵀ,  A₁ᵀA₁ = L₂L₂ᵀ,  L = L₁L₂,  w = L⁻ᵀL₂⁻¹A₁ᵀb.
//
// The second recovers the loss of the first by squaring, as long as AᵀA is not singular
// in working precision. It reports false where that is in doubt, with tr AᵀA/λ as the
// bound of its condition number.
func choleskyQR(a, b []float64, m int, lambda float64) (system, bool) {
	rows, workers := len(a)/m, runtime.GOMAXPROCS(0)
	first := blocked.New[float64](m, m, nil)
	blocked.Syrk(workers, true, blocked.New(rows, m, a), 1, 0, first)
	trace := 0.0
	for i := range m {
		trace += first.Data[i*m+i]
	}
	if !(trace < squareable*lambda) || blocked.Cholesky(workers, first) < m {
		return system{}, false
	}
	q := blocked.New(rows, m, slices.Clone(a))
	blocked.SolveLowerRight(workers, true, first, q)
	second := blocked.New[float64](m, m, nil)
	blocked.Syrk(workers, true, q, 1, 0, second)
	if blocked.Cholesky(workers, second) < m {
		return system{}, false
	}
	s := system{l: &cholesky{n: m, stride: m, data: make([]float64, m*m)}, w: make([]float64, m)}
	clearUpper(first.Data, m)
	clearUpper(second.Data, m)
	blocked.Gemm(workers, false, first, false, second, 1, 0, s.l.matrix())
	for i, v := range b {
		axpy(v, q.Data[i*m:(i+1)*m], s.w)
	}
	(&cholesky{n: m, stride: m, data: second.Data}).solveL(s.w)
	s.l.solveLT(s.w)
	return s, true
}

func clearUpper(a []float64, n int) {
	for i := range n {
		clear(a[i*n+i+1 : (i+1)*n])
	}
}

// householder is the same for any condition number, and slower.
func householder(a, b []float64, m int) system {
	rows, cols := len(a)/m, m+1
	wide := make([]float64, rows*cols)
	for i := range rows {
		copy(wide[i*cols:], a[i*m:(i+1)*m])
		if i < len(b) {
			wide[i*cols+m] = b[i]
		}
	}
	g := blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: wide}
	tau := make([]float64, min(rows, cols))
	work := make([]float64, 1)
	lapack64.Geqrf(g, tau, work, -1)
	work = make([]float64, int(work[0]))
	lapack64.Geqrf(g, tau, work, len(work))
	s := system{l: &cholesky{n: m, stride: m, data: make([]float64, m*m)}, w: make([]float64, m)}
	for i := range m {
		sign := math.Copysign(1, wide[i*cols+i])
		for j := i; j < m; j++ {
			s.l.data[j*m+i] = sign * wide[i*cols+j]
		}
		s.w[i] = sign * wide[i*cols+m]
	}
	s.l.solveLT(s.w)
	return s
}
