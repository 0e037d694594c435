package model

import (
	"iter"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Engine is the model that is in effect, with the results since its event. Its posteriors are
// those of the objectives, of metrics with limits and, if there have been failures, of success.
type Engine struct {
	Event     Event
	Effective study.Position // of the event
	Results   *Results
	// Calibration compares earlier predictions with outcomes.
	Calibration *Calibration

	// Outliers are the results that the model leaves out, ascending.
	Outliers []int

	posteriors
	builder  builder
	text     []byte     // of the model event
	expense  *posterior // nil for none
	distant  *distant   // nil for none
	within   float64    // see Surface.leaveOneOut
	told     int        // results that the surfaces have received
	failures int        // among them
	unfit    bool       // one of them was told as infeasible
	gained   float64    // since the event (see Blames)
}

// posteriors are those of the objectives and success, and of Event.Limited, nil for none.
type posteriors struct{ surfaces, limited []*posterior }

// InducingPoints returns m of the first objective.
func (p *posteriors) InducingPoints() int { return p.surfaces[0].Rank() }

// Predict returns mean and variance of surface j at every row of x, in units of targets, and
// without noise. Those of an [Engine] are from the results only.
func (p *posteriors) Predict(j int, x *kernel.Points[float64]) (mean, variance []float64) {
	return p.surfaces[j].predict(x)
}

// Means returns the means that Predict returns, for far less, up to rounding.
func (p *posteriors) Means(j int, x *kernel.Points[float64]) []float64 { return p.surfaces[j].means(x) }

// newEngine returns the model of an event after the first n results.
func newEngine(a builder, r *Results, event Event, n int) (*Engine, error) {
	e := &Engine{
		Event: event, Results: r, builder: a, told: n,
		posteriors: posteriors{make([]*posterior, len(event.Surfaces)), make([]*posterior, len(event.Limited))},
	}
	list := r.List[:n]
	for i := range list {
		e.count(&list[i])
	}
	regular := event.Outliers.regular(list)
	for q, part := range e.parts() {
		data := list
		if q >= 0 {
			data = regular
		}
		if i, ok := q.limit(); ok {
			part.surface.bound(a.options.Constraints[i])
		}
		var err error
		if *part.posterior, err = part.surface.posterior(a.space, data, q, a.options.Cap); err != nil {
			return nil, err
		}
	}
	var err error
	if e.within, err = event.Surfaces[0].leaveOneOut(a.space, regular); err != nil {
		return nil, err
	}
	e.distant, err = newDistant(&e.builder, &e.Event, list)
	if event.Outliers != nil {
		e.Outliers = slices.Clone(event.Outliers.Results)
	}
	return e, err
}

// part is the surface of a quantity, and the place of its posterior.
type part struct {
	surface   *Surface
	posterior **posterior
}

// parts yields the quantities that are modelled.
func (e *Engine) parts() iter.Seq2[quantity, part] {
	return func(yield func(quantity, part) bool) {
		for j := range e.Event.Surfaces {
			if !yield(e.builder.quantity(j), part{&e.Event.Surfaces[j], &e.surfaces[j]}) {
				return
			}
		}
		for i, s := range e.Event.Limited {
			if s != nil && i < len(e.builder.options.Constraints) && !yield(limitOf(i), part{s, &e.limited[i]}) {
				return
			}
		}
		if e.Event.Expense != nil {
			yield(expense, part{e.Event.Expense, &e.expense})
		}
	}
}

// follow adds the new results.
func (e *Engine) follow() {
	for ; e.told < len(e.Results.List); e.told++ {
		r := &e.Results.List[e.told]
		outlier := e.Event.Outliers.includes(&e.builder, e.Results.List[:e.told+1], e.told)
		if outlier {
			e.Outliers = append(e.Outliers, e.told)
		}
		e.hearSuccess(r)
		for q, part := range e.parts() {
			if outlier && q >= 0 {
				continue
			}
			for _, o := range part.surface.samples(r, q) {
				(*part.posterior).observe(o)
			}
		}
		if e.distant != nil && !outlier {
			e.distant.observe(&e.builder, e.Event.Far, e.Results.List, e.told)
		}
	}
}

// LeavesOut returns a function that reports whether the model leaves out the outcome of a trial,
// or with an epoch its late result. It is nil if the model leaves out none.
func (e *Engine) LeavesOut() func(trial, epoch int) bool {
	if len(e.Outliers) == 0 {
		return nil
	}
	left := make(map[[2]int]bool)
	for _, i := range e.Outliers {
		left[[2]int{e.Results.List[i].Trial, e.Results.List[i].Epoch}] = true
	}
	return func(trial, epoch int) bool { return left[[2]int{trial, epoch}] }
}

// Constraints returns the limits on metrics.
func (e *Engine) Constraints() []Constraint { return e.builder.options.Constraints }

// Gain returns log det V of the first objective.
func (e *Engine) Gain() float64 { return e.surfaces[0].LogDet() }

// Capped reports whether a surface would have more inducing points without the option cap.
func (e *Engine) Capped() bool {
	for _, part := range e.parts() {
		if p := *part.posterior; part.surface.Capped || p.Rank() >= p.room {
			return true
		}
	}
	return false
}

// State returns the quantities that the theoretical width of the confidence bounds of surface j
// depends on. The posterior is exact if all data are in the span of the inducing points. The effective
// dimension is that of the model event, and each later sample raises it by at most 1.
func (e *Engine) State(j int) bandit.State {
	p, s := e.surfaces[j], &e.Event.Surfaces[j]
	rows := 1
	if s.Fidelity != nil {
		rows += lowRows
	}
	return bandit.State{
		Exact: !s.Capped && p.Rank() < p.room, InformationGain: max(p.LogDet(), 0),
		EffectiveDimension: s.dimension() + float64(rows*(e.told-e.Event.Results)),
		Step:               rows*e.told + 1, Bound: p.k.Bound(), NoiseVariance: p.NoiseVariance(),
	}
}

// LogCost returns the logarithm of the predicted cost of the configuration at each row of x.
func (e *Engine) LogCost(x *kernel.Points[float64]) []float64 {
	out, _ := e.expense.predict(x)
	for i, z := range out {
		out[i] = e.Event.Expense.Target.Value(z)
	}
	return out
}

// LengthScales returns the length scale of the first objective along each ordered parameter.
func (e *Engine) LengthScales() map[string]float64 {
	out := make(map[string]float64)
	axes := e.builder.space.Axes()
	ordered, _ := layout(e.builder.space)
	for _, c := range ordered {
		out[axes[c].Parameter] = e.surfaces[0].k.LengthScale(c)
	}
	return out
}

// PriorMean returns the mean that the first objective has far from all results, in its units. Of
// ordered coordinates nothing is known there.
func (e *Engine) PriorMean() float64 {
	far := slices.Repeat([]float64{1e9}, e.builder.space.Dim())
	return e.Show(0, e.Means(0, kernel.NewPoints(1, len(far), far))[0])
}

// Noise returns the standard deviation of the noise of the first objective, in its units.
func (e *Engine) Noise() float64 {
	s := &e.Event.Surfaces[0]
	return s.Target.Deviation(s.Mean, math.Sqrt(e.surfaces[0].NoiseVariance()))
}

// expected converts the mean target of objective j to a prediction in the objective's unit. A quantity
// that was never negative is not predicted to be.
func (e *Engine) expected(j int, z float64) float64 {
	y := e.Show(j, z)
	if !e.Results.negative[e.Results.spec.Objectives[j].Name] {
		y = max(y, 0)
	}
	return y
}

// Show converts a target of objective j to the objective's units.
func (e *Engine) Show(j int, z float64) float64 {
	y := e.Event.Surfaces[j].Target.Value(z)
	if e.Results.spec.Objectives[j].Direction == study.Minimize {
		y = -y
	}
	return y
}
