package acquire

import (
	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/study"
)

// sources is the policy. The first source that speaks and has a proposal makes the suggestion
// for a trial.
func (a *acquisition) sources(t *turn) []bandit.Source {
	s := source{a, t}
	return []bandit.Source{
		armShare{s},
		repetition{s},     // the best trial again, while noise and unexplained effects look the same
		cmaes{s},          // a sample of CMA-ES, in a long study that does not improve
		localQuadratic{s}, // the top of a quadratic through the best results, in turns that exploit
		otherBasin{s},     // expected improvement by a model of thinned results
		bound{s},          // the upper confidence bound, or the mean, near the best or anywhere
	}
}

// source is what each source has.
type source struct {
	*acquisition
	turn *turn
}

// repetition is the best trial again (repeat.go).
type repetition struct{ source }

func (s repetition) Speaks() bool { return s.repeated() != nil }

func (s repetition) Propose() ([]float64, error) {
	s.turn.phase = study.PhaseRepeat
	return s.repeated(), nil
}

// cmaes is a sample of an evolution strategy (evolution.go). Of eight trials two exploit by
// default, and five are samples. Where there is a model of other basins, only three are.
type cmaes struct{ source }

func (s cmaes) Speaks() bool {
	lane := s.turn.trial % basinEvery
	mine := lane != basinEvery-3
	if s.engine.Event.Far != nil {
		mine = lane%2 == 0 && lane < basinEvery-3
	}
	return mine && !s.turn.exploit && s.elite.stale >= s.inVain() && s.mayEvolve(s.engine)
}

func (s cmaes) Propose() ([]float64, error) {
	x, err := s.sample(s.turn.trial)
	if x != nil {
		s.turn.phase = study.PhaseEvolve
	}
	return x, err
}

// localQuadratic is the top of a quadratic through the best results (quadratic.go).
type localQuadratic struct{ source }

func (s localQuadratic) Speaks() bool { return s.turn.exploit && s.mayFitQuadratic(s.engine) }

func (s localQuadratic) Propose() ([]float64, error) { return s.quadraticTop(*s.turn) }

// otherBasin is a search of other basins and branches (basin.go). One of basinEvery suggestions
// is, and where the study does not improve, all are that do not exploit.
type otherBasin struct{ source }

func (s otherBasin) Speaks() bool {
	mine := s.turn.trial%basinEvery == basinEvery-3 || s.stuck()
	return s.engine.Event.Far != nil && !s.turn.exploit && mine && !s.pulls()
}

func (s otherBasin) Propose() ([]float64, error) {
	b := s.newBasin()
	if b == nil {
		return nil, nil
	}
	x, err := b.pick(s.turn.trial)
	if x != nil {
		s.turn.phase, s.view = study.PhaseExplore, b.outlook
	}
	return x, err
}

// bound maximises μ + b·σ, in turns that exploit μ, with what failures, limits, several
// objectives and costs make of it (score.go). It always has a proposal.
type bound struct{ source }

func (s bound) Speaks() bool { return true }

func (s bound) Propose() ([]float64, error) {
	return s.choose(*s.turn, s.search(*s.turn, s.turn.seed, s.turn.rng), s.turn.rng)
}
