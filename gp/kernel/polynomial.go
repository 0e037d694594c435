package kernel

import (
	"math"

	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

var (
	linearFamily     = Family{Name: "linear", Points: true, build: withScales(NewLinear)}
	polynomialFamily = Family{
		Name: "polynomial", Points: true, Params: []string{"degree", "offset"},
		build: func(p *params, l []float64) (*Base, error) {
			return NewPolynomial(p.integer("degree"), p.number("offset"), l...)
		},
	}
)

// NewLinear returns k(x, y) = Σ_c x_c y_c/ℓ_c². It has no bound, so κ² = +Inf.
func NewLinear(lengthScales ...float64) (*Base, error) {
	return newBase("linear", innerProduct, lengthScales, profile{
		at:     func(s float64) float64 { return s },
		slope:  func(float64) float64 { return 1 },
		bound:  math.Inf(1),
		vector: func(f *panel.Function, w float64) { f.Func, f.P0 = simd.Affine, w },
	})
}

// maxDegree limits the powers of a polynomial kernel.
const maxDegree = 64

// NewPolynomial returns k(x, y) = (Σ_c x_c y_c/ℓ_c² + offset)^degree for an integer 1 ≤ degree ≤
// 64 and offset ≥ 0. It has no bound, so κ² = +Inf. The offset is tunable unless it is 0.
func NewPolynomial(degree int, offset float64, lengthScales ...float64) (*Base, error) {
	phi, err := polynomial(degree, offset)
	if err != nil {
		return nil, err
	}
	return newBase("polynomial", innerProduct, lengthScales, phi)
}

// polynomial is φ(s) = (s + offset)^degree.
func polynomial(degree int, offset float64) (profile, error) {
	if degree < 1 || degree > maxDegree {
		return profile{}, parameterError("polynomial", "degree", float64(degree), "1 to 64")
	}
	if !(offset >= 0) || math.IsInf(offset, 1) {
		return profile{}, parameterError("polynomial", "offset", offset, "≥ 0 and finite")
	}
	slope := func(s float64) float64 { return float64(degree) * power(s+offset, degree-1) }
	p := profile{
		at:    func(s float64) float64 { return power(s+offset, degree) },
		slope: slope,
		bound: math.Inf(1),
		shape: []shapeParameter{{Parameter{"degree", float64(degree)}, true}, {Parameter{"offset", offset}, offset == 0}},
		vector: func(f *panel.Function, w float64) {
			f.Func, f.P0, f.P1, f.Power = simd.Power, w, offset, degree
		},
	}
	if offset > 0 {
		p.tune = func(offset float64) (profile, error) { return polynomial(degree, offset) }
		p.tuneGrad = func(scale, s float64) float64 { return scale * slope(s) * offset }
	}
	return p, nil
}

// power returns b^p for p ≥ 0 by repeated squaring.
func power(b float64, p int) float64 {
	out := 1.0
	for ; p > 0; p >>= 1 {
		if p&1 == 1 {
			out *= b
		}
		b *= b
	}
	return out
}
