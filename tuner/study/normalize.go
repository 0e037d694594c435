package study

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/tuner/space"
)

// normalizeOutcome checks a told outcome, sorts its metrics, and applies the rules for
// NaN and infinity.
func (c Spec) normalizeOutcome(o Outcome) (Outcome, error) {
	switch o.State {
	case Completed, Infeasible, Pruned:
		if o.Reason != FailedNone {
			return o, invalid("reason", o.Reason, "only failed trials have a reason", "put the text into the message")
		}
	case Failed:
		switch o.Reason {
		case FailedNone:
			o.Reason = FailedCrash
		case FailedCrash, FailedCancelled, FailedNaN:
		default:
			return o, invalid("reason", o.Reason, "must be crash, cancelled or nan", "")
		}
	default:
		return o, invalid("state", o.State, "must be completed, failed, infeasible or pruned", "")
	}
	if err := checkText("message", o.Message, MaxTextBytes); err != nil {
		return o, err
	}
	if !(o.Cost >= 0) || math.IsInf(o.Cost, 1) {
		return o, invalid("cost", o.Cost, "must be finite and not negative", "leave it out if it is not known")
	}
	metrics, nan, err := c.normalizeMetrics(o.Metrics)
	if err != nil {
		return o, err
	}
	o.Metrics = metrics
	o.Attributes = maps.Clone(o.Attributes)
	if o.State == Completed {
		for _, obj := range c.Objectives {
			if _, ok := o.Metric(obj.Name); !ok {
				var told []string
				for _, m := range metrics {
					told = append(told, m.Name)
				}
				return o, invalid("metrics", strings.Join(told, ", "),
					fmt.Sprintf("a completed trial has all objectives, and %s is missing", obj.Name), "tell it too, or tell that the trial failed")
			}
		}
	}
	if nan && (o.State == Completed || o.State == Pruned) {
		o.State, o.Reason = Failed, FailedNaN
	}
	return o, nil
}

// normalizeMetrics returns a checked copy sorted by name. nan tells whether an objective is NaN.
func (c Spec) normalizeMetrics(metrics []Metric) (out []Metric, nan bool, err error) {
	if len(metrics) > MaxMetrics {
		return nil, false, invalid("metrics", len(metrics), "must be at most 64 metrics", "")
	}
	size := 0
	for _, m := range metrics {
		size += len(m.Name) + 8*len(m.Values)
	}
	if size > MaxOutcomeBytes {
		return nil, false, invalid("metrics", fmt.Sprintf("%d bytes", size), "names and values must be at most 900 KiB together, at 8 bytes a value", "tell fewer replicates, or their mean with its standard error")
	}
	out = slices.Clone(metrics)
	slices.SortFunc(out, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	for i := range out {
		m := &out[i]
		field := "metrics." + m.Name
		if err := checkName("metrics", m.Name); err != nil {
			return nil, false, err
		}
		if i > 0 && out[i-1].Name == m.Name {
			return nil, false, invalid(field, "twice", "each metric is told once", "tell replicates as several values of one metric")
		}
		if len(m.Values) < 1 || len(m.Values) > MaxReplicates {
			return nil, false, invalid(field, len(m.Values), "must have 1 to 10000 values", "")
		}
		if m.HasStdErr && len(m.Values) != 1 {
			return nil, false, invalid(field+".stderr", m.StdErr, "goes with exactly one value", "tell the replicates alone, or their mean with its standard error")
		}
		if !m.HasStdErr {
			m.StdErr = 0
		}
		if !(m.StdErr >= 0) || math.IsInf(m.StdErr, 1) {
			return nil, false, invalid(field+".stderr", m.StdErr, "must be finite and not negative", "leave it out if it is not known")
		}
		m.Values = slices.Clone(m.Values)
		for _, v := range m.Values {
			if err := c.checkValue(field, m.Name, v); err != nil {
				return nil, false, err
			}
			nan = nan || math.IsNaN(v)
		}
	}
	return out, nan, nil
}

// checkValue applies the rules for NaN and ±Inf to a value of a metric.
func (c Spec) checkValue(field, name string, v float64) error {
	i := slices.IndexFunc(c.Objectives, func(o Objective) bool { return o.Name == name })
	switch {
	case i < 0 && (math.IsNaN(v) || math.IsInf(v, 0)):
		return invalid(field, v, "must be finite, because it is not an objective", "leave it out")
	case i >= 0 && c.Objectives[i].Direction.goodInfinity(v):
		return invalid(field, v, fmt.Sprintf("the best possible value of an objective to %s cannot be measured", c.Objectives[i].Direction),
			"tell that the trial failed")
	default:
		return nil
	}
}

// normalizeReports returns a checked copy with the values sorted by name.
func (c Spec) normalizeReports(reports []Report) ([]Report, error) {
	out := slices.Clone(reports)
	size := 0
	for i := range out {
		r := &out[i]
		field := fmt.Sprintf("reports[%d]", i)
		if r.Step < 0 {
			return nil, invalid(field+".step", r.Step, "must not be negative", "")
		}
		if len(r.Values) < 1 || len(r.Values) > MaxMetrics {
			return nil, invalid(field+".values", len(r.Values), "must be 1 to 64 values", "")
		}
		r.Values = slices.Clone(r.Values)
		slices.SortFunc(r.Values, func(a, b NamedValue) int { return cmp.Compare(a.Name, b.Name) })
		for j, v := range r.Values {
			if err := checkName(field+".values", v.Name); err != nil {
				return nil, err
			}
			if j > 0 && r.Values[j-1].Name == v.Name {
				return nil, invalid(field+"."+v.Name, "twice", "each metric is reported once per step", "")
			}
			if err := c.checkValue(field+"."+v.Name, v.Name, v.Value); err != nil {
				return nil, err
			}
			size += len(v.Name) + 8
		}
	}
	if size > MaxReportBytes {
		return nil, invalid("reports", fmt.Sprintf("%d bytes", size), "names and values must be at most 4 MiB together", "split the batch, or report less often")
	}
	return out, nil
}

// newReports returns a checked copy of the reports that the trial's current epoch does not
// have yet, with that epoch.
func (s *Study) newReports(t *Trial, reports []Report) ([]Report, error) {
	reports, err := s.spec.normalizeReports(reports)
	if err != nil {
		return nil, err
	}
	current, top := t.CurrentReports(), t.lastStep
	if len(current) == 0 {
		top = -1
	}
	var known reportIndex // made when a step decreases
	var out []Report
	for _, r := range reports {
		r.Epoch = t.Epoch
		if r.Step <= top {
			if known == nil {
				known = make(reportIndex)
				known.add(current...)
				known.add(out...)
			}
			fresh, err := known.fresh(t.Number, r)
			if err != nil {
				return nil, err
			}
			if r.Values = fresh; len(fresh) == 0 {
				continue
			}
		}
		top = max(top, r.Step)
		out = append(out, r)
		if known != nil {
			known.add(r)
		}
	}
	return out, nil
}

// reportIndex holds reported values.
type reportIndex map[reportKey]float64

type reportKey struct {
	step int64
	name string
}

func (x reportIndex) add(reports ...Report) {
	for _, r := range reports {
		for _, v := range r.Values {
			x[reportKey{r.Step, v.Name}] = v.Value
		}
	}
}

// fresh returns the values of a report that are new. It refuses a value that differs
// from the known one.
func (x reportIndex) fresh(trial int, r Report) (values []NamedValue, err error) {
	for _, v := range r.Values {
		stored, ok := x[reportKey{r.Step, v.Name}]
		switch {
		case !ok:
			values = append(values, v)
		case !sameFloat(stored, v.Value):
			return nil, &ReportConflictError{trial, r.Step, v.Name, stored}
		}
	}
	return values, nil
}

// checkSuggestion checks a suggestion of a proposer, because a faulty proposer must not
// store nonsense.
func (s *Study) checkSuggestion(g Suggestion) error {
	if err := s.spec.Space.Validate(g.Config); err != nil {
		return err
	}
	if g.Seen > s.position {
		return invalid("suggestion.seen", g.Seen, "must not be beyond the log", "")
	}
	if err := checkText("suggestion.phase", g.Phase, MaxTextBytes); err != nil {
		return err
	}
	for field, xs := range map[string][]float64{"mean": g.Mean, "stddev": g.StdDev, "bound": g.Bound, "beta": g.Beta} {
		if len(xs) != 0 && len(xs) != len(s.spec.Objectives) {
			return invalid("suggestion."+field, len(xs), "must have a value for each objective, or none", "")
		}
		if slices.ContainsFunc(xs, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
			return invalid("suggestion."+field, fmt.Sprint(xs), "must be finite", "")
		}
	}
	return nil
}

func checkName(field, s string) error {
	switch {
	case s == "":
		return invalid(field, s, "must not be empty", "")
	case len(s) > MaxNameBytes:
		return invalid(field, s, "must be at most 128 bytes", "shorten it")
	}
	return checkText(field, s, MaxNameBytes)
}

// checkText refuses text that is too long, not UTF-8, or hostile. Longer texts may have tabs and line breaks.
func checkText(field, s string, limit int) error {
	if len(s) > limit {
		return invalid(field, s, fmt.Sprintf("must be at most %d bytes", limit), "shorten it")
	}
	if !utf8.ValidString(s) {
		return invalid(field, s, "must be UTF-8", "")
	}
	for _, r := range s {
		if space.Hostile(r) && (limit <= MaxNameBytes || r != '\n' && r != '\t' && r != '\r') {
			return invalid(field, s, fmt.Sprintf("must not contain the character %U", r), "remove it")
		}
	}
	return nil
}

// checkAttributes checks attributes that will be merged into existing ones.
func checkAttributes(field string, have, set Attributes) error {
	size := 0
	for _, k := range slices.Sorted(maps.Keys(set)) {
		if err := checkName(field, k); err != nil {
			return err
		}
		if err := checkText(field+"."+k, set[k], MaxAttributesBytes); err != nil {
			return err
		}
	}
	for k, v := range merge(have, set) {
		size += len(k) + len(v)
	}
	if size > MaxAttributesBytes {
		return invalid(field, size, "keys and values must be at most 65536 bytes together", "keep large texts elsewhere and store their location")
	}
	return nil
}

// merge returns a new map with the entries of have and set. set takes precedence, and
// an empty value removes its key. The result is nil if it has no entries.
func merge(have, set Attributes) Attributes {
	out := maps.Clone(have)
	for k, v := range set {
		if v == "" {
			delete(out, k)
			continue
		}
		if out == nil {
			out = make(Attributes, len(set))
		}
		out[k] = v
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
