package model

import (
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Engine is the model that is in effect, with the results since. Its posteriors are
// those of the objectives and, if there have been infeasible trials, of feasibility.
type Engine struct {
	Event   Event
	Results *Results

	author   author
	text     []byte // of the model event
	surfaces []*posterior
	expense  *posterior // nil for none
	told     int        // results that the surfaces have heard of
}

// newEngine returns the model of an event after the first n results.
func newEngine(a author, r *Results, event Event, n int) (*Engine, error) {
	e := &Engine{Event: event, Results: r, author: a, told: n}
	list := r.List[:n]
	for j := range event.Surfaces {
		p, err := event.Surfaces[j].posterior(a.space, list, a.quantity(j), a.options.Cap, event.apart())
		if err != nil {
			return nil, err
		}
		e.surfaces = append(e.surfaces, p)
	}
	if event.Expense != nil {
		var err error
		if e.expense, err = event.Expense.posterior(a.space, list, expense, a.options.Cap, event.apart()); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// follow takes in the results that are new.
func (e *Engine) follow() {
	for ; e.told < len(e.Results.List); e.told++ {
		r := &e.Results.List[e.told]
		for j, p := range e.surfaces {
			for _, o := range e.Event.Surfaces[j].samples(r, e.author.quantity(j)) {
				p.observe(o)
			}
		}
		if e.expense != nil {
			for _, o := range e.Event.Expense.samples(r, expense) {
				e.expense.observe(o)
			}
		}
	}
}

// Told is the number of results that the model has heard of.
func (e *Engine) Told() int { return e.told }

// InducingPoints is m, of the first objective.
func (e *Engine) InducingPoints() int { return e.surfaces[0].rank() }

// Draw is how the inducing points of the first objective were drawn.
func (e *Engine) Draw() Draw {
	if d := e.Event.Surfaces[0].Draw; d != nil {
		return *d
	}
	return Draw{}
}

// Gain is log det V of the first objective.
func (e *Engine) Gain() float64 { return e.surfaces[0].gain() }

// Capped is the number of inducing points of the first surface that would have more
// but for the option cap; 0 if none would.
func (e *Engine) Capped() int {
	for j, p := range e.surfaces {
		if !e.exact(j) {
			return p.rank()
		}
	}
	return 0
}

// exact tells whether all that surface j has heard of is in the span of its inducing
// points, so that it is the posterior itself.
func (e *Engine) exact(j int) bool {
	return !e.Event.Surfaces[j].Capped && e.surfaces[j].rank() < e.surfaces[j].room
}

// State is what the width of the confidence bounds of surface j depends on by theory.
// The effective dimension is that of the model event, and a sample since raises it by
// at most 1.
func (e *Engine) State(j int) bandit.State {
	p, s := e.surfaces[j], &e.Event.Surfaces[j]
	rows := 1
	if s.Fidelity != nil {
		rows += lowRows
	}
	return bandit.State{
		Exact: e.exact(j), InformationGain: max(p.gain(), 0),
		EffectiveDimension: s.dimension() + float64(rows*(e.told-e.Event.Results)),
		Step:               rows*e.told + 1, Bound: p.k.Factor(), NoiseVariance: p.noise(),
	}
}

// Predict returns mean and variance of surface j at every row of x, by the results
// alone: in units of targets, and without noise.
func (e *Engine) Predict(j int, x *kernel.Points[float64]) (mean, variance []float64) {
	return e.surfaces[j].predict(x)
}

// Costs tells whether there is a model of costs.
func (e *Engine) Costs() bool { return e.expense != nil }

// LogCost returns the logarithm of what the configurations at the rows of x will cost.
func (e *Engine) LogCost(x *kernel.Points[float64]) []float64 {
	out, _ := e.expense.predict(x)
	for i, z := range out {
		out[i] = e.Event.Expense.Target.Value(z)
	}
	return out
}

// Noise is the standard deviation of the noise of the first objective, in its units.
func (e *Engine) Noise() float64 {
	s := &e.Event.Surfaces[0]
	return s.Target.Deviation(s.Mean, math.Sqrt(e.surfaces[0].noise()))
}

// Show returns a target of objective j in the objective's units.
func (e *Engine) Show(j int, z float64) float64 {
	y := e.Event.Surfaces[j].Target.Value(z)
	if e.Results.spec.Objectives[j].Direction == study.Minimize {
		y = -y
	}
	return y
}
