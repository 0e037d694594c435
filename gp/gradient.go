package gp

import (
	"errors"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Slope is a prediction with its gradient with respect to the input.
type Slope struct {
	Mean, SD     float64
	MeanGradient []float64 // ∂μ/∂x, length d
	SDGradient   []float64 // ∂σ/∂x, length d, or 0 where σ is at its floor
}

// ErrNotDifferentiable says that a kernel has no gradient with respect to the input.
var ErrNotDifferentiable = errors.New("gp: the kernel has no gradient with respect to inputs")

// PredictSlope returns the prediction at row i of x with its gradient. It costs
// O(n² + nd). Its errors are those of [Exact.Predict], and [ErrNotDifferentiable].
func (g *Exact) PredictSlope(x kernel.Rows, i int) (Slope, error) {
	dk, one, err := slopeQuery(g.checkQuery, g.k, x, i)
	if err != nil {
		return Slope{}, err
	}
	a, known := g.ahead(), g.obs.len()
	n := a.obs.len()
	kx := make([]float64, n)
	if err := a.cross(kx, one, 0, 1, new(kernel.Scratch)); err != nil {
		return Slope{}, err
	}
	mean, alpha := g.opts.Mean, make([]float64, n)
	copy(alpha, g.alpha)
	if known > 0 {
		mean += dot(kx[:known], g.alpha)
	}
	a.chol.SolveL(kx)
	prior := g.k.Diag(one, 0)
	variance, err := clampVariance("posterior variance", i, prior-square(kx), prior)
	if err != nil {
		return Slope{}, err
	}
	a.chol.SolveLT(kx)
	return slope(dk, one, a.obs.x, mean, variance, prior, 1, alpha, kx), nil
}

// slopeQuery verifies the arguments of PredictSlope.
func slopeQuery(check func(kernel.Rows) error, k kernel.Kernel, x kernel.Rows, i int) (kernel.Differentiable, kernel.Rows, error) {
	dk, ok := kernel.AsDifferentiable(k)
	if !ok {
		return nil, nil, ErrNotDifferentiable
	}
	if x == nil || i < 0 || i >= x.Len() {
		return nil, nil, fmt.Errorf("gp: row %d of x: out of range", i)
	}
	one := x.Slice(i, i+1)
	return dk, one, check(one)
}

// slope returns the gradients of
//
//	μ(x) = m + k(x)ᵀα,  σ²(x) = own·k(x, x) − k(x)ᵀM k(x),  b = M k(x),
//
// where k(x) are the values at the rows of centers,
//
//	∇μ = Jᵀα,  ∇σ = (½ own ∇k(x, x) − Jᵀb)/σ.
func slope(k kernel.Differentiable, x, centers kernel.Rows, mean, variance, prior, own float64, alpha, b []float64) Slope {
	d := x.Dim()
	s := Slope{
		Mean: mean, SD: math.Sqrt(variance),
		MeanGradient: make([]float64, d), SDGradient: make([]float64, d),
	}
	for j := range alpha {
		k.AddInputGrad(s.MeanGradient, alpha[j], x, 0, centers, j)
	}
	if variance <= varianceFloor*prior {
		return s
	}
	// d k(x, x)/dx is twice the gradient in the first input.
	k.AddInputGrad(s.SDGradient, own, x, 0, x, 0)
	for j := range b {
		k.AddInputGrad(s.SDGradient, -b[j], x, 0, centers, j)
	}
	for c := range s.SDGradient {
		s.SDGradient[c] /= s.SD
	}
	return s
}
