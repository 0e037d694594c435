package kernel

import (
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

var (
	laplaceFamily = Family{
		Name: "laplace", Points: true, build: withScales(NewLaplace),
		Spectrum: &Spectrum{Coordinate: func(rng *rand.Rand) float64 { return math.Tan(math.Pi * (rng.Float64() - 0.5)) }}, // Cauchy
	}
	hammingFamily = Family{Name: "hamming", build: withScales(NewHamming)}
)

// NewLaplace returns k(x, y) = exp(−Σ_c |x_c − y_c|/ℓ_c), the product over coordinates. For
// exp(−r) with the Euclidean distance see [NewMatern12]. κ² = 1.
func NewLaplace(lengthScales ...float64) (*Base, error) {
	return newBase("laplace", manhattan, lengthScales, exponential)
}

// NewHamming returns k(x, y) = exp(−Σ_c [x_c ≠ y_c]/ℓ_c) for categories coded as
// numbers. A large ℓ_c means that the categories of coordinate c behave alike. κ² = 1.
func NewHamming(lengthScales ...float64) (*Base, error) {
	return newBase("hamming", mismatches, lengthScales, exponential)
}

// exponential is φ(s) = exp(−s).
var exponential = profile{
	at:     func(s float64) float64 { return math.Exp(-s) },
	slope:  func(s float64) float64 { return -math.Exp(-s) },
	bound:  1,
	vector: func(f *panel.Function, w float64) { f.Func, f.P0 = simd.ExpScaled, -w },
	// Categories with several length scales have no panels.
	mapRow: func(s []float64) { simd.Apply(simd.ExpScaled, s, minusOne) },
}

var minusOne = &simd.Params[float64]{-1}
