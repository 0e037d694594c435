package propose

import (
	"slices"

	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// constraintsOf returns the constraints among the options of a study's proposer.
func constraintsOf(c study.Component) []model.Constraint {
	if c.Name != BKB && c.Name != "" {
		return nil
	}
	return model.ReadConstraints(study.ReadOptions("proposer.options", c.Options))
}

// Constrained returns the constraints that [Keeps] checks, one after another, as text for
// people.
func Constrained(c study.Component) []string {
	var out []string
	for _, k := range constraintsOf(c) {
		out = append(out, k.String())
	}
	return out
}

// ConstrainedMetrics returns the names of the metrics that [Keeps] checks.
func ConstrainedMetrics(c study.Component) []string {
	var out []string
	for _, k := range constraintsOf(c) {
		if name := k.Metric(); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Keeps returns a function that reports whether an outcome keeps the constraints among the
// options of a study's proposer. Without constraints every outcome does.
func Keeps(c study.Component) func(study.Outcome) bool {
	constraints := constraintsOf(c)
	return func(o study.Outcome) bool { return model.Kept(constraints, o) }
}
