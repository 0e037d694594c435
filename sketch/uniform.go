package sketch

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// Uniform chooses M different rows with weights A = M/n. They are the first M of one random
// order, so that equal streams give more rows for a larger M, and never others. It misses
// rare rows. A good dictionary needs M ≈ N_∞(λ) = n·max_i ℓ(i, λ), which can
// be as large as κ²/λ, instead of d_eff(λ).
type Uniform struct {
	// Points is M. A value above n means n. If 0, it is ⌈κ²/λ⌉, a bound of N_∞. A
	// kernel without bound κ² then gives a [*ParameterError].
	Points int
}

// Sample reads only the chosen rows, see [Sampler].
func (u Uniform) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error) {
	if err := checkSampling("Uniform", k, src, lambda); err != nil {
		return nil, err
	}
	if err := checkCount("Uniform", "Points", u.Points); err != nil {
		return nil, err
	}
	n, m := src.Len(), u.Points
	if m == 0 {
		bound, err := boundOf("Uniform", k, 0)
		if err != nil {
			return nil, err
		}
		m = ceil(bound/lambda, n)
	}
	return dictionaryAt(ctx, k, src, uniformLevel(n, m, lambda, rng))
}

func uniformLevel(n, m int, lambda float64, rng *rand.Rand) Level {
	order := stream.NewPermutation(rng.Uint64(), uint64(n))
	idx := make([]int, min(m, n))
	for i := range idx {
		idx[i] = int(order.At(uint64(i)))
	}
	slices.Sort(idx)
	a := float64(len(idx)) / float64(n)
	return Level{Lambda: lambda, Indices: idx, Weights: slices.Repeat([]float64{a}, len(idx))}
}

// ceil returns ⌈v⌉ between 1 and most.
func ceil(v float64, most int) int {
	if v >= float64(most) {
		return most
	}
	return max(1, int(math.Ceil(v)))
}
