package acquire

import (
	"cmp"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
)

// maxPassed is how many random points that the study already has are skipped for one suggestion.
const maxPassed = 64

// choose returns the best candidate of a turn that the study does not have. With replicate the study may
// have it. Without such a candidate it looks for any configuration that the study does not have. As a last
// resort it returns the best candidate or [ErrExhausted], depending on the options.
func (a *acquisition) choose(t turn) ([]float64, error) {
	if x, err := a.first(t.pool); x != nil || err != nil {
		return x, err
	}
	for range maxPassed {
		x := make([]float64, a.spec.Space.Dim())
		for c := range x {
			x[c] = t.rng.Float64()
		}
		c, err := a.decode(x)
		if err != nil {
			return nil, err
		}
		if !a.repeats(c, x) {
			return x, nil
		}
	}
	c, found, err := a.finite.first(func(c space.Config) bool { return !a.has(c) })
	switch {
	case found:
		return a.engine.Results.Encode(c)
	case a.options.OnDuplicate == Reuse:
		return nil, cmp.Or(err, ErrExhausted)
	}
	return slices.Clone(t.pool.X[t.pool.Order()[0]]), nil
}

// first returns the first of the candidates that may be suggested, or no point.
func (a *acquisition) first(pool *bandit.Pool) ([]float64, error) {
	noisy := a.noisy()
	for _, i := range pool.Order() {
		x := slices.Clone(pool.X[i])
		c, err := a.decode(x)
		if err != nil {
			return nil, err
		}
		if a.options.OnDuplicate == Replicate || !a.repeats(c, x) || noisy && a.arms.known[model.Fingerprint(c)] {
			return x, nil
		}
	}
	return nil, nil
}

// repeats reports whether the study has a configuration already, with the point x, or one that is
// the same up to rounding.
func (a *acquisition) repeats(c space.Config, x []float64) bool {
	same := func(y []float64) bool { return a.same(x, y) }
	return a.has(c) || slices.ContainsFunc(a.engine.Results.List, func(r model.Result) bool { return same(r.X) }) || slices.ContainsFunc(a.running(), same)
}

// has reports whether the study has a configuration already.
func (a *acquisition) has(c space.Config) bool {
	_, now := a.added[model.Fingerprint(c)]
	return now || a.engine.Results.Has(c)
}

const (
	quietest = 1e-4 // noise variance up to which measuring again teaches nothing
	sameTo   = 1e-6 // share of each range within which two configurations are the same
)

// rounding is how far two configurations that are the same may be apart in each coordinate.
// Integers, steps and categories have no rounding.
func rounding(axes []space.Axis) []float64 {
	out := make([]float64, len(axes))
	for c, axis := range axes {
		if axis.Levels == 0 {
			out[c] = sameTo
		}
	}
	return out
}

// same reports whether two points are the same up to rounding.
func (c *Chooser) same(x, y []float64) bool {
	for i, v := range x {
		if math.Abs(v-y[i]) > c.rounding[i] {
			return false
		}
	}
	return true
}
