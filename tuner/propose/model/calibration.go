package model

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Calibration compares outcomes of the first objective with the predictions that the log
// has of them, which were made before the outcomes were told. Noise and targets are those
// of the model event in effect.
type Calibration struct {
	begun, told int        // of the results that were followed
	low, high   float64    // of all outcomes, with the larger ones better
	last        []foreseen // at least the last memory of them, if there are so many
	// The rest is a fold of last under one model event.
	surface  *Surface
	folded   int
	errors   []float64 // of the last window of them, in standard deviations of an outcome
	within   float64   // root mean square of leave-one-out errors at the model event, as targets
	tracking float64   // logarithm of a factor
}

// foreseen is a result with its prediction, where larger is better.
type foreseen struct {
	result            int
	mean, bound, beta float64
}

// The last window errors count, because models get better. Where they are fewer than
// calibratedFrom, no interval is narrower than that of leave-one-out predictions of at most
// withinRows results.
const (
	withinRows     = 40
	window         = 40
	memory         = 100
	calibratedFrom = 10
	// trackingGain is how fast the logarithm of the factor follows errors that become smaller
	// or larger.
	trackingGain = 0.7
	mostTracking = 4
	covered      = 0.95
	normal95     = 1.959963984540054 // 97.5 % quantile of the normal distribution
	// poorCoverage is the share of outcomes in 95 % intervals below which the model is
	// wrong, among poorFrom and more. Of 20 outcomes 16 or fewer are inside with
	// probability 1.6 % if it is right.
	poorCoverage = 0.85
	poorFrom     = 20
)

// follow adds the new results, and measures errors by the engine, without outliers.
func (c *Calibration) follow(v View, r *Results, e *Engine) {
	s := &e.Event.Surfaces[0]
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
	if c.surface != s || c.folded > len(c.last) {
		c.surface, c.folded, c.errors, c.tracking, c.within = s, 0, c.errors[:0], 0, e.within
	}
	for ; c.folded < len(c.last); c.folded++ {
		f := &c.last[c.folded]
		if _, is := slices.BinarySearch(e.Outliers, f.result); !is {
			c.add(f.error(&r.List[f.result], s))
		}
	}
}

// add adds an error to the fold.
func (c *Calibration) add(e float64) {
	outside := e > normal95*c.Factor()
	if c.tracking -= trackingGain * (1 - covered); outside {
		c.tracking += trackingGain
	}
	c.tracking = min(max(c.tracking, -mostTracking), mostTracking)
	if c.errors = append(c.errors, e); len(c.errors) > window {
		c.errors = slices.Delete(c.errors, 0, 1)
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
	if len(c.last) == 2*memory {
		c.last = slices.Delete(c.last, 0, memory)
		c.surface = nil
	}
	c.last = append(c.last, f)
}

// error returns how far a result is from its prediction.
func (f *foreseen) error(r *Result, s *Surface) float64 {
	center := s.Target.exact(f.mean)
	sd := (s.Target.exact(f.bound) - center) / f.beta
	variance := sd*sd + s.Noise + s.outcome(r.X, r.Y[0]).extra
	return math.Abs(s.Target.exact(r.Y[0].Value)-center) / math.Sqrt(max(variance, math.SmallestNonzeroFloat64))
}

// Coverage returns how many of the last outcomes were in their 95 % interval, and of how many.
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
	return c.Known() && float64(inside) < poorCoverage*float64(of)
}

// Known reports whether so many outcomes were predicted that Poor can be.
func (c *Calibration) Known() bool { return len(c.errors) >= poorFrom }

// spread returns the calibrated standard deviation of an outcome in the objective's unit,
// from the mean and the variance of its target.
func (c *Calibration) spread(t *Target, mean, variance float64) float64 {
	sd := c.Factor() * math.Sqrt(variance)
	if len(c.errors) < calibratedFrom {
		sd = max(sd, c.within)
	}
	return t.spread(mean, sd)
}

// Noise returns the noise with which outcomes have the given standard deviation, where that
// of the mean is sd. It is at most the range of the outcomes, as the target of bad values may
// have next to no slope.
func (c *Calibration) Noise(outcome, sd float64) float64 {
	if !(outcome > sd) {
		return 0
	}
	return min(outcome*math.Sqrt((1-sd/outcome)*(1+sd/outcome)), max(clampFinite(c.high-c.low), 0))
}

// Factor returns the factor of standard deviations of outcomes with which 95 % intervals
// have 95 % of the outcomes. It falls with each outcome inside and rises with each one outside
// (adaptive conformal inference: Gibbs and Candès, 2021).
func (c *Calibration) Factor() float64 { return math.Exp(c.tracking) }

// leaveOneOut returns the root mean square of the errors of leave-one-out predictions of the first
// objective, in units of targets and under the hyper-parameters of its surface. It is 0 for many
// results, because predictions in the log show the errors then.
func (s *Surface) leaveOneOut(sp *space.Space, list []Result) (float64, error) {
	k, err := s.kernel(sp)
	if err != nil {
		return 0, err
	}
	var samples []sample
	for i := range list {
		if list[i].Y != nil {
			samples = append(samples, s.outcome(list[i].X, list[i].Y[0]))
		}
	}
	if len(samples) < 2 || len(samples) > withinRows {
		return 0, nil
	}
	data := (&posterior{k: k}).data(samples...)
	data.Coarse = nil
	least := slices.Min(data.Noise) // replicates have less than ξ²
	for i := range data.Noise {
		data.Noise[i] -= least
	}
	exact, err := gp.NewExact(k, data, gp.Options{NoiseVariance: s.Noise + least, Mean: s.Mean})
	if err != nil {
		return 0, err
	}
	sum, others := 0.0, exact.LeaveOneOut()
	for i, o := range samples {
		sum += (o.y - others.Mean[i]) * (o.y - others.Mean[i])
	}
	return math.Sqrt(sum / float64(len(samples))), nil
}
