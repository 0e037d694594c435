package model

import (
	"maps"
	"math"

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

	spec     study.Spec
	targets  []Target // of the objectives
	surfaces []*posterior
	past     *Outlook // of all surfaces

	calibration Calibration // as it was
	negative    map[string]bool
}

// Freeze returns the model as it is now. It costs O(m²).
func (e *Engine) Freeze() *Frozen {
	f := &Frozen{Results: e.told, Position: e.Effective, spec: e.Results.spec, past: e.Detach().past, calibration: e.Calibration.clone(), negative: maps.Clone(e.Results.negative)}
	for j := range e.builder.objectives {
		f.targets = append(f.targets, e.Event.Surfaces[j].Target)
	}
	f.surfaces = f.past.surfaces[:e.builder.objectives]
	return f
}

// Surfaces are the posteriors of an [Engine] at one time, without pending trials and in units
// of targets. They do not change with it, and several goroutines may use them.
type Surfaces struct{ past *Outlook }

// Detach returns the surfaces as they are now. It costs O(m²).
func (e *Engine) Detach() *Surfaces {
	o := &Outlook{engine: &Engine{Event: e.Event, builder: e.builder, told: e.told, failures: e.failures, unfit: e.unfit, gained: e.gained}, own: true}
	for _, p := range e.surfaces {
		o.surfaces = append(o.surfaces, p.detach())
	}
	o.engine.surfaces = o.surfaces
	for _, p := range e.limited {
		if p != nil {
			p = p.detach()
		}
		o.limited = append(o.limited, p)
	}
	return &Surfaces{o}
}

// Predict is [Engine.Predict] of these surfaces.
func (s *Surfaces) Predict(j int, x *kernel.Points[float64]) (mean, variance []float64) {
	return s.past.Predict(j, x)
}

// Means is [Engine.Means] of these surfaces.
func (s *Surfaces) Means(j int, x *kernel.Points[float64]) []float64 {
	return s.past.surfaces[j].means(x)
}

// LogFeasible is [Outlook.LogFeasible] of these surfaces, without pending trials.
func (s *Surfaces) LogFeasible(x *kernel.Points[float64]) []float64 { return s.past.LogFeasible(x) }

// Limited is [Engine.Limited] of these surfaces.
func (s *Surfaces) Limited() bool { return s.past.engine.Limited() }

// Objectives returns the number of objectives.
func (f *Frozen) Objectives() int { return len(f.surfaces) }

// Predict returns the prediction for every configuration, in the objectives' units. The
// error is that of the first configuration that is not of the study's space.
func (f *Frozen) Predict(configs []space.Config) ([]surrogate.Prediction, error) {
	x := kernel.NewPoints[float64](len(configs), f.spec.Space.Dim(), nil)
	for i, c := range configs {
		if err := f.spec.Space.Encode(c, x.Row(i)); err != nil {
			return nil, err
		}
	}
	return f.At(x), nil
}

// At returns the prediction at every row of x, which are encoded configurations.
func (f *Frozen) At(x *kernel.Points[float64]) []surrogate.Prediction {
	out := make([]surrogate.Prediction, x.Len())
	for j, p := range f.surfaces {
		mean, variance := p.predict(x)
		noise := math.Sqrt(p.noise())
		for i, m := range mean {
			t := &f.targets[j]
			mean := f.show(j, m)
			if !f.negative[f.spec.Objectives[j].Name] {
				mean = max(mean, 0)
			}
			out[i].Mean = append(out[i].Mean, mean)
			sd, n := t.Deviation(m, math.Sqrt(variance[i])), t.Deviation(m, noise)
			if j == 0 {
				n = f.calibration.Noise(f.calibration.spread(t, m, variance[i]+noise*noise), sd)
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
		c, t := f.past.engine.builder.options.Constraints[k], &f.past.engine.Event.Limited[k].Target
		mean, variance := p.predict(x)
		for i, m := range mean {
			shown := c.shown(t, m)
			if !f.negative[c.metric] {
				shown = max(shown, 0)
			}
			out[i].Metrics = append(out[i].Metrics, surrogate.MetricPrediction{
				Metric: c.metric, Mean: shown,
				StdDev: t.Deviation(m, math.Sqrt(variance[i])), Noise: t.Deviation(m, math.Sqrt(p.noise())),
			})
		}
	}
}

// Targets returns the mean of an objective at every row of x, in units of targets, where
// larger is better. The model sees these numbers, in which long tails are compressed. They
// cost far less than At.
func (f *Frozen) Targets(objective int, x *kernel.Points[float64]) []float64 {
	return f.surfaces[objective].means(x)
}

// show converts a target of objective j to the objective's unit.
func (f *Frozen) show(j int, z float64) float64 { return shown(&f.targets[j], f.spec.Objectives[j], z) }

// shown converts a target of an objective to its unit.
func shown(t *Target, o study.Objective, z float64) float64 {
	y := t.Value(z)
	if o.Direction == study.Minimize {
		y = -y
	}
	return y
}
