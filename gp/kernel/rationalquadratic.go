package kernel

import (
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/internal/stream"
)

var rationalQuadraticFamily = Family{
	Name: "rational_quadratic", Points: true, Params: []string{"alpha"},
	build: func(p *params, l []float64) (*Base, error) { return NewRationalQuadratic(p.number("alpha"), l...) },
	// √g for g ~ Γ(α, rate α)
	Spectrum: &Spectrum{Stretch: func(params map[string]float64, rng *rand.Rand) float64 {
		return math.Sqrt(stream.Gamma(params["alpha"], rng) / params["alpha"])
	}},
}

// NewRationalQuadratic returns k(x, y) = (1 + r²/(2α))^−α for α > 0, with r² = Σ_c
// (x_c − y_c)²/ℓ_c². It is a mixture of Gaussians over length scales and tends to the
// Gaussian as α → ∞. κ² = 1. α is tunable.
func NewRationalQuadratic(alpha float64, lengthScales ...float64) (*Base, error) {
	phi, err := newRationalQuadratic(alpha)
	if err != nil {
		return nil, err
	}
	return newBase("rational_quadratic", SquaredDistance, lengthScales, phi)
}

func newRationalQuadratic(alpha float64) (profile, error) {
	if !(alpha > 0) || math.IsInf(alpha, 1) {
		return nil, parameterError("rational_quadratic", "alpha", alpha, "> 0 and finite")
	}
	return rationalQuadratic{alpha}, nil
}

// rationalQuadratic is φ(s) = exp(−α log(1 + s/(2α))).
type rationalQuadratic struct{ alpha float64 }

func (q rationalQuadratic) at(s, _, _ float64) float64 {
	return math.Exp(-q.alpha * math.Log1p(s/(2*q.alpha)))
}

func (q rationalQuadratic) slope(s, _, _ float64) (ds, dxx, dyy float64) {
	return -math.Exp(-(q.alpha+1)*math.Log1p(s/(2*q.alpha))) / 2, 0, 0
}

func (rationalQuadratic) bound() float64 { return 1 }

func (q rationalQuadratic) shape() []shapeParameter {
	return []shapeParameter{{Parameter{"alpha", q.alpha}, false}}
}

func (q rationalQuadratic) withShape(values []float64) (profile, error) {
	return newRationalQuadratic(values[0])
}

func (q rationalQuadratic) addShapeGrad(dst []float64, scale, s, _, _ float64) {
	t := s / (2 * q.alpha)
	dst[0] += scale * q.at(s, 0, 0) * q.alpha * (t/(1+t) - math.Log1p(t))
}
