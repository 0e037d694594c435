package bandit

import (
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// box is the [Domain] of which every point is valid.
type box struct{ low, high, unit []float64 }

// boxUnit is the unit of steps, as a share of each side.
const boxUnit = 0.4

func newBox(low, high []float64) box {
	unit := make([]float64, len(low))
	for c := range unit {
		unit[c] = boxUnit * (high[c] - low[c])
	}
	return box{low, high, unit}
}

// Box implements [Domain].
func (b *box) Box() (low, high []float64) { return b.low, b.high }

// Unit implements [Domain].
func (b *box) Unit() []float64 { return b.unit }

// Mutate implements [Domain]. It moves one coordinate, and each other one with
// probability 0.3.
func (b *box) Mutate(x []float64, size float64, rng *rand.Rand) {
	must := rng.IntN(len(x))
	for c := range x {
		if c == must || rng.Float64() < 0.3 {
			x[c] = min(max(x[c]+size*b.unit[c]*rng.NormFloat64(), b.low[c]), b.high[c])
		}
	}
}

// Snap implements [Domain].
func (b *box) Snap(*kernel.Points[float64]) {}

// Free implements [Domain].
func (b *box) Free(_ []float64, free []bool) bool {
	for c := range free {
		free[c] = true
	}
	return true
}
