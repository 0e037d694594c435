package acquire

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
)

// maxPassed is how many points drawn by chance are passed over, because the study has
// them, for one suggestion.
const maxPassed = 64

// choose returns the best candidate that the study does not have, unless
// duplicates are welcome, rather one that is not known; then anything that it does
// not have; and at last the best candidate or [ErrExhausted], as the options say.
func (a *acquisition) choose(w wish, pool *bandit.Pool, rng *rand.Rand) (space.Config, []float64, error) {
	order := pool.Order()
	known := a.known(w, pool)
	if i := slices.IndexFunc(order, func(i int) bool { return !known(i) }); i > 0 {
		order = slices.Concat(order[i:], order[:i])
	}
	for _, i := range order {
		x := slices.Clone(pool.X[i])
		c, err := a.decode(x)
		if err != nil {
			return c, nil, err
		}
		if a.options.OnDuplicate == Replicate || !a.has(c) {
			return c, x, nil
		}
	}
	for range maxPassed {
		x := make([]float64, a.spec.Space.Dim())
		for c := range x {
			x[c] = rng.Float64()
		}
		c, err := a.decode(x)
		if err != nil {
			return c, nil, err
		}
		if !a.has(c) {
			return c, x, nil
		}
	}
	c, found, err := a.untried()
	switch {
	case err != nil:
		return c, nil, err
	case found:
		x, err := a.engine.Results.Encode(c)
		return c, x, err
	case a.options.OnDuplicate == Reuse:
		return c, nil, ErrExhausted
	}
	x := slices.Clone(pool.X[order[0]])
	c, err = a.decode(x)
	return c, x, err
}

// untried returns a configuration that the study does not have; found is false
// if it has all, or if there are too many to know. It looks at one more than the study
// has, at most.
func (a *acquisition) untried() (c space.Config, found bool, err error) {
	c, found, err = a.whole.first(func(c space.Config) bool { return !a.has(c) })
	if err != nil && a.options.OnDuplicate != Reuse {
		return c, false, nil
	}
	return c, found, err
}

// has tells whether the study has a configuration already.
func (a *acquisition) has(c space.Config) bool {
	_, now := a.added[model.Fingerprint(c)]
	return now || a.engine.Results.Has(c)
}

// What a candidate that is near to a trial must promise for it to be run.
const (
	knownTo  = 0.6  // standard deviations of the noise
	nearTo   = 0.1  // length scales to the nearest inducing point
	quietest = 1e-4 // noise variance from which on what is near is a replicate, and welcome
)

// known tells of candidate i whether to run it would tell nothing: a trial was
// near, and by the model it is no better than the best and not uncertain, either
// by more than a part of the noise. So a study that has pinned an optimum down looks
// elsewhere. But suggestions that exploit go on pinning down: by a study's own
// measure they gain little, and yet regrets are orders of magnitude lower by it. Where
// noise is more than quietest, with several objectives, or where
// duplicates are welcome, nothing is known in this sense.
func (a *acquisition) known(w wish, pool *bandit.Pool) func(i int) bool {
	noise := a.engine.Event.Surfaces[0].Noise
	if len(a.spec.Objectives) > 1 || a.options.OnDuplicate == Replicate || w.exploit || noise > quietest {
		return func(int) bool { return false }
	}
	best, resolved := a.elite.now().best(), knownTo*math.Sqrt(noise)
	return func(i int) bool {
		return pool.Variance[i] < resolved*resolved && pool.Mean[i]-best < resolved && a.outlook.Near(pool.X[i], nearTo)
	}
}
