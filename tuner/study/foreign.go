package study

import (
	"fmt"
	"time"
)

// Change records changes of a study of another optimiser. They take effect together.
type Change struct{ Changes []Foreign }

func (c Change) decide(s *Study, _ time.Time) (Reply, []Body, error) {
	if !s.spec.Foreign() {
		return Reply{}, nil, invalid("study", s.spec.Proposer.Name, "takes suggestions from its own proposer", "use a study of Optuna")
	}
	trials := len(s.foreign)
	bodies := make([]Body, len(c.Changes))
	for i, f := range c.Changes {
		if err := checkForeign(f, trials); err != nil {
			return Reply{}, nil, err
		}
		if f.Trial == trials {
			trials++
		}
		bodies[i] = f
	}
	if trials > MaxTrials {
		return Reply{}, nil, s.budgetError()
	}
	return Reply{}, bodies, nil
}

// checkForeign checks a change of a study that has so many trials.
func checkForeign(f Foreign, trials int) error {
	switch {
	case f.Trial < OfStudy || f.Trial > trials:
		return fmt.Errorf("trial %d does not follow the %d trials of the study", f.Trial, trials)
	case f.Trial == trials && f.State == 0:
		return fmt.Errorf("trial %d is new and has no state", f.Trial)
	case f.Trial == OfStudy && f.State != 0, f.State > Pruned:
		return fmt.Errorf("trial %d cannot have the state %s", f.Trial, f.State)
	}
	return nil
}

func (s *Study) applyForeign(f Foreign) error {
	if !s.spec.Foreign() {
		return fmt.Errorf("the study is not one of another optimiser")
	}
	if err := checkForeign(f, len(s.foreign)); err != nil || f.State == 0 {
		return err
	}
	if f.Trial == len(s.foreign) {
		s.foreign = append(s.foreign, 0)
		s.foreigners++
	} else {
		s.counts[s.foreign[f.Trial]]--
	}
	s.foreign[f.Trial] = f.State
	s.counts[f.State]++
	return nil
}

// foreignCommand tells whether a study of another optimiser takes a command.
func foreignCommand(cmd Command) bool {
	switch cmd.(type) {
	case Change, Create:
		return true
	default:
		return false
	}
}
