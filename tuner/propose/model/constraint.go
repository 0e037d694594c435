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

// measured returns a measurement of the metric, negated if there is only a maximum. So larger
// values are further inside, as larger values of objectives are better. It is its own inverse.
func (c Constraint) measured(m Measure) Measure {
	if c.negated() {
		m.Value = -m.Value
	}
	return m
}

func (c Constraint) negated() bool { return math.IsInf(c.low, -1) }

// shown converts a target of the metric to its unit.
func (c Constraint) shown(t *Target, z float64) float64 {
	if c.negated() {
		return -t.Value(z)
	}
	return t.Value(z)
}

// bound sets the limits of the constraint as targets of the surface.
func (s *Surface) bound(c Constraint) {
	s.unbounded = true
	s.low, s.top = math.Inf(-1), math.Inf(1)
	switch {
	case c.negated():
		s.low = s.Target.exact(-c.top)
	case math.IsInf(c.top, 1):
		s.low = s.Target.exact(c.low)
	default:
		s.low, s.top = s.Target.exact(c.low), s.Target.exact(c.top)
	}
}

// excess returns how far a target is beyond the limits.
func (s *Surface) excess(y float64) float64 { return max(s.low-y, 0) + max(y-s.top, 0) }

// distance returns how far a target is from the next limit.
func (s *Surface) distance(y float64) float64 { return min(math.Abs(y-s.low), math.Abs(y-s.top)) }

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
func (c Constraint) String() string { return c.metric + " " + c.Limits() }

// Limits returns the limits in words, such as "at most 10".
func (c Constraint) Limits() string {
	var bounds []string
	if !math.IsInf(c.low, -1) {
		bounds = append(bounds, fmt.Sprintf("at least %v", c.low))
	}
	if !math.IsInf(c.top, 1) {
		bounds = append(bounds, fmt.Sprintf("at most %v", c.top))
	}
	return strings.Join(bounds, " and ")
}

// Violation returns by how much an outcome breaks the constraints, summed over their metrics and
// in units of the limits that are broken, or of 1 where a limit is 0. It is +Inf if a metric was
// not told or is NaN, and 0 if the outcome keeps all.
func Violation(constraints []Constraint, o study.Outcome) float64 {
	sum := 0.0
	for _, c := range constraints {
		m, told := o.Metric(c.metric)
		v := m.Mean()
		if !told {
			v = math.NaN()
		}
		sum += c.violation(v)
	}
	return sum
}

// violation is that of one value.
func (c Constraint) violation(v float64) float64 {
	limit := c.top
	switch {
	case v >= c.low && v <= c.top:
		return 0
	case math.IsNaN(v):
		return math.Inf(1)
	case v < c.low:
		limit = c.low
	}
	if limit == 0 {
		return math.Abs(v)
	}
	return math.Abs(v-limit) / math.Abs(limit)
}

// Warnings returns messages about settings of the study that have no effect, and what to do.
func (e *Engine) Warnings() []string {
	r, n := e.Results, len(e.Results.List)
	var out []string
	for i, c := range r.options.Constraints {
		if n > 0 && r.constrained[i] == 0 {
			out = append(out, fmt.Sprintf("the constraint on %s cannot be kept: none of %d results was told with this metric; tell it with each outcome, or correct its name in a new study", c.metric, n))
		}
	}
	if r.options.Cost != CostIgnored && e.expense == nil {
		known := 0
		for i := range r.List {
			if r.List[i].Cost > 0 {
				known++
			}
		}
		what, remedy := "were told with a cost", "tell a cost with each outcome (--cost)"
		if r.options.Cost == CostSeconds {
			what, remedy = "have a running time", "run trials, because added ones have no time"
		}
		out = append(out, fmt.Sprintf("the proposer's option cost has no effect: %d of %d results %s, and a model of costs needs 2; %s, or leave the option out", known, n, what, remedy))
	}
	if r.spec.MaxCost > 0 && r.Spent == 0 {
		text := "the study's max_cost is not spent: "
		if costly := r.Costly; costly > 0 { // a trial that was handed out would have spent it
			text += fmt.Sprintf("%d of %d results have a cost, but they are added trials, which do not count; end the study by max_trials too", costly, n)
		} else {
			text += fmt.Sprintf("none of %d results was told with a cost, and only told costs count; tell a cost with each outcome (--cost)", n)
		}
		if r.options.Cost != CostIgnored {
			text += "; costs have their full weight until some is spent"
		}
		out = append(out, text)
	}
	return out
}
