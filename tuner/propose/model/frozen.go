package model

import (
	"maps"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Frozen is the model at one View, without running trials. It does not change with the
// model, and several goroutines may use it.
type Frozen struct {
	Results  int            // that the model had received
	Position study.Position // of the model event

	past *Outlook // of all surfaces
}

// Freeze returns the model as it is now. It costs O(m²).
func (e *Engine) Freeze() *Frozen {
	return &Frozen{Results: e.told, Position: e.Effective, past: e.Detach()}
}

// Detach returns an outlook without pending trials that does not change with the engine. Several
// goroutines may use it. It costs O(m²).
func (e *Engine) Detach() *Outlook {
	p, c := e.each((*posterior).detach), *e.Calibration
	c.errors = slices.Clone(c.errors)
	return &Outlook{p, &Engine{
		Event: e.Event, Results: &Results{spec: e.Results.spec, negative: maps.Clone(e.Results.negative)}, Calibration: &c,
		posteriors: p, builder: e.builder, told: e.told, failures: e.failures, unfit: e.unfit, gained: e.gained,
	}, true}
}

// Predict returns the prediction for every configuration, in the objectives' units. The
// error is that of the first configuration that is not of the study's space.
func (f *Frozen) Predict(configs []space.Config) ([]surrogate.Prediction, error) {
	sp := f.past.engine.builder.space
	x := kernel.NewPoints[float64](len(configs), sp.Dim(), nil)
	for i, c := range configs {
		if err := sp.Encode(c, x.Row(i)); err != nil {
			return nil, err
		}
	}
	return f.At(x), nil
}

// At returns the prediction at every row of x, which are encoded configurations.
func (f *Frozen) At(x *kernel.Points[float64]) []surrogate.Prediction {
	e, out := f.past.engine, make([]surrogate.Prediction, x.Len())
	for j := range e.builder.objectives {
		p, t := f.past.surfaces[j], &e.Event.Surfaces[j].Target
		mean, variance := p.predict(x)
		noise := math.Sqrt(p.NoiseVariance())
		for i, m := range mean {
			out[i].Mean = append(out[i].Mean, e.expected(j, m))
			sd, n := t.Deviation(m, math.Sqrt(variance[i])), t.Deviation(m, noise)
			if j == 0 {
				n = e.Calibration.Noise(e.Calibration.spread(t, m, variance[i]+noise*noise), sd)
			}
			out[i].StdDev, out[i].Noise = append(out[i].StdDev, sd), append(out[i].Noise, n)
		}
	}
	f.limits(out, x)
	return out
}

// limits adds the metrics with a limit and the probability to be feasible at the rows of x.
func (f *Frozen) limits(out []surrogate.Prediction, x *kernel.Points[float64]) {
	e, succeeds := f.past.engine, 1.0
	if e.success() != nil && !e.Blames() { // by no parameter
		succeeds = 1 - rate(e.failures, e.told)
	}
	for i, l := range f.past.LogFeasible(x) {
		out[i].Feasible = succeeds * math.Exp(l)
	}
	for k, p := range f.past.limited {
		if p == nil {
			continue
		}
		c, t := e.builder.options.Constraints[k], &e.Event.Limited[k].Target
		mean, variance := p.predict(x)
		for i, m := range mean {
			shown := c.shown(t, m)
			if !e.Results.negative[c.metric] {
				shown = max(shown, 0)
			}
			out[i].Metrics = append(out[i].Metrics, surrogate.MetricPrediction{
				Metric: c.metric, Mean: shown,
				StdDev: t.Deviation(m, math.Sqrt(variance[i])), Noise: t.Deviation(m, math.Sqrt(p.NoiseVariance())),
			})
		}
	}
}

// Targets returns the mean of an objective at every row of x, in units of targets, where
// larger is better. The model sees these numbers, in which long tails are compressed. They
// cost far less than At.
func (f *Frozen) Targets(objective int, x *kernel.Points[float64]) []float64 {
	return f.past.Means(objective, x)
}
