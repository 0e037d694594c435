package model

import (
	"context"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/space"
)

// builder makes model events. Each is a function of the results, the event before and the
// study's seed.
type builder struct {
	space      *space.Space
	seed       uint64
	objectives int
	options    *Options
	ordered    []bool // by coordinate, set on first use
}

// quantity returns the quantity that surface j models.
func (a *builder) quantity(j int) quantity {
	if j < a.objectives {
		return quantity(j)
	}
	return success
}

// event makes the model of the results in list.
func (a *builder) event(ctx context.Context, before Event, list []Result) (Event, error) {
	c := len(list)
	e := Event{Results: c, Fitted: before.Fitted, Active: a.active(list)}
	refit := before.Fitted == 0 || float64(c) >= fitRatio*float64(before.Fitted)
	quantities := a.objectives
	if slices.ContainsFunc(list, func(r Result) bool { return r.Failed }) {
		quantities++
	}
	if refit = refit || len(before.Surfaces) != quantities; refit {
		e.Fitted = c
	}
	e.Outliers = a.outliers(list)
	regular := e.Outliers.regular(list)
	for j := range quantities {
		data := list
		if j < a.objectives {
			data = regular
		}
		var old *Surface
		if j < len(before.Surfaces) {
			old = &before.Surfaces[j]
		}
		s, err := a.surface(ctx, data, a.quantity(j), old, refit || a.quantity(j) == success)
		if err != nil {
			return e, err
		}
		e.Surfaces = append(e.Surfaces, s)
	}
	var err error
	if len(e.Surfaces) > a.objectives {
		if e.Explained, err = a.explained(list, &e.Surfaces[a.objectives]); err != nil {
			return e, err
		}
	}
	for i := range a.options.Constraints {
		var old *Surface
		if i < len(before.Limited) {
			old = before.Limited[i]
		}
		s, err := a.known(ctx, list, limitOf(i), old, refit)
		if err != nil {
			return e, err
		}
		e.Limited = append(e.Limited, s)
	}
	if e.Expense, err = a.known(ctx, list, expense, before.Expense, refit); err != nil {
		return e, err
	}
	if a.hasFar(&e, c) {
		e.Far, err = a.far(ctx, regular)
	}
	return e, err
}

// known makes the model of a quantity that not every result has. It returns nil as long as
// fewer than two results have it.
func (a *builder) known(ctx context.Context, list []Result, q quantity, old *Surface, refit bool) (*Surface, error) {
	n := 0
	for i := range list {
		if _, ok := q.value(&list[i], nil); ok {
			n++
		}
	}
	if n < 2 {
		return nil, nil
	}
	s, err := a.surface(ctx, list, q, old, refit || old == nil)
	return &s, err
}

// surface makes the model of a quantity, starting from the one before if there is one.
func (a *builder) surface(ctx context.Context, list []Result, q quantity, old *Surface, refit bool) (Surface, error) {
	s := Surface{Target: Target{Spread: 1, Scale: 1}, Noise: 0.01}
	if q >= 0 {
		s.Fidelity = newFidelity(list, int(q), old, a.options)
	}
	if q != success {
		var values []float64
		for i := range list {
			if v, ok := q.value(&list[i], &s); ok {
				values = append(values, v)
			}
		}
		s.Target, s.Constant = newTarget(values, a.powers(q)), meanVariance
	}
	k := priorKernel(a.space).WithConstant(s.Constant)
	if old != nil {
		s.Noise = old.Noise
		var err error
		if k, err = k.WithTheta(old.Theta); err != nil {
			return s, err
		}
	}
	if s.Fidelity != nil {
		var err error
		if k, err = k.WithFidelity(s.Fidelity.Length); err != nil {
			return s, err
		}
	}
	if i, ok := q.limit(); ok {
		s.bound(a.options.Constraints[i])
	}
	s.Theta, s.Mean = k.Theta(), 0
	if refit {
		if err := a.fit(ctx, list, q, &s, k); err != nil {
			return s, err
		}
	} else if old != nil {
		s.Mean = old.Mean
	}
	err := a.choose(ctx, list, q, &s, old)
	return s, err
}

// powers reports whether targets of a quantity may have a power. Finite spaces have none, and neither
// have several objectives, whose fronts are ends of a scale.
func (a *builder) powers(q quantity) bool {
	return math.IsInf(a.space.Cardinality(), 1) && (a.objectives == 1 || q < 0)
}

// active returns the mean number of active coordinates.
func (a *builder) active(list []Result) float64 {
	axes, active := a.space.Axes(), make([]bool, a.space.Dim())
	always := slices.DeleteFunc(slices.Clone(axes), func(x space.Axis) bool { return x.Conditional })
	if len(always) == len(axes) {
		return float64(len(axes))
	}
	sum, recent := 0.0, list[max(0, len(list)-256):]
	for _, r := range recent {
		if a.space.ActiveAt(r.X, active) != nil {
			continue
		}
		for c, axis := range axes {
			if axis.Conditional && active[c] {
				sum++
			}
		}
	}
	return float64(len(always)) + sum/float64(len(recent))
}
