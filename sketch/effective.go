package sketch

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// EffectiveDimension returns d_eff(λ) = Σ_i ℓ(i, λ) = tr K(K + λnI)⁻¹ exactly.
// Costs and errors: as [LeverageScores].
func EffectiveDimension(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64) (float64, error) {
	scores, err := LeverageScores(ctx, k, src, lambda)
	return sum(scores), err
}

// EstimateEffectiveDimension returns n times the mean of the approximate scores
// of a uniform sample of the rows, and the standard error of that mean (times
// n; it knows nothing of the error of the scores themselves). sample = 0 stands
// for 1000; n rows or more stand for all of them. Cost: sample·M² operations.
// Errors: as [Generator.Scores], and [*EmptyError], [*ParameterError].
func (g *Generator) EstimateEffectiveDimension(ctx context.Context, src kernel.Source, sample int, rng *rand.Rand) (estimate, standardError float64, err error) {
	if err := checkCount("EstimateEffectiveDimension", "sample", sample); err != nil {
		return 0, 0, err
	}
	n := src.Len()
	if n == 0 {
		return 0, 0, &EmptyError{What: "source"}
	}
	if sample == 0 {
		sample = 1000
	}
	idx := choose(n, sample, rng)
	x, err := selectRows(ctx, g.k, src, idx)
	if err != nil {
		return 0, 0, err
	}
	scores, err := g.scoresOf(ctx, x, idx, 0)
	if err != nil {
		return 0, 0, err
	}
	m := float64(len(idx))
	mean, square := sum(scores)/m, 0.0
	for _, s := range scores {
		square += (s - mean) * (s - mean)
	}
	if m > 1 {
		left := 1 - m/float64(n) // without replacement
		standardError = float64(n) * math.Sqrt(left*square/(m-1)/m)
	}
	return float64(n) * mean, standardError, nil
}

func sum(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s
}
