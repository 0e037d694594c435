package propose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

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

// Constrained returns the constraints that [Keeps] checks, one after another, as text for people.
func Constrained(c study.Component) []string { return each(c, model.Constraint.String) }

// ConstrainedMetrics returns the names of the metrics that [Keeps] checks.
func ConstrainedMetrics(c study.Component) []string { return each(c, model.Constraint.Metric) }

func each(c study.Component, text func(model.Constraint) string) []string {
	var out []string
	for _, k := range constraintsOf(c) {
		out = append(out, text(k))
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

// Settle makes a completed outcome infeasible if the infinity of a metric breaks its limit. A
// study stores numbers that are not finite for objectives only, so such metrics with limits are
// left out, and the message says so.
func Settle(spec study.Spec, o study.Outcome) study.Outcome {
	if o.State != study.Completed {
		return o
	}
	var told []string
	for _, c := range constraintsOf(spec.Proposer) {
		m, ok := o.Metric(c.Metric())
		if !ok || storable(m) || slices.ContainsFunc(spec.Objectives, func(o study.Objective) bool { return o.Name == m.Name }) {
			continue
		}
		says := "which is not stored, so the trial breaks the limit " + c.Limits()
		if v := m.Mean(); math.IsInf(v, 0) && model.Violation([]model.Constraint{c}, o) > 0 {
			o.State, says = study.Infeasible, "and must be "+c.Limits()
		} else if math.IsInf(v, 0) {
			says += "; tell a finite number that keeps it"
		}
		o.Metrics = slices.DeleteFunc(slices.Clone(o.Metrics), func(other study.Metric) bool { return other.Name == m.Name })
		told = append(told, fmt.Sprintf("%s is %v, %s", m.Name, m.Mean(), says))
	}
	o.Message = cmp.Or(o.Message, strings.Join(told, "; "))
	return o
}

// storable reports whether all values of a metric are finite.
func storable(m study.Metric) bool {
	return !slices.ContainsFunc(m.Values, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}
