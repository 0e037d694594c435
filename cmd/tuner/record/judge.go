package record

import (
	"strings"

	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Judge tells which trials of a study keep to the constraints on its outcomes.
type Judge struct {
	constraints []string
	keeps       func(study.Outcome) bool
}

// NewJudge returns the judge of a study's trials.
func NewJudge(spec study.Spec) Judge {
	return Judge{propose.Constrained(spec.Proposer), propose.Keeps(spec.Proposer)}
}

// Constraints are the constraints as text, such as "size at least 0.6, weight at most 1".
func (j Judge) Constraints() string { return strings.Join(j.constraints, ", ") }

// Breaks tells whether a trial has completed and breaks a constraint, so that it cannot
// be the best.
func (j Judge) Breaks(t study.Trial) bool { return t.State == study.Completed && !j.keeps(t.Outcome) }

// OfTrial is the function OfTrial, and says of a trial that completed or was infeasible,
// in a study that has constraints, whether it is feasible.
func (j Judge) OfTrial(t study.Trial) Trial {
	r := OfTrial(t)
	if len(j.constraints) > 0 && (t.State == study.Completed || t.State == study.Infeasible) {
		feasible := t.State == study.Completed && j.keeps(t.Outcome)
		r.Feasible = &feasible
	}
	return r
}
