package model

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Calibration compares outcomes of the first objective with the predictions that the log
// has of them, which were made before the outcomes were told. Noise and targets are those
// of the model event in effect.
type Calibration struct {
	begun, told int        // of the results that were followed
	low, high   float64    // of all outcomes, with the larger ones better
	last        []foreseen // the last window of them
	errors      []float64  // of these outcomes, in standard deviations of an outcome
}

// foreseen is a result with its prediction, where larger is better.
type foreseen struct {
	result            int
	mean, bound, beta float64
}

// The last window errors count, because models get better. With fewer than calibratedFrom the
// factor is 1.
const (
	window         = 40
	calibratedFrom = 10
	mostFactor     = 20
	leastFactor    = 1.0 / 20
	normal95       = 1.959963984540054 // 97.5 % quantile of the normal distribution
	// poorCoverage is the share of outcomes in 95 % intervals below which the model is
	// wrong, among poorFrom and more. Of 20 outcomes 16 or fewer are inside with
	// probability 1.6 % if it is right.
	poorCoverage = 0.85
	poorFrom     = 20
)

// follow adds the new results, and measures errors by surface s, without outliers.
func (c *Calibration) follow(v View, r *Results, s *Surface, outliers []int) {
	if c.told == 0 || c.begun != r.Begun || c.told > len(r.List) {
		*c = Calibration{begun: r.Begun, low: math.Inf(1), high: math.Inf(-1)}
	}
	for ; c.told < len(r.List); c.told++ {
		if y := r.List[c.told].Y; y != nil {
			value := clampFinite(y[0].Value)
			c.low, c.high = min(c.low, value), max(c.high, value)
			c.hear(v, r, c.told)
		}
	}
	c.errors = c.errors[:0]
	for _, f := range c.last {
		if _, is := slices.BinarySearch(outliers, f.result); is {
			continue
		}
		c.errors = append(c.errors, f.error(&r.List[f.result], s))
	}
}

// hear adds a measured result, if it was predicted.
func (c *Calibration) hear(v View, r *Results, n int) {
	t, _ := v.Trial(r.List[n].Trial)
	g := t.Suggestion
	if r.List[n].Epoch > 0 || t.Origin != study.OriginSuggested || len(g.Mean) == 0 || len(g.Bound) == 0 || len(g.Beta) == 0 || !(g.Beta[0] > 0) {
		return
	}
	f := foreseen{n, g.Mean[0], g.Bound[0], g.Beta[0]}
	if r.spec.Objectives[0].Direction == study.Minimize {
		f.mean, f.bound = -f.mean, -f.bound
	}
	if c.last = append(c.last, f); len(c.last) > window {
		c.last = slices.Delete(c.last, 0, 1)
	}
}

// error returns how far a result is from its prediction.
func (f *foreseen) error(r *Result, s *Surface) float64 {
	center := s.Target.exact(f.mean)
	sd := (s.Target.exact(f.bound) - center) / f.beta
	variance := sd*sd + s.Noise + s.outcome(r.X, r.Y[0]).extra
	return math.Abs(s.Target.exact(r.Y[0].Value)-center) / math.Sqrt(max(variance, math.SmallestNonzeroFloat64))
}

// clone returns a copy that stays as it is.
func (c *Calibration) clone() Calibration {
	out := *c
	out.errors = slices.Clone(c.errors)
	return out
}

// Coverage returns how many of the last outcomes were in their 95 % interval, and of how
// many.
func (c *Calibration) Coverage() (inside, of int) {
	for _, e := range c.errors {
		if e <= normal95 {
			inside++
		}
	}
	return inside, len(c.errors)
}

// Poor reports whether the model's own intervals have missed too many of the last outcomes.
func (c *Calibration) Poor() bool {
	inside, of := c.Coverage()
	return of >= poorFrom && float64(inside) < poorCoverage*float64(of)
}

// spread returns the calibrated standard deviation of an outcome in the objective's unit,
// from the mean and the variance of its target. It is at most the range of the outcomes, as
// the target of bad values may have next to no slope.
func (c *Calibration) spread(t *Target, mean, variance float64) float64 {
	return min(t.spread(mean, c.Factor()*math.Sqrt(variance)), max(clampFinite(c.high-c.low), 0))
}

// Factor returns the factor of standard deviations of outcomes with which 95 % intervals
// would have had 95 % of the last outcomes. It is a quantile of their errors (split
// conformal prediction: Vovk, Gammerman and Shafer, 2005).
func (c *Calibration) Factor() float64 {
	n := len(c.errors)
	if n < calibratedFrom {
		return 1
	}
	at := min(int(math.Ceil(0.95*float64(n+1))), n) - 1
	return min(max(slices.Sorted(slices.Values(c.errors))[at]/normal95, leastFactor), mostFactor)
}
