package sketch

import (
	"context"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// ExactRLS keeps every row with probability p_i = min(1, q₂ℓ(i, λ)), by its exact score, with
// weight A = p. It costs as much as [LeverageScores] and serves as the reference for the others.
type ExactRLS struct {
	// Oversampling is q₂ > 0, or 0 for 3. The dictionary has about q₂·d_eff(λ) points.
	Oversampling float64
}

// Sample holds K, see [Sampler].
func (e ExactRLS) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error) {
	q, err := orDefault("ExactRLS", "Oversampling", e.Oversampling, defaultOversampling, 0)
	if err != nil {
		return nil, err
	}
	scores, err := LeverageScores(ctx, k, src, lambda)
	if err != nil {
		return nil, err
	}
	return byScores(ctx, k, src, lambda, scores, q, rng)
}

// byScores keeps rows of src by the scores of all of them. All rows count as read.
func byScores(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, scores []float64, q float64, rng *rand.Rand) (*Dictionary, error) {
	idx, weights, err := Include(scores, q, rng)
	if err != nil {
		return nil, err
	}
	d, err := dictionaryAt(ctx, k, src, Level{Lambda: lambda, Indices: idx, Weights: weights, EffectiveDimension: sum(scores)})
	if err != nil {
		return nil, err
	}
	d.Rows = src.Len()
	return d, nil
}
