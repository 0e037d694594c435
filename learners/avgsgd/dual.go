package avgsgd

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// dual is the recursion in coefficients, where θ = Σ_i a_i k(x_i, ·) and a ∈ ℝⁿˣᶜ.
type dual struct {
	n, c int
	step float64 // γ
	t    int     // steps so far
	a, u []float64
	out  []float64 // f(x_i)
}

func newDual(n, c int, step float64) *dual {
	return &dual{n: n, c: c, step: step, a: make([]float64, n*c), u: make([]float64, n*c), out: make([]float64, c)}
}

// visit makes the step for row i with the values k = K[i, :] and targets y. It returns
// ‖f(x_i) − y‖² before the step. It costs O(nc).
func (d *dual) visit(i int, k, y []float64) (loss float64) {
	d.t++
	multiply(d.out, k, d.a, d.c)
	for j, f := range d.out {
		e := y[j] - f
		loss += e * e
		delta := d.step * e
		d.a[i*d.c+j] += delta
		d.u[i*d.c+j] += float64(d.t) * delta
	}
	return loss
}

// multiply sets out = wᵀx for x ∈ ℝᵐ, w ∈ ℝᵐˣᶜ.
func multiply(out, x, w []float64, c int) {
	if c == 1 {
		v := blas64.Vector{N: len(x), Inc: 1, Data: x}
		out[0] = blas64.Dot(v, blas64.Vector{N: len(x), Inc: 1, Data: w})
		return
	}
	blas64.Gemv(blas.Trans, 1, blas64.General{Rows: len(x), Cols: c, Stride: c, Data: w},
		blas64.Vector{N: len(x), Inc: 1, Data: x}, 0, blas64.Vector{N: c, Inc: 1, Data: out})
}

// average sets dst to θ̄_t, or to θ_t if last is set, from θ and υ.
func average(dst, theta, u []float64, t int, last bool) {
	copy(dst, theta)
	if last || t == 0 {
		return
	}
	for j, v := range theta {
		dst[j] = (float64(t+1)*v - u[j]) / float64(t)
	}
}
