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

// PredictSlope returns the prediction at row i of x with its gradient,
//
//	∇μ = Jᵀα,  ∇σ = (½∇k(x, x) − Jᵀ(K + Λ)⁻¹k(x))/σ,  J = ∂k(x)/∂x.
//
// It costs O(n² + nd). Its errors are those of [Exact.Predict], and
// [ErrNotDifferentiable].
func (g *Exact) PredictSlope(x kernel.Rows, i int) (Slope, error) {
	dk, ok := kernel.AsDifferentiable(g.k)
	if !ok {
		return Slope{}, ErrNotDifferentiable
	}
	if x == nil || i < 0 || i >= x.Len() {
		return Slope{}, fmt.Errorf("gp: row %d of x: out of range", i)
	}
	one := x.Slice(i, i+1)
	if err := g.checkQuery(one); err != nil {
		return Slope{}, err
	}
	a := g.ahead()
	kx := make([]float64, a.obs.len())
	if err := a.cross(kx, one, 0, 1, new(kernel.Scratch)); err != nil {
		return Slope{}, err
	}
	s := Slope{Mean: g.opts.Mean, MeanGradient: make([]float64, x.Dim()), SDGradient: make([]float64, x.Dim())}
	if g.obs.len() > 0 {
		s.Mean += dot(kx[:g.obs.len()], g.alpha)
	}
	for j, v := range g.alpha {
		dk.AddInputGrad(s.MeanGradient, v, one, 0, a.obs.x, j)
	}
	a.chol.solveL(kx)
	prior := g.k.Diag(one, 0)
	variance, err := clampVariance("posterior variance", i, prior-square(kx), prior)
	if err != nil {
		return Slope{}, err
	}
	if s.SD = math.Sqrt(variance); variance <= varianceFloor*prior {
		return s, nil
	}
	a.chol.solveLT(kx)
	dk.AddInputGrad(s.SDGradient, 1, one, 0, one, 0) // d k(x, x)/dx is twice this
	for j, v := range kx {
		dk.AddInputGrad(s.SDGradient, -v, one, 0, a.obs.x, j)
	}
	for c := range s.SDGradient {
		s.SDGradient[c] /= s.SD
	}
	return s, nil
}
