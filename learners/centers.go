package learners

import (
	"context"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/sketch"
)

// Centers are M rows of the training data, in increasing order of their indices. All
// indices differ, but equal rows stay equal centres.
type Centers struct {
	Points  kernel.Rows
	Indices []int
	// Weights are w_j > 0 with K_nMᵀK_nM ≈ K_MM diag(w) K_MM. The sampler gives 1/A_j,
	// which is n/M if all rows are alike.
	Weights []float64
	// Dictionary is the sampler's result, with the path of BLESS.
	Dictionary *sketch.Dictionary
}

// Len returns M.
func (c *Centers) Len() int { return len(c.Indices) }

// ChooseCenters lets a sampler choose centres from src. A nil sampler means
// sketch.Uniform{Points: most}. lambda is the regularisation of the sampler, per
// sample. If the sampler returns more than most > 0 points, they are thinned. Of a
// path, the finest level with at most that many points is kept. Otherwise a uniform
// subset is kept, and its weights grow in proportion. A most above n means n, and
// most = 0 means no limit.
//
// The random numbers depend on seed alone. It returns the errors of the sampler.
func ChooseCenters(ctx context.Context, k kernel.Kernel, src kernel.Source, s sketch.Sampler, lambda float64, most int, seed uint64) (*Centers, error) {
	if s == nil {
		s = sketch.Uniform{Points: most}
		if lambda <= 0 {
			lambda = 1 // no effect on M uniform rows
		}
	}
	rng := stream.New(stream.Derive(seed, "centers", 0))
	d, err := s.Sample(ctx, k, src, lambda, rng)
	if err != nil {
		return nil, err
	}
	level := d.Level
	if most > 0 && level.Len() > most {
		if coarser, err := d.Truncate(most); err == nil && coarser.Len() > 0 {
			d, level = coarser, coarser.Level
		} else {
			chosen := rng.Perm(level.Len())[:most]
			slices.Sort(chosen)
			level = thinned(level, chosen)
		}
	}
	return &Centers{Points: level.Points, Indices: level.Indices, Weights: level.InverseWeights(), Dictionary: d}, nil
}

// thinned returns the chosen points of a level. It multiplies their probabilities of being
// in the level by the share that was kept.
func thinned(l sketch.Level, chosen []int) sketch.Level {
	share := float64(len(chosen)) / float64(l.Len())
	out := sketch.Level{Lambda: l.Lambda, Points: l.Points.Select(chosen), EffectiveDimension: l.EffectiveDimension}
	for _, j := range chosen {
		out.Indices = append(out.Indices, l.Indices[j])
		out.Weights = append(out.Weights, l.Weights[j]*share)
	}
	return out
}
