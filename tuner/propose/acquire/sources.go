package acquire

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// sources is the policy. The first source with a proposal makes the suggestion for a trial. A source that
// does not speak has none.
func (a *acquisition) sources() []func(*turn) ([]float64, error) {
	return []func(*turn) ([]float64, error){
		a.arm,        // the arm with the largest bound, beside other configurations
		a.repetition, // the best trial again, while noise and unexplained effects look the same
		a.quadratic,  // the top of a quadratic through the best results, in turns that exploit
		a.evolve,     // a sample of CMA-ES, in a long study that does not improve
		a.bound,      // the upper confidence bound, mean or with limits expected improvement, unless that gains nothing
		a.otherBasin, // expected improvement by a model of thinned results
		a.expected,   // expected improvement
	}
}

// bound maximises μ + b·σ, in turns that exploit μ, with what failures, limits, several
// objectives and costs make of it (score.go). It speaks unless that gains nothing.
func (a *acquisition) bound(t *turn) ([]float64, error) {
	t.pool = a.search(*t)
	if a.gainsNothing(*t) {
		return nil, nil
	}
	return a.choose(*t)
}

// improves reports whether the expected improvement on the best mean may be the score of a turn.
func (a *acquisition) improves(t turn) bool {
	return len(a.spec.Objectives) == 1 && !t.exploit && t.cost == nil && !a.options.Theory && !a.pulls() && len(a.eliteOf(a.engine)) > 0
}

// improve makes the expected improvement on the best mean the score of a turn.
func (a *acquisition) improve(t *turn) {
	best := a.standing(a.engine).best()
	t.best, t.phase = &best, study.PhaseExplore
}

// leastExpected is the least improvement that a suggestion should promise, in standard deviations of the
// targets.
const leastExpected = 1e-3

// gainsNothing reports whether the first candidate is expected to improve the best by next to nothing. With
// narrow bounds that is so for all of a basin that is known, while another one may be better.
func (a *acquisition) gainsNothing(t turn) bool {
	if !a.improves(t) {
		return false
	}
	at := t.pool.Order()[0]
	gain, _, _ := bandit.LogImprovement(a.standing(a.engine).best(), t.pool.Mean[at], t.pool.Variance[at])
	return gain < math.Log(leastExpected)
}

// otherBasin searches other basins and branches (basin.go).
func (a *acquisition) otherBasin(t *turn) ([]float64, error) {
	if a.engine.Event.Far == nil {
		return nil, nil
	}
	b := a.newBasin()
	x, err := b.pick(t.trial)
	if x != nil {
		t.phase, a.view = study.PhaseExplore, b.outlook
	}
	return x, err
}

// expected maximises the expected improvement on the best mean, as bound does where metrics have limits. Where
// trials fail it takes what bound has found, because the edge of what fails would take them. It always has a
// proposal.
func (a *acquisition) expected(t *turn) ([]float64, error) {
	if !t.doubts {
		a.improve(t)
		t.pool = a.search(*t)
	}
	return a.choose(*t)
}

// The best trial is repeated once from firstRepeat results on, and once more from
// secondRepeat on, unless there are as many repetitions anyway. A repetition that failed or
// was pruned counts, because another one would end in the same way.
const (
	firstRepeat  = 20
	secondRepeat = 100
)

// repetition returns the best measured trial if it is worth repeating. Noise and
// effects that the model does not explain look the same to it, until a configuration is
// measured twice. The recommendation depends on the difference.
func (a *acquisition) repetition(t *turn) ([]float64, error) {
	r, wanted := a.engine.Results, 0
	for _, n := range []int{firstRepeat, secondRepeat} {
		if len(r.List) >= n {
			wanted++
		}
	}
	if !a.options.Repeat || len(a.spec.Objectives) > 1 || a.pulls() ||
		max(r.Repeats.Freedom, r.Again) >= wanted || a.engine.Event.Surfaces[0].Noise < little || len(a.eliteOf(a.engine)) == 0 {
		return nil, nil
	}
	x := r.List[a.elite.ranked[0]].X
	if slices.ContainsFunc(a.running(), func(y []float64) bool { return slices.Equal(x, y) }) {
		return nil, nil // one at a time
	}
	t.phase = study.PhaseRepeat
	return slices.Clone(x), nil
}

// quadratic returns the best point of a quadratic through the best results, in turns that exploit, where one
// explains them well and expects more there than the best. It returns no point else, or if the study has it,
// or if it is more likely to fail than not.
func (a *acquisition) quadratic(t *turn) ([]float64, error) {
	if !t.exploit || !a.options.Quadratic || !a.plain(a.engine) {
		return nil, nil
	}
	var best []bandit.Evaluation
	for _, i := range a.elite.ranked[:min(len(a.elite.ranked), bandit.MostOfQuadratic(a.spec.Space.Dim()))] {
		r := &a.engine.Results.List[i]
		best = append(best, bandit.Evaluation{X: r.X, Y: valueOf(r)})
	}
	q := bandit.FitQuadratic(best)
	if q == nil {
		return nil, nil
	}
	x := q.Top()
	c, err := a.decode(x)
	if err != nil || q.At(x) <= 0 || a.repeats(c, x) || a.fails(x) {
		return nil, err
	}
	return x, nil
}

// fails reports whether a trial is more likely to fail than not, by the model of success.
func (a *acquisition) fails(x []float64) bool {
	return a.outlook.Doubts() && a.outlook.LogFeasible(kernel.NewPoints(1, len(x), x))[0] < -math.Ln2
}

const (
	leastDim = 2  // coordinates from which on there is an evolution
	mostDim  = 16 // coordinates up to which there is one
	// leastInVain is the least number of suggestions of the model without an improvement before samples.
	leastInVain = 5
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
			y = valueOf(one)
		}
		v.search.Tell(bandit.Evaluation{X: one.X, Y: y}, one.Evolved, int64(one.Seen), int64(one.End))
	}
}

// evolve returns a sample of an evolution strategy that the study does not have, or no point if it finds none.
// Of eight trials two exploit by default, and five are samples. Where there is a model of other basins, only
// three are.
func (a *acquisition) evolve(t *turn) ([]float64, error) {
	lane := t.trial % 8
	mine := lane != 5
	if a.engine.Event.Far != nil {
		mine = lane%2 == 0 && lane < 5
	}
	if !mine || t.exploit || a.elite.stale < max(leastInVain, a.spec.Space.Dim()) || !a.mayEvolve(a.engine) {
		return nil, nil
	}
	a.evolution.follow(a.engine.Results, a.spec.Space.Dim(), a.spec.Seed)
	s := a.evolution.search.Distribution()
	if s == nil {
		return nil, nil
	}
	rng := stream.New(stream.Derive(a.trialSeed(t.trial), "evolve", 0))
	for range maxPassed {
		x := s.Sample(rng)
		c, err := a.decode(x)
		if err != nil {
			return nil, err
		}
		if a.options.OnDuplicate == Replicate || !a.has(c) {
			t.phase = study.PhaseEvolve
			return x, nil
		}
	}
	return nil, nil
}
