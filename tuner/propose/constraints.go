package propose

import (
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// constraintsOf are those that a study's proposer has among its options.
func constraintsOf(c study.Component) []model.Constraint {
	if c.Name != BKB && c.Name != "" {
		return nil
	}
	return model.ReadConstraints(study.ReadOptions("proposer.options", c.Options))
}

// Constrained says, for people, to what [Keeps] holds outcomes, one constraint after
// another.
func Constrained(c study.Component) []string {
	var out []string
	for _, k := range constraintsOf(c) {
		out = append(out, k.String())
	}
	return out
}

// Keeps returns what tells whether an outcome keeps to the constraints that a study's
// proposer has among its options; without constraints every outcome does.
func Keeps(c study.Component) func(study.Outcome) bool {
	constraints := constraintsOf(c)
	return func(o study.Outcome) bool { return model.Kept(constraints, o) }
}
