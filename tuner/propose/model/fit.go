package model

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// Sizes of fits.
const (
	fitPoints      = 160
	replicatesSeen = 4
	fitIterations  = 40
	// lengthSpread is τ, how far logarithms of length scales are from each other by their
	// prior. Independent ones (√3) call parameters irrelevant that only have not mattered yet.
	lengthSpread = 0.5
	// severalSpread is τ of several objectives, each of which is far from any optimum on most of the
	// front.
	severalSpread = 0.3
	// severalDoubtSpread is τ of limits and of success there, which some parameters decide.
	severalDoubtSpread = 1
)

// fit chooses hyper-parameters by their posterior density (gp.Fit, with the
// priors of gp.DimensionScaled, but those of length scales together), on at most fitPoints results. They are the best third and others
// drawn by the study's seed.
func (a *builder) fit(ctx context.Context, list []Result, q quantity, s *Surface, warm *kernel.Mixed) error {
	var x, y, noise []float64
	for _, it := range a.toFit(list, q, s) {
		spread := 0.0
		if it.m.Count > 1 && math.IsNaN(it.m.StdErr) {
			spread = math.Sqrt(it.m.Within/float64(it.m.Count-1)) * s.slope(it.m.Value)
		}
		for _, e := range replicates(it.m.Count, min(spread, 1e3)) {
			x = append(append(x, it.x...), make([]float64, warm.Dim()-len(it.x))...)
			y, noise = append(y, it.y+e), append(noise, max(it.extra, 0))
		}
	}
	opts := gp.DimensionScaled(a.space.Dim())
	opts.NoiseVariance, opts.Starts, opts.MaxIterations, opts.MinNoise = s.Noise, 2, fitIterations, a.options.MinNoise
	scale := opts.Prior(kernel.Parameter{Name: "length_scale"}).(gp.LogNormal)
	opts.LengthScales = &gp.Exchangeable{Mean: scale.Mu - scale.Sigma*scale.Sigma, Sigma: scale.Sigma, Tau: lengthSpread}
	if a.objectives > 1 {
		opts.LengthScales.Tau = severalSpread
		if q < 0 {
			opts.LengthScales.Tau = severalDoubtSpread
		}
	}
	opts.NoisePrior = gp.LogNormal{Mu: -2, Sigma: 2} // wider than LogNormal(−4, 1), so that almost no noise is possible
	if q == success {
		opts.MinNoise = 1e-2
	}
	if s.Fidelity != nil {
		withLength(&opts)
	}
	fit, err := gp.Fit(ctx, warm, gp.Data{X: kernel.NewPoints(len(y), warm.Dim(), x), Y: y, Noise: noise}, opts)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return nil //nolint:nilerr // no start has a density: the old hyper-parameters stay
	}
	found := fit.Kernel.(*kernel.Mixed)
	s.Theta = found.Theta()
	if s.Fidelity != nil {
		s.Fidelity.Length = found.FidelityLength()
	}
	s.Theta[0] *= fit.Scale * fit.Scale
	s.Noise = fit.NoiseVariance * fit.Scale * fit.Scale
	s.Mean = fit.Shift
	return nil
}

// fitted is a sample with its measurement, if it is an outcome.
type fitted struct {
	sample
	m Measure
}

// toFit returns the samples to fit to. They are all that were measured, or if there are
// more than fitPoints, the best third of that number and others drawn by the study's seed.
// Of a metric, those nearest to its limit count as the best, and of labels failures do, because
// they are few. It leaves out values that the model inferred for stopped trials, because they
// would only confirm the present hyper-parameters.
func (a *builder) toFit(list []Result, q quantity, s *Surface) []fitted {
	var items []fitted
	for i := range list {
		for n, o := range s.samples(&list[i], q) {
			if o.inferred {
				continue
			}
			it := fitted{sample: o}
			if n == 0 {
				it.m, _ = q.measure(&list[i])
			}
			items = append(items, it)
		}
	}
	if len(items) > fitPoints {
		keys := make([]float64, len(items))
		for i := range items {
			keys[i] = items[i].y
			if _, ok := q.limit(); ok {
				keys[i] = -s.distance(keys[i])
			} else if q == success {
				keys[i] = -keys[i]
			}
		}
		items = pick(items, bandit.Largest(keys, len(keys)))
		rng := stream.New(stream.Derive(a.seed, "bkb fit", uint64(len(list))))
		items = drawn(rng, items, fitPoints/3, fitPoints)
	}
	return items
}

// pick returns the chosen items.
func pick[T any](items []T, chosen []int) []T {
	out := make([]T, len(chosen))
	for n, i := range chosen {
		out[n] = items[i]
	}
	return out
}

// drawn returns the first items, which are kept, and others drawn at random, n in all.
func drawn[T any](rng *rand.Rand, items []T, kept, n int) []T {
	rest := items[kept:]
	rng.Shuffle(len(rest), func(i, k int) { rest[i], rest[k] = rest[k], rest[i] })
	return items[:n]
}

// replicates returns deviations with mean 0 and the given standard deviation, for a mean of
// n values.
func replicates(n int, spread float64) []float64 {
	n = min(max(n, 1), replicatesSeen)
	out, square := make([]float64, n), 0.0
	if n == 1 {
		return out
	}
	for i := range out {
		out[i] = float64(i) - float64(n-1)/2
		square += out[i] * out[i]
	}
	for i := range out {
		out[i] *= spread * math.Sqrt(float64(n-1)/square)
	}
	return out
}

// withLength adds the prior of ℓ_δ, LogNormal(log 16, 1.2), and its limits. Before there
// are data, a step one doubling below the outcome has correlation e^(−1/16) with it.
func withLength(o *gp.FitOptions) {
	prior, bounds := o.Prior, o.Bounds
	o.Prior = func(p kernel.Parameter) gp.Prior {
		if p.Name == kernel.FidelityLength {
			return gp.LogNormal{Mu: math.Log(typicalDelta), Sigma: 1.2}
		}
		return prior(p)
	}
	o.Bounds = func(p kernel.Parameter) (lo, hi float64) {
		if p.Name == kernel.FidelityLength {
			return 0.1, 1e4
		}
		return bounds(p)
	}
}
