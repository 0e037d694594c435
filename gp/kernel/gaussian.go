package kernel

import (
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

var gaussianFamily = Family{
	Name: "gaussian", Points: true, build: withScales(NewGaussian),
	Spectrum: &Spectrum{Stretch: func(map[string]float64, *rand.Rand) float64 { return 1 }},
}

// NewGaussian returns k(x, y) = exp(−r²/2) with r² = Σ_c (x_c − y_c)²/ℓ_c²,
// also called squared exponential or RBF. κ² = 1.
func NewGaussian(lengthScales ...float64) (*Base, error) {
	return newBase("gaussian", squaredDistance, lengthScales, gaussian)
}

// gaussian is φ(s) = exp(−s/2), s = r².
var gaussian = profile{
	at:    func(s float64) float64 { return math.Exp(-s / 2) },
	slope: func(s float64) float64 { return -math.Exp(-s/2) / 2 },
	bound: 1,
	both: func(s float64) (value, slope float64) {
		e := math.Exp(-s / 2)
		return e, -e / 2
	},
	vector: func(f *panel.Function, w float64) { f.Func, f.P0 = simd.ExpScaled, -w/2 },
	// −2φ' = φ
	slopeKernel: func(k *Base) (*Base, float64, error) { return k, 1, nil },
}
