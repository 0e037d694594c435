package acquire

import (
	"slices"
	"sync"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/cells"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// arms are the configurations of a space, or of its branches, that are finite and few. The
// policy for them is BKB on arms. Where outcomes have noise, the one with the largest upper
// confidence bound is measured, however often it was before. The posterior is that of all
// results, in which the measurements of an arm are one input with a count.
type arms struct {
	points *kernel.Points[float64] // encoded
	known  map[uint64]bool         // by fingerprint
	whole  bool                    // the space has no other configurations
}

const (
	mostArms   = 256
	mostLevels = 64      // of a parameter of a branch with arms
	mostCells  = 1 << 14 // that are looked at
)

// newArms lists the arms of a space. There are none if they are more than mostArms.
func newArms(sp *space.Space) *arms {
	a := &arms{known: make(map[uint64]bool), whole: true}
	many := make(map[string]int) // parameters with so many values that no arm has them
	for _, axis := range sp.Axes() {
		if axis.Levels == 0 || axis.Levels > mostLevels && axis.Ordered {
			many[axis.Parameter] = 1
		}
	}
	all, err := cells.Of(sp, 1, many)
	if err != nil || all.Total() > mostCells {
		return new(arms)
	}
	var rows []float64
	for i := range all.Total() {
		c := all.At(i)
		for name := range many {
			if _, active := c.Get(name); active {
				c = space.Config{}
				break
			}
		}
		if c.Len() == 0 && sp.Dim() > 0 {
			a.whole = false
			continue
		}
		row := make([]float64, sp.Dim())
		if sp.Encode(c, row) != nil { // it breaks a constraint of the space
			continue
		}
		if a.known[model.Fingerprint(c)] = true; len(a.known) > mostArms {
			return new(arms)
		}
		rows = append(rows, row...)
	}
	if len(a.known) > 0 {
		a.points = kernel.NewPoints(len(a.known), sp.Dim(), rows)
	}
	return a
}

// faint is the noise, in units of what the model sees, below which repetitions show that there is
// next to none.
const faint = 1e-2

// noisy reports whether outcomes may differ when a configuration is measured again. The model
// sees noise, and repetitions, if there are any, do not show that it is something else.
func (a *acquisition) noisy() bool {
	e := a.engine
	if a.options.Exact || a.options.OnDuplicate != Resample || e.Event.Surfaces[0].Noise <= quietest {
		return false
	}
	return !(e.Results.Repeats.Most() < faint*e.Noise())
}

// pulls reports whether all configurations are arms that may be measured again.
func (a *acquisition) pulls() bool { return a.arms.whole && a.arms.points != nil && a.noisy() }

// armBounds has the width √(2 log(2t + 1)) of the bounds of arms, as UCB1 (Auer, Cesa-Bianchi and
// Fischer, 2002). That of other suggestions is too narrow here. With 0.5 in place of 2, the best of
// six arms was found in 91 % of the studies of an experiment, and now in 98 %.
var armBounds = bandit.Practical{C: 2, Dim: 1}

// armWidth is b of the bounds of arms in units of that of other suggestions.
func (a *acquisition) armWidth() float64 {
	r := a.engine.Results
	return armBounds.Beta(bandit.State{Step: len(r.List) + len(r.Pending) + len(a.chosen)}) / a.beta[0]
}

// The periods of the turns of one arm, and of several, beside other configurations.
const (
	armEvery  = 4
	armsEvery = 2
)

// arm returns the arm with the largest bound, in the turns of arms beside a space that has other
// configurations, if that is above the best mean.
func (a *acquisition) arm(t *turn) ([]float64, error) {
	every := armsEvery
	if len(a.arms.known) == 1 {
		every = armEvery
	}
	if a.arms.whole || a.arms.points == nil || t.trial%every != 1 || len(a.spec.Objectives) != 1 || len(a.eliteOf(a.engine)) == 0 || !a.noisy() {
		return nil, nil
	}
	w := *t
	w.exploit, w.cost, w.best, w.width = false, nil, nil, a.armWidth()
	scores, err := (&scorer{a, w}).Score(a.arms.points)
	if err != nil {
		return nil, err
	}
	best := bandit.Largest(scores.Score, 1)[0]
	if scores.Score[best] <= a.standing(a.engine).best() {
		return nil, nil
	}
	t.phase, t.width = study.PhaseModel, w.width
	return slices.Clone(a.arms.points.Row(best)), nil
}

// MostListed is the largest number of configurations of a space that are all scored.
const MostListed = 2048

// finite is all configurations of a finite space.
type finite struct {
	space   *space.Space
	numbers func() (*cells.Cells, error)
	listed  func() *kernel.Points[float64] // encoded, nil if they are many
}

func newFinite(sp *space.Space) finite {
	f := finite{space: sp, numbers: sync.OnceValues(func() (*cells.Cells, error) { return cells.Of(sp, cells.MaxPoints, nil) })}
	f.listed = sync.OnceValue(f.enumerated)
	return f
}

func (f finite) enumerated() *kernel.Points[float64] {
	sp := f.space
	if sp.Cardinality() > MostListed {
		return nil
	}
	all, err := f.numbers()
	if err != nil || all.Total() > MostListed {
		return nil
	}
	var rows []float64
	row := make([]float64, sp.Dim())
	for i := range all.Total() {
		if err := sp.Encode(all.At(i), row); err == nil {
			rows = append(rows, row...)
		} else if len(sp.Constraints()) == 0 {
			return nil
		}
	}
	return kernel.NewPoints(len(rows)/len(row), len(row), rows)
}

// mostOutside is how many configurations that break the space's constraints are passed in
// the search for one. Where few of 10¹⁰ keep them, numbering all would take hours.
const mostOutside = 20_000

// first returns a configuration for which ok is true. If there is none, or none before
// mostOutside that break the constraints, found is false. The error is a
// *[study.InvalidError] where there are too many to number.
func (f finite) first(ok func(space.Config) bool) (c space.Config, found bool, err error) {
	numbers, err := f.numbers()
	if err != nil {
		return c, false, err
	}
	constrained, outside := len(f.space.Constraints()) > 0, 0
	for i := range numbers.Total() {
		c := numbers.At(i)
		if constrained && f.space.Validate(c) != nil {
			if outside++; outside == mostOutside {
				break
			}
			continue
		}
		if ok(c) {
			return c, true, nil
		}
	}
	return c, false, nil
}
