package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Constraint is a limit on a metric that is told with outcomes.
type Constraint struct {
	metric   string
	low, top float64 // ∓Inf for none
}

// Metric returns the name of the metric.
func (c Constraint) Metric() string { return c.metric }

// ReadConstraints reads the option constraints, {"metric": {"min": 0.9, "max": 10}, …}, in
// order of name.
func ReadConstraints(o *study.Options) []Constraint {
	const field = "proposer.options.constraints"
	raw, given := o.Take("constraints")
	if !given {
		return nil
	}
	var out []Constraint
	all := o.Object(field, raw)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		at := field + "." + name
		c := Constraint{metric: name, low: math.Inf(-1), top: math.Inf(1)}
		bounds := o.Object(at, all[name])
		for _, side := range slices.Sorted(maps.Keys(bounds)) {
			v, err := strconv.ParseFloat(string(bounds[side]), 64)
			switch {
			case err != nil:
				o.Fail(at+"."+side, string(bounds[side]), "must be a finite number", "")
			case side == "min":
				c.low = v
			case side == "max":
				c.top = v
			default:
				o.Fail(at+"."+side, string(bounds[side]), "is neither min nor max", `write {"max": 10}`)
			}
		}
		if len(bounds) == 0 || c.low > c.top {
			o.Fail(at, string(all[name]), "must be a min, a max, or a min that is not above a max", `write {"max": 10}`)
		}
		out = append(out, c)
	}
	return out
}

// String returns the constraint in words, such as "latency at most 10".
func (c Constraint) String() string {
	var bounds []string
	if !math.IsInf(c.low, -1) {
		bounds = append(bounds, fmt.Sprintf("at least %v", c.low))
	}
	if !math.IsInf(c.top, 1) {
		bounds = append(bounds, fmt.Sprintf("at most %v", c.top))
	}
	return c.metric + " " + strings.Join(bounds, " and ")
}

// Kept reports whether an outcome keeps all constraints. A metric that was not told, or is
// NaN, keeps none.
func Kept(constraints []Constraint, o study.Outcome) bool {
	for _, c := range constraints {
		m, told := o.Metric(c.metric)
		if v := m.Mean(); !told || !(v >= c.low && v <= c.top) {
			return false
		}
	}
	return true
}
