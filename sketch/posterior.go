package sketch

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// PosteriorVariance keeps rows by posterior variances from the caller. BKB keeps up an
// approximate Gaussian process that has them (Carratino 2020, Algorithm 5). The rows of
// the source are the different inputs observed so far, n_i times each, n = Σ n_i, and
//
//	p_i = min(1, q̄ n_i σ²_i/ξ²),  A_i = p_i/n_i,  ξ² = λn.
//
// It evaluates no kernel, and draws one number per row, or one in all with Keys.
type PosteriorVariance struct {
	// Variances are σ²_i ≥ 0, one for each row of the source. The caller must correct
	// rounding below 0.
	Variances []float64
	// Counts are n_i ≥ 1, and nil means 1 each.
	Counts []int
	// Weights are n_i > 0 that are not whole, in place of Counts. A row whose
	// observation has the noise variance s² counts as ξ²/s² observations. n is then the
	// number of rows. nil means Counts.
	Weights []float64
	// Oversampling is q̄ > 0, or 0 for 4, at which the approximate variance is within a
	// few per cent of the exact one. Theory asks for hundreds.
	Oversampling float64
	// MaxPoints is the largest number of points, or 0 for no limit. If more rows are
	// kept, those of the smallest u_i/(q̄n_iσ²_i/ξ²) remain, for the random number u_i of row
	// i. q̄ is lowered to the value at which one more row would enter. p_i and A_i follow, and
	// Σ A⁻¹kkᵀ stays unbiased (priority sampling, Duffield, Lund and Thorup, 2007).
	MaxPoints int
	// Keys are one number for each row, different for different rows, or nil. With them
	// u_i is a hash of row i's key and of one number from rng, so that the kept rows do not
	// depend on the order of the rows, and a row keeps its u_i when others are added.
	Keys []uint64
}

// Sample takes the per-sample λ = ξ²/n of [LambdaOfNoise]. The N of the result is n,
// see [Sampler].
func (v PosteriorVariance) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error) {
	const what = "PosteriorVariance"
	if err := checkSampling(what, k, src, lambda); err != nil {
		return nil, err
	}
	q, err := orDefault(what, "Oversampling", v.Oversampling, 4, 0)
	if err != nil {
		return nil, err
	}
	if err := checkCount(what, "MaxPoints", v.MaxPoints); err != nil {
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
	if err := checkScores(what, scores); err != nil {
		return nil, err
	}
	dimension := 0.0 // no row's score exceeds 1, even if an approximate variance is larger
	for _, s := range scores {
		dimension += min(s, 1)
	}
	idx, weights := v.choose(scores, q, rng)
	for j, i := range idx {
		weights[j] /= v.count(i)
	}
	d, err := dictionaryAt(ctx, k, src, Level{Lambda: lambda, Indices: idx, Weights: weights, EffectiveDimension: dimension})
	if err != nil {
		return nil, err
	}
	d.N = n
	return d, nil
}

// choose keeps at least one row by the scores.
func (v PosteriorVariance) choose(scores []float64, q float64, rng *rand.Rand) (indices []int, weights []float64) {
	if v.Keys == nil {
		indices, weights, _ = keep(scores, uniforms(len(scores), rng), q, v.MaxPoints)
		if len(indices) == 0 {
			return drawOne(scores, rng)
		}
		return indices, weights
	}
	seed := rng.Uint64()
	indices, weights, _ = keep(scores, v.uniforms(seed, 0), q, v.MaxPoints)
	if len(indices) == 0 {
		return v.first(scores, v.uniforms(seed, 1))
	}
	return indices, weights
}

// uniforms returns hashes of the keys in [0, 1), different ones for every round.
func (v PosteriorVariance) uniforms(seed, round uint64) []float64 {
	u := make([]float64, len(v.Keys))
	seed = stream.Derive(seed, "sketch keys", round)
	for i, key := range v.Keys {
		u[i] = float64(stream.Mix(seed^key)>>11) / (1 << 53)
	}
	return u
}

// first is drawOne by u. Among exponential times with the scores as rates, the first is
// that of i with probability score_i/Σ scores.
func (v PosteriorVariance) first(scores, u []float64) (indices []int, weights []float64) {
	at, least, equal := 0, math.Inf(1), sum(scores) == 0
	for i, s := range scores {
		if equal {
			s = 1
		}
		if t := -math.Log1p(-u[i]) / s; t < least { // never if s = 0, or NaN
			at, least = i, t
		}
	}
	sorted := slices.SortedFunc(slices.Values(scores), cmp.Compare) // the sum does not depend on the order of rows
	if equal {
		return []int{at}, []float64{1 / float64(len(scores))}
	}
	return []int{at}, []float64{scores[at] / sum(sorted)}
}

// observations checks the shapes and returns n.
func (v PosteriorVariance) observations(rows int) (int, error) {
	const what = "PosteriorVariance"
	if len(v.Variances) != rows {
		return 0, &kernel.ShapeError{In: "sketch", What: "Variances (one per row)", Got: len(v.Variances), Want: "the length of the source"}
	}
	if v.Keys != nil && len(v.Keys) != rows {
		return 0, &kernel.ShapeError{In: "sketch", What: "Keys (one per row)", Got: len(v.Keys), Want: "the length of the source, or nil"}
	}
	if v.Weights != nil {
		if v.Counts != nil {
			return 0, parameterError(what, "Counts", float64(len(v.Counts)), "nil where Weights are given")
		}
		if len(v.Weights) != rows {
			return 0, &kernel.ShapeError{In: "sketch", What: "Weights (one per row)", Got: len(v.Weights), Want: "the length of the source, or nil"}
		}
		for _, w := range v.Weights {
			if err := checkPositive(what, "Weights", w); err != nil {
				return 0, err
			}
		}
		return rows, nil
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
			return 0, parameterError(what, "Counts", float64(c), "≥ 1")
		}
		n += c
	}
	return n, nil
}

// count returns n_i.
func (v PosteriorVariance) count(i int) float64 {
	switch {
	case v.Weights != nil:
		return v.Weights[i]
	case v.Counts != nil:
		return float64(v.Counts[i])
	}
	return 1
}
