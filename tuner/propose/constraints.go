package propose

import (
	"slices"

	"github.com/bkbtuner/bkb/tuner/propose/acquire"
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

// Violation returns a function that returns by how much an outcome breaks the constraints among
// the options of a study's proposer, 0 if it keeps them, and +Inf if a metric is missing.
func Violation(c study.Component) func(study.Outcome) float64 {
	constraints := constraintsOf(c)
	return func(o study.Outcome) float64 { return model.Violation(constraints, o) }
}

// Keeps returns a function that reports whether an outcome keeps these constraints.
func Keeps(c study.Component) func(study.Outcome) bool {
	violation := Violation(c)
	return func(o study.Outcome) bool { return violation(o) == 0 }
}

// Best returns the best trials of a study by their measurements, see [acquire.Best]. It does not
// need a model.
func Best(v View) []int { return acquire.Best(v, constraintsOf(v.Spec().Proposer)) }
