package learners

import (
	"context"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/sketch"
)

// Centers are M rows of the training data, in increasing order of their
// indices, all different as indices; equal rows stay equal centres.
type Centers struct {
	Points  kernel.Rows
	Indices []int
	// Weights are w_j > 0 with K_nMᵀK_nM ≈ K_MM diag(w) K_MM: 1/A_j of the
	// sampler, n/M if all rows are alike.
	Weights []float64
	// Dictionary is what the sampler returned, with the path of BLESS.
	Dictionary *sketch.Dictionary
}

// Len returns M.
func (c *Centers) Len() int { return len(c.Indices) }

// ChooseCenters lets a sampler choose centres from src; nil stands for
// sketch.Uniform{Points: most}. lambda is that of the sampler, per sample.
// Whatever the sampler returns beyond most > 0 points is thinned: of a path, the
// finest level with at most so many points; else a uniform subset of them, whose
// weights grow in proportion. More than n stands for n; most = 0 for no limit.
//
// The random numbers depend on seed alone. Errors: as sketch.Sampler.
func ChooseCenters(ctx context.Context, k kernel.Kernel, src kernel.Source, s sketch.Sampler, lambda float64, most int, seed uint64) (*Centers, error) {
	if s == nil {
		s = sketch.Uniform{Points: most}
		if lambda <= 0 {
			lambda = 1 // without effect on M uniform rows
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

// thinned returns some of the points of a level, whose chance to be there has
// become smaller by the share of those chosen.
func thinned(l sketch.Level, chosen []int) sketch.Level {
	share := float64(len(chosen)) / float64(l.Len())
	out := sketch.Level{Lambda: l.Lambda, Points: l.Points.Select(chosen), EffectiveDimension: l.EffectiveDimension}
	for _, j := range chosen {
		out.Indices = append(out.Indices, l.Indices[j])
		out.Weights = append(out.Weights, l.Weights[j]*share)
	}
	return out
}
