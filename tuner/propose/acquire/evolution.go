package acquire

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
)

const (
	leastDim = 2  // coordinates from which on there is an evolution
	mostDim  = 16 // coordinates up to which there is one
)

// evolution is the fold of the results into a [bandit.Evolution].
type evolution struct {
	begun, told int // of the results that were followed
	search      *bandit.Evolution
}

// Evolvable reports whether an evolution can search a space. All coordinates are ordered,
// unconditional, and continuous or nearly so.
func Evolvable(sp *space.Space) bool {
	if d := sp.Dim(); d < leastDim || d > mostDim || len(sp.Constraints()) > 0 {
		return false
	}
	return !slices.ContainsFunc(sp.Axes(), func(a space.Axis) bool {
		return !a.Ordered || a.Conditional || a.Levels > 0 && a.Levels <= fineLevels
	})
}

// mayEvolve reports whether an evolution may make suggestions in a study.
func (c *Chooser) mayEvolve(e *model.Engine) bool {
	from := c.options.EvolveFrom
	return from > 0 && len(e.Results.List) >= from && c.plain(e) && !e.Blames()
}

// plain reports whether a study only has outcomes of one objective on an [Evolvable] space. Reports,
// costs and limits have not been measured with quadratics or an evolution.
func (c *Chooser) plain(e *model.Engine) bool {
	return len(c.spec.Objectives) == 1 && Evolvable(c.spec.Space) && !e.Limited() &&
		e.Event.Surfaces[0].Fidelity == nil && e.Event.Expense == nil
}

// follow adds the new results.
func (v *evolution) follow(r *model.Results, dim int, seed uint64) {
	if v.search == nil || v.begun != r.Begun {
		*v = evolution{begun: r.Begun, search: bandit.NewEvolution(dim, seed)}
	}
	for ; v.told < len(r.List); v.told++ {
		one := &r.List[v.told]
		y := math.Inf(-1)
		if one.Y != nil && one.Feasible {
			y = min(max(one.Y[0].Value, -math.MaxFloat64), math.MaxFloat64)
		}
		v.search.Tell(bandit.Evaluation{X: one.X, Y: y}, one.Evolved, int64(one.Seen), int64(one.End))
	}
}

// sample returns a configuration that the study does not have, or no point if it finds none.
func (a *acquisition) sample(trial int) ([]float64, error) {
	a.evolution.follow(a.engine.Results, a.spec.Space.Dim(), a.spec.Seed)
	s := a.evolution.search.Distribution()
	if s == nil {
		return nil, nil
	}
	rng := stream.New(stream.Derive(a.trialSeed(trial), "evolve", 0))
	for range maxPassed {
		x := s.Sample(rng)
		c, err := a.decode(x)
		if err != nil {
			return nil, err
		}
		if a.options.OnDuplicate == Replicate || !a.has(c) {
			return x, nil
		}
	}
	return nil, nil
}
