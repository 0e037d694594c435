package sketch

import (
	"context"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// PosteriorVariance keeps rows by posterior variances that the caller has
// computed, those of the approximate Gaussian process that BKB keeps up
// (thesis Algorithm 5). The rows of the source are the different inputs
// observed so far, n_i times each, n = Σ n_i, and
//
//	p_i = min(1, q̄ n_i σ²_i/ξ²),  A_i = p_i/n_i,  ξ² = λn.
//
// It evaluates no kernel, and draws one number per row.
type PosteriorVariance struct {
	// Variances are σ²_i ≥ 0, one for each row of the source; rounding below 0
	// is the caller's to mend.
	Variances []float64
	// Counts are n_i ≥ 1; nil stands for 1 each.
	Counts []int
	// Oversampling is q̄ > 0; 0 stands for 4, at which the approximate variance
	// is within a few per cent of the exact one. Theory asks for hundreds.
	Oversampling float64
}

// Sample takes the per-sample λ = ξ²/n of [LambdaOfNoise]; the N of the result
// is n. See [Sampler].
func (v PosteriorVariance) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error) {
	if err := checkSampling("PosteriorVariance", k, src, lambda); err != nil {
		return nil, err
	}
	q, err := orDefault("PosteriorVariance", "Oversampling", v.Oversampling, 4, 0)
	if err != nil {
		return nil, err
	}
	n, err := v.observations(src.Len())
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(v.Variances))
	for i, s := range v.Variances {
		scores[i] = v.count(i) * ScoreOfVariance(s, Ridge(lambda, n))
	}
	d, err := byScores(ctx, k, src, lambda, scores, q, rng)
	if err != nil {
		return nil, err
	}
	d.N = n
	for j, i := range d.Indices {
		d.Weights[j] /= v.count(i)
	}
	return d, nil
}

// observations checks the shapes and returns n.
func (v PosteriorVariance) observations(rows int) (int, error) {
	if len(v.Variances) != rows {
		return 0, &kernel.ShapeError{In: "sketch", What: "Variances (one per row)", Got: len(v.Variances), Want: "the length of the source"}
	}
	if v.Counts == nil {
		return rows, nil
	}
	if len(v.Counts) != rows {
		return 0, &kernel.ShapeError{In: "sketch", What: "Counts (one per row)", Got: len(v.Counts), Want: "the length of the source, or nil"}
	}
	n := 0
	for _, c := range v.Counts {
		if c < 1 {
			return 0, parameterError("PosteriorVariance", "Counts", float64(c), "≥ 1")
		}
		n += c
	}
	return n, nil
}

func (v PosteriorVariance) count(i int) float64 {
	if v.Counts == nil {
		return 1
	}
	return float64(v.Counts[i])
}
