package model

import (
	"context"
	"slices"

	"github.com/bkbtuner/bkb/tuner/space"
)

// author writes model events. Each is a function of the results, the event before and the
// study's seed.
type author struct {
	space      *space.Space
	seed       uint64
	objectives int
	options    *Options
	version    int    // of the event
	ordered    []bool // by coordinate, set on first use
	// earlier is an event to remake whose inducing points were drawn by a program before
	// version 4. Its draws are taken as they are.
	earlier *Event
}

// quantity returns the quantity that surface j models.
func (a *author) quantity(j int) quantity {
	switch {
	case j < a.objectives:
		return quantity(j)
	case a.version < limitedVersion:
		return feasibility
	default:
		return success
	}
}

// event makes the model of the results in list.
func (a *author) event(ctx context.Context, before Event, list []Result) (Event, error) {
	c := len(list)
	e := Event{Results: c, Fitted: before.Fitted, Active: a.active(list)}
	refit := before.Fitted == 0 || float64(c) >= fitRatio*float64(before.Fitted)
	quantities := a.objectives
	if label := a.quantity(a.objectives); slices.ContainsFunc(list, func(r Result) bool { return !label.holds(&r) }) {
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
		var old, earlier *Surface
		if a.earlier != nil && j < len(a.earlier.Surfaces) {
			earlier = &a.earlier.Surfaces[j]
		}
		if j < len(before.Surfaces) {
			old = &before.Surfaces[j]
		}
		fits := refit || a.quantity(j).labels() && a.version >= blameVersion
		s, err := a.surface(ctx, data, a.quantity(j), old, earlier, fits)
		if err != nil {
			return e, err
		}
		e.Surfaces = append(e.Surfaces, s)
	}
	var err error
	if len(e.Surfaces) > a.objectives && a.version >= blameVersion {
		gain, err := a.explained(list, &e.Surfaces[a.objectives])
		if err != nil {
			return e, err
		}
		e.Explained = &gain
	}
	if e.Limited, err = a.limited(ctx, list, before.Limited, refit); err != nil {
		return e, err
	}
	if e.Expense, err = a.expense(ctx, list, before.Expense, refit); err != nil {
		return e, err
	}
	if a.hasFar(&e, c) {
		e.Far, err = a.far(ctx, regular)
	}
	return e, err
}

// limited makes the models of the metrics with a limit, starting from those before.
func (a *author) limited(ctx context.Context, list []Result, before []*Surface, refit bool) ([]*Surface, error) {
	if a.version < limitedVersion || len(a.options.Constraints) == 0 {
		return nil, nil
	}
	out := make([]*Surface, len(a.options.Constraints))
	for i := range out {
		var old *Surface
		if i < len(before) {
			old = before[i]
		}
		var err error
		if out[i], err = a.known(ctx, list, limitOf(i), old, nil, refit); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// known makes the model of a quantity that not every result has. It returns nil as long as
// fewer than two results have it.
func (a *author) known(ctx context.Context, list []Result, q quantity, old, earlier *Surface, refit bool) (*Surface, error) {
	n := 0
	for i := range list {
		if _, ok := q.value(&list[i], nil); ok {
			n++
		}
	}
	if n < 2 {
		return nil, nil
	}
	s, err := a.surface(ctx, list, q, old, earlier, refit || old == nil)
	return &s, err
}

// surface makes the model of a quantity, starting from the one before if there is one.
func (a *author) surface(ctx context.Context, list []Result, q quantity, old, earlier *Surface, refit bool) (Surface, error) {
	s := Surface{Target: Target{Spread: 1, Scale: 1}, Noise: 0.01}
	if q >= 0 {
		s.Fidelity = newFidelity(list, int(q), old, a.options)
	}
	if !q.labels() {
		var values []float64
		for i := range list {
			if v, ok := q.value(&list[i], &s); ok {
				values = append(values, v)
			}
		}
		s.Target = newTarget(values, a.options.KeepTail)
	}
	k := priorKernel(a.space)
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
		s.bound(a.options.Constraints[i], a.version)
	}
	s.Theta, s.Mean = k.Theta(), 0
	if refit {
		f := fitter{dim: a.space.Dim(), seed: a.seed, minNoise: a.options.MinNoise, failures: a.version >= blameVersion}
		if err := f.fit(ctx, list, q, &s, k); err != nil {
			return s, err
		}
	} else if old != nil {
		s.Mean = old.Mean
	}
	d := dictionary{space: a.space, seed: a.seed, limit: a.options.Cap, sampler: a.options.Sampler, apart: a.earlier != nil}
	if err := d.choose(ctx, list, q, &s, old); err != nil {
		return s, err
	}
	if a.earlier != nil {
		s.drawnBy(earlier)
	}
	return s, nil
}

// drawnBy copies the draw of inducing points of an earlier program, if there was one, and
// its effective dimension.
func (s *Surface) drawnBy(earlier *Surface) {
	if earlier != nil {
		s.Dimension = earlier.Dimension // rounding differs
	}
	if s.Draw.Sampler != AllSampler && earlier != nil {
		s.Dictionary, s.Rows, s.Epochs = earlier.Dictionary, earlier.Rows, earlier.Epochs
		s.Capped, s.Gain = earlier.Capped, earlier.Gain
	}
	s.Draw = nil
}

// expense makes the model of the logarithm of the cost, starting from the one before if
// there is one.
func (a *author) expense(ctx context.Context, list []Result, old *Surface, refit bool) (*Surface, error) {
	var earlier *Surface
	if a.earlier != nil {
		earlier = a.earlier.Expense
	}
	return a.known(ctx, list, expense, old, earlier, refit)
}

// active returns the mean number of active coordinates.
func (a *author) active(list []Result) float64 {
	axes := a.space.Axes()
	sum := 0.0
	always, conditional := 0, []int(nil)
	for c, axis := range axes {
		if axis.Conditional {
			conditional = append(conditional, c)
		} else {
			always++
		}
	}
	if len(conditional) == 0 {
		return float64(always)
	}
	active := make([]bool, len(axes))
	recent := list[max(0, len(list)-256):]
	for _, r := range recent {
		if a.space.ActiveAt(r.X, active) != nil {
			continue
		}
		for _, c := range conditional {
			if active[c] {
				sum++
			}
		}
	}
	return float64(always) + sum/float64(len(recent))
}
