package data

import (
	"fmt"
	"math"
)

// Spline is the problem of Pillaud-Vivien, Rudi and Bach, Statistical optimality of
// stochastic gradient descent on hard learning problems through multiple passes (2018),
// section 5. With x uniform on [0, 1) it is y = f(x) + Sigma·N(0,1) with
//
//	Λ_q(x, z) = Σ_{k≥1} 2 cos(2πk(x−z))/k^q,   f = Λ_{R·Alpha+1/2}(·, 0),
//
// for learners with the kernel Λ_Alpha. Alpha > 1 is the decay of its eigenvalues, R > 0
// the smoothness of f. The sum f is cut off after Terms cosines.
//
// In the basis √2 cos 2πkx, √2 sin 2πkx all is diagonal, so that the excess risk of a
// function is known without test data. See [Spline.ExcessRisk].
type Spline struct {
	Alpha, R, Sigma float64
	Terms           int // 0 means 1000
	Seed            uint64
}

// Check requires Alpha > 1, R > 0, Sigma ≥ 0, all finite, and Terms ≥ 0.
func (p Spline) Check() error {
	if !(p.Alpha > 1 && p.R > 0 && p.Sigma >= 0 && p.Alpha+p.R+p.Sigma <= math.MaxFloat64) || p.Terms < 0 {
		return fmt.Errorf("data: spline problem %+v; want Alpha > 1, R > 0, Sigma ≥ 0, Terms ≥ 0", p)
	}
	return nil
}

// Dim returns 1.
func (Spline) Dim() int { return 1 }

func (p Spline) terms() int {
	if p.Terms == 0 {
		return 1000
	}
	return p.Terms
}

// Order returns R·Alpha + ½, the order of the target function.
func (p Spline) Order() float64 { return p.R*p.Alpha + 0.5 }

// Value returns f(x).
func (p Spline) Value(x float64) float64 { return cosines(p.coefficients(), x) }

// coefficients returns 2/k^Order for k = 1 … Terms.
func (p Spline) coefficients() []float64 {
	c := make([]float64, p.terms())
	for k := range c {
		c[k] = 2 * math.Pow(float64(k+1), -p.Order())
	}
	return c
}

// cosines returns Σ_k c_k cos(2πkx), k = 1 … len(c), by Clenshaw's recurrence.
func cosines(c []float64, x float64) float64 {
	cos := math.Cos(2 * math.Pi * x)
	b1, b2 := 0.0, 0.0
	for k := len(c) - 1; k >= 0; k-- {
		b1, b2 = c[k]+2*cos*b1-b2, b1
	}
	return cos*b1 - b2
}

// ExcessRisk returns ½·E(g(x) − f(x))² for g = Σ_i a_i Λ_Alpha(x_i, ·), which is the form
// of a learner with the kernel Λ_Alpha. With the complex coefficients of g and f, ĝ_k =
// |k|^−Alpha Σ_i a_i e^{−2πikx_i} and f̂_k = |k|^−Order, it is ½ Σ_{k≠0} |ĝ_k − f̂_k|²,
// here for |k| ≤ Terms. The omitted part of g is at most
// ‖a‖₁²·Terms^{1−2·Alpha}/(2·Alpha−1). The cost is O(n·Terms).
func (p Spline) ExcessRisk(x, a []float64) float64 {
	K := p.terms()
	re, im := make([]float64, K), make([]float64, K)
	for i, w := range a {
		sin, cos := math.Sincos(2 * math.Pi * x[i])
		c, s := 1.0, 0.0
		for k := range K {
			if k%64 == 0 { // limits the growth of rounding errors
				s, c = math.Sincos(2 * math.Pi * math.Mod(float64(k)*x[i], 1))
			}
			c, s = c*cos-s*sin, s*cos+c*sin
			re[k] += w * c
			im[k] -= w * s
		}
	}
	risk := 0.0
	for k := range K {
		kernel := math.Pow(float64(k+1), -p.Alpha)
		d := re[k]*kernel - math.Pow(float64(k+1), -p.Order())
		risk += d*d + im[k]*kernel*im[k]*kernel // k and −k, times ½
	}
	return risk
}

// Sampler returns a sampler.
func (p Spline) Sampler() Sampler {
	return &splineSampler{p, newRNG(p.Seed, "spline"), p.coefficients()}
}

type splineSampler struct {
	p            Spline
	g            *rng
	coefficients []float64
}

func (s *splineSampler) At(i uint64, x []float64) float64 {
	r := s.g.row(i)
	x[0] = r.Float64()
	return cosines(s.coefficients, x[0]) + s.p.Sigma*r.NormFloat64()
}
