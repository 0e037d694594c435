package kernel

import (
	"math"

	"github.com/bkbtuner/bkb/internal/simd"
)

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

func (gaussian) valueSlopes(values, slopes []float64) {
	simd.Apply(simd.ExpScaled, values, minusHalf)
	for j, e := range values {
		slopes[j] = -e / 2
	}
}

var minusHalf = &simd.Params[float64]{-0.5}
