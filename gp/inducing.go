package gp

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// Approximation says how a sparse posterior treats k − q, the part of the
// kernel that its inducing points do not see, with q = zᵀz'.
type Approximation int

const (
	// DTC keeps it in the variance of predictions and leaves it out of the
	// likelihood: the deterministic training conditional, thesis (7.1). Far
	// from the inducing points the prior variance comes back.
	DTC Approximation = iota
	// SoR leaves it out everywhere: the subset of regressors. Its variance
	// starves far from the inducing points; it is here to be compared with.
	SoR
	// FITC keeps it in the variance and counts it as noise of the
	// observations: point i has noise res_i + ξ²/n_i. It does not grow
	// overconfident with too few inducing points.
	FITC
)

func (a Approximation) String() string {
	switch a {
	case DTC:
		return "DTC"
	case SoR:
		return "SoR"
	case FITC:
		return "FITC"
	}
	return "unknown"
}

// weight returns the weight W of a point in V = Σ_i W_i z_i z_iᵀ + λI: λ over
// the variance of ȳ_i given z_i. For DTC without noise of its own it is the
// count n.
func (a Approximation) weight(lambda, count, extra, res float64) float64 {
	if count <= 0 {
		return 0
	}
	v := lambda/count + extra
	if a == FITC {
		v += res
	}
	return lambda / v
}

// system is the regression on z: V = LLᵀ and w = V⁻¹ Σ_i W_i r_i z_i.
type system struct {
	l *Cholesky
	w []float64
}

// solveSystem factors V and solves for w by QR of the rows √W_i (z_i, r_i) and
// (√λ I, 0), so that V is never formed and no condition number squared, over
// points i in the given order; those without weight are skipped. Cost 2um² for
// u points. resid may be nil.
func solveSystem(z, resid []float64, weight func(i int) float64, order []int, m int, lambda float64) system {
	cols := m + 1
	a := make([]float64, 0, (len(order)+m)*cols)
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
		a = append(a, last)
	}
	top := len(a) / cols
	a = append(a, make([]float64, m*cols)...)
	for j := range m {
		a[(top+j)*cols+j] = math.Sqrt(lambda)
	}
	return triangularise(a, top+m, m)
}

// triangularise reads the system off the QR factor of a, rows×(m+1).
func triangularise(a []float64, rows, m int) system {
	s := system{l: &Cholesky{n: m, stride: m, data: make([]float64, m*m)}, w: make([]float64, m)}
	if m == 0 {
		return s
	}
	cols := m + 1
	g := blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: a}
	tau := make([]float64, min(rows, cols))
	work := make([]float64, 1)
	lapack64.Geqrf(g, tau, work, -1)
	work = make([]float64, int(work[0]))
	lapack64.Geqrf(g, tau, work, len(work))
	for i := range m {
		sign := math.Copysign(1, a[i*cols+i])
		for j := i; j < m; j++ {
			s.l.data[j*m+i] = sign * a[i*cols+j]
		}
		s.w[i] = sign * a[i*cols+m]
	}
	s.l.SolveLT(s.w)
	return s
}
