package kernel

import (
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/internal/simd"
)

var (
	laplaceFamily = Family{
		Name: "laplace", Points: true, build: withScales(NewLaplace),
		Spectrum: &Spectrum{Coordinate: func(rng *rand.Rand) float64 { return math.Tan(math.Pi * (rng.Float64() - 0.5)) }}, // Cauchy
	}
	hammingFamily = Family{Name: "hamming", build: withScales(NewHamming)}
)

// NewLaplace returns k(x, y) = exp(−Σ_c |x_c − y_c|/ℓ_c). The distance is ℓ1, so the
// kernel is the product over its coordinates, and its random features have independent
// Cauchy frequencies. For exp(−r) with the Euclidean distance see [NewMatern12]. The
// two agree for d = 1. κ² = 1.
func NewLaplace(lengthScales ...float64) (*Base, error) {
	return newBase("laplace", Manhattan, lengthScales, exponential{})
}

// NewHamming returns k(x, y) = exp(−Σ_c [x_c ≠ y_c]/ℓ_c) for categories coded as
// numbers. It is the product over coordinates of a kernel that is 1 for equal
// categories and exp(−1/ℓ_c) for different ones. A large ℓ_c means that the categories
// of coordinate c behave alike. κ² = 1. Its input gradient is 0.
func NewHamming(lengthScales ...float64) (*Base, error) {
	return newBase("hamming", Mismatches, lengthScales, exponential{})
}

// exponential is φ(s) = exp(−s).
type exponential struct{}

func (exponential) at(s, _, _ float64) float64 { return math.Exp(-s) }
func (exponential) bound() float64             { return 1 }
func (exponential) shape() []shapeParameter    { return nil }

// mapRow is mainly for categories, because those with several length scales have no
// panels.
func (exponential) mapRow(s []float64) { simd.Apply(simd.ExpScaled, s, minusOne) }

var minusOne = &simd.Params[float64]{-1}

func (exponential) slope(s, _, _ float64) (ds, dxx, dyy float64) {
	return -math.Exp(-s), 0, 0
}
