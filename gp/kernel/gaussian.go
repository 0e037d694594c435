package kernel

import (
	"math"
	"math/rand/v2"
)

var gaussianFamily = Family{
	Name: "gaussian", Points: true, build: withScales(NewGaussian),
	Spectrum: &Spectrum{Stretch: func(map[string]float64, *rand.Rand) float64 { return 1 }},
}

// NewGaussian returns k(x, y) = exp(−r²/2) with r² = Σ_c (x_c − y_c)²/ℓ_c²,
// also called squared exponential or RBF. κ² = 1.
func NewGaussian(lengthScales ...float64) (*Base, error) {
	return newBase("gaussian", SquaredDistance, lengthScales, gaussian{})
}

// gaussian is φ(s) = exp(−s/2), s = r².
type gaussian struct{}

func (gaussian) at(s, _, _ float64) float64 { return math.Exp(-s / 2) }
func (gaussian) bound() float64             { return 1 }
func (gaussian) shape() []shapeParameter    { return nil }

func (gaussian) slope(s, _, _ float64) (ds, dxx, dyy float64) {
	return -math.Exp(-s/2) / 2, 0, 0
}

func (gaussian) valueSlope(s float64) (value, slope float64) {
	e := math.Exp(-s / 2)
	return e, -e / 2
}

// slopeKernel is k itself, as −2φ' = φ.
func (gaussian) slopeKernel(k *Base) (*Base, float64, error) { return k, 1, nil }
