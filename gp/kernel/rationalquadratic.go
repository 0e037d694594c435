package kernel

import (
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
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
	phi, err := rationalQuadratic(alpha)
	if err != nil {
		return nil, err
	}
	return newBase("rational_quadratic", squaredDistance, lengthScales, phi)
}

// rationalQuadratic is φ(s) = exp(−α log(1 + s/(2α))).
func rationalQuadratic(alpha float64) (profile, error) {
	if !(alpha > 0) || math.IsInf(alpha, 1) {
		return profile{}, parameterError("rational_quadratic", "alpha", alpha, "> 0 and finite")
	}
	at := func(s float64) float64 { return math.Exp(-alpha * math.Log1p(s/(2*alpha))) }
	return profile{
		at:    at,
		slope: func(s float64) float64 { return -math.Exp(-(alpha+1)*math.Log1p(s/(2*alpha))) / 2 },
		bound: 1,
		shape: []shapeParameter{{Parameter{"alpha", alpha}, false}},
		vector: func(f *panel.Function, w float64) {
			f.Func, f.P0, f.P1 = simd.RationalQuadratic, w/(2*alpha), -alpha
		},
		tune: rationalQuadratic,
		tuneGrad: func(scale, s float64) float64 {
			t := s / (2 * alpha)
			return scale * at(s) * alpha * (t/(1+t) - math.Log1p(t))
		},
	}, nil
}
