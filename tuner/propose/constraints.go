package propose

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/tuner/study"
)

// constraint is what a metric that is told with outcomes must keep to.
type constraint struct {
	metric   string
	low, top float64 // ∓Inf for none
}

// readConstraints reads {"metric": {"min": 0.9, "max": 10}, …}, in order of name.
func readConstraints(o *study.Options) []constraint {
	const field = "proposer.options.constraints"
	raw, given := o.Take("constraints")
	if !given {
		return nil
	}
	var out []constraint
	all := o.Object(field, raw)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		at := field + "." + name
		c := constraint{metric: name, low: math.Inf(-1), top: math.Inf(1)}
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

// String says what must hold: latency at most 10.
func (c constraint) String() string {
	var bounds []string
	if !math.IsInf(c.low, -1) {
		bounds = append(bounds, fmt.Sprintf("at least %v", c.low))
	}
	if !math.IsInf(c.top, 1) {
		bounds = append(bounds, fmt.Sprintf("at most %v", c.top))
	}
	return c.metric + " " + strings.Join(bounds, " and ")
}

// constraintsOf are those that a study's proposer has among its options.
func constraintsOf(c study.Component) []constraint {
	if c.Name != BKB && c.Name != "" {
		return nil
	}
	return readConstraints(study.ReadOptions("proposer.options", c.Options))
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
	return func(o study.Outcome) bool { return kept(constraints, o) }
}

// kept tells whether an outcome keeps to all constraints. What was not told, or is
// NaN, keeps to none.
func kept(constraints []constraint, o study.Outcome) bool {
	for _, c := range constraints {
		m, told := o.Metric(c.metric)
		if v := m.Mean(); !told || !(v >= c.low && v <= c.top) {
			return false
		}
	}
	return true
}

// untold says of which constraints no result knows anything.
func (b *bkb) untold() []string {
	var out []string
	for i, c := range b.options.Constraints {
		if n := len(b.results.list); n > 0 && b.results.constrained[i] == 0 {
			out = append(out, fmt.Sprintf("the constraint on %s cannot be kept: none of %d results was told with it", c.metric, n))
		}
	}
	return out
}
