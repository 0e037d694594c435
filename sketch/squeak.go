package sketch

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// SQUEAK reads the rows once, in order. It adds each block U to the dictionary J with
// weight 1 and scores J ∪ U by itself with the ridge λn. Then it shrinks it with p ←
// min(p, q₂ℓ̃), keeping a point with probability p/p_old (Carratino 2020, (5.7), after
// Calandriello, Lazaric and Valko, 2017). A = p. It costs n·M evaluations and n·M²
// operations. Memory is O(M²) and only the rows of the dictionary and of a block.
type SQUEAK struct {
	// Oversampling is q₂ > 0, or 0 for 3.
	Oversampling float64
	// Block is the number of rows added at a time. If 0, it is the size of the
	// dictionary, at least 256, which balances the costs.
	Block int
}

// Sample makes one pass, see [Sampler].
func (s SQUEAK) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error) {
	if err := checkSampling("SQUEAK", k, src, lambda); err != nil {
		return nil, err
	}
	q, err := orDefault("SQUEAK", "Oversampling", s.Oversampling, defaultOversampling, 0)
	if err != nil {
		return nil, err
	}
	if err := checkCount("SQUEAK", "Block", s.Block); err != nil {
		return nil, err
	}
	r, err := kernel.OpenReader(ctx, src)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	d := Level{Lambda: lambda}
	var block kernel.Rows
	for {
		size := s.Block
		size = cmp.Or(size, max(256, d.Len()))
		var row int
		if block, row, err = next(ctx, k, r, size, block); err != nil {
			return nil, err
		}
		if block == nil {
			return &Dictionary{Level: d, N: src.Len(), Rows: src.Len()}, nil
		}
		if d, err = d.expand(block, row); err != nil {
			return nil, err
		}
		if d, err = d.shrink(k, Ridge(lambda, src.Len()), q, rng); err != nil {
			return nil, err
		}
	}
}

// expand adds the rows of a block with weight 1, where row is the number of the first.
func (l Level) expand(block kernel.Rows, row int) (Level, error) {
	n := block.Len()
	indices, weights := slices.Clone(l.Indices), slices.Clone(l.Weights)
	for i := range n {
		indices, weights = append(indices, row+i), append(weights, 1)
	}
	points := block.Select(upTo(n)) // the block's memory will be used again
	if l.Points != nil {
		var err error
		if points, err = l.Points.Concat(points); err != nil {
			return Level{}, err
		}
	}
	return Level{Lambda: l.Lambda, Indices: indices, Weights: weights, Points: points}, nil
}

// shrink keeps points by their scores within the level.
func (l Level) shrink(k kernel.Kernel, ridge, q float64, rng *rand.Rand) (Level, error) {
	gram, err := kernel.Gramian(k, l.Points)
	if err != nil {
		return Level{}, err
	}
	scores, err := selfScores(gram, l.Weights, ridge)
	if err != nil {
		return Level{}, err
	}
	var at []int
	var weights []float64
	dimension := 0.0
	for j, p := range l.Weights {
		dimension += scores[j] / p
		lower := min(p, q*scores[j])
		if rng.Float64()*p < lower {
			at, weights = append(at, j), append(weights, lower)
		}
	}
	if len(at) == 0 {
		// Without this draw Σ A⁻¹kkᵀ is unbiased, so it only adds to it. With the factor p_old
		// it would add more, and again at each block.
		at, weights = drawOne(scores, rng)
	}
	return Level{
		Lambda: l.Lambda, Indices: pick(l.Indices, at), Weights: weights,
		Points: l.Points.Select(at), EffectiveDimension: dimension,
	}, nil
}
