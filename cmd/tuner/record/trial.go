// Package record writes trials and studies as JSON, YAML and CSV. It reads them again,
// and Optuna's JSON too.
package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/runner/metric"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Trial is a trial as it is written. Fields that do not apply are left out.
type Trial struct {
	Trial      int                `json:"trial"`
	State      string             `json:"state,omitempty"`
	Feasible   *bool              `json:"feasible,omitempty"` // see Judge
	Reason     string             `json:"reason,omitempty"`
	Message    string             `json:"message,omitempty"`
	Config     space.Config       `json:"config"`
	Values     map[string]Numbers `json:"values,omitempty"`
	StdErr     map[string]Number  `json:"stderr,omitempty"`
	Cost       Number             `json:"cost,omitempty"`
	Attributes map[string]string  `json:"attributes,omitempty"`
	Reports    []Report           `json:"reports,omitempty"`
	Origin     string             `json:"origin,omitempty"`
	Phase      string             `json:"phase,omitempty"`
	Seed       string             `json:"seed,omitempty"`
	Seen       uint64             `json:"seen,omitempty"`
	Mean       []Number           `json:"mean,omitempty"`
	StdDev     []Number           `json:"stddev,omitempty"`
	Bound      []Number           `json:"bound,omitempty"`
	Beta       []Number           `json:"beta,omitempty"`
	Worker     string             `json:"worker,omitempty"`
	Epoch      int                `json:"epoch,omitempty"`
	Expiries   int                `json:"expiries,omitempty"`
	Deadline   time.Time          `json:"deadline,omitzero"`
	Late       []Late             `json:"late,omitempty"`
	Created    time.Time          `json:"created,omitzero"`
	Started    time.Time          `json:"started,omitzero"`
	Ended      time.Time          `json:"ended,omitzero"`
	Edges      []Edge             `json:"edges,omitempty"`
	Source     string             `json:"-"` // tells a finished trial of Optuna from those of other storages
}

// Edge is an end of a parameter's range at which a recommended trial lies.
type Edge struct {
	Parameter string `json:"parameter"`
	End       string `json:"end"` // low or high
	Low       Number `json:"low"`
	High      Number `json:"high"`
}

// OfEdges returns the written form of ends of ranges.
func OfEdges(edges []space.Edge) []Edge {
	var out []Edge
	for _, e := range edges {
		low, _ := e.Low.Number()
		high, _ := e.High.Number()
		end := "low"
		if e.Upper {
			end = "high"
		}
		out = append(out, Edge{e.Parameter, end, Number(low), Number(high)})
	}
	return out
}

// Report is intermediate values at one step.
type Report struct {
	Epoch  int               `json:"epoch,omitempty"`
	Step   int64             `json:"step"`
	Values map[string]Number `json:"values"`
}

// Late is an outcome told under a lease that was taken over.
type Late struct {
	Epoch  int                `json:"epoch"`
	Time   time.Time          `json:"time"`
	State  string             `json:"state"`
	Values map[string]Numbers `json:"values,omitempty"`
}

// OfTrial returns the written form of a trial.
func OfTrial(t study.Trial) Trial {
	r := Trial{
		Trial: t.Number, State: t.State.String(), Config: t.Config, Message: t.Outcome.Message,
		Cost: Number(t.Outcome.Cost), Attributes: t.Attributes, Origin: t.Origin.String(),
		Worker: t.Worker, Epoch: t.Epoch, Expiries: t.Expiries,
		Created: t.Created, Started: t.Started, Ended: t.Ended,
	}
	if t.State == study.Failed {
		r.Reason = t.Outcome.Reason.String()
	}
	if t.State == study.Running {
		r.Deadline = t.Deadline
	}
	r.Values, r.StdErr = ofMetrics(t.Outcome.Metrics)
	if t.Origin == study.OriginSuggested {
		g := t.Suggestion
		r.Phase, r.Seed, r.Seen = g.Phase, strconv.FormatUint(g.Seed, 10), uint64(g.Seen)
		r.Mean, r.StdDev = numbers(g.Mean), numbers(g.StdDev)
		r.Bound, r.Beta = numbers(g.Bound), numbers(g.Beta)
	}
	for _, report := range t.Reports {
		r.Reports = append(r.Reports, ofReport(report))
	}
	for _, l := range t.Late {
		values, _ := ofMetrics(l.Outcome.Metrics)
		r.Late = append(r.Late, Late{l.Epoch, l.Time, l.Outcome.State.String(), values})
	}
	return r
}

func ofMetrics(metrics []study.Metric) (values map[string]Numbers, stderr map[string]Number) {
	values, stderr = make(map[string]Numbers), make(map[string]Number)
	for _, m := range metrics {
		values[m.Name] = m.Values
		if m.HasStdErr {
			stderr[m.Name] = Number(m.StdErr)
		}
	}
	return values, stderr
}

func ofReport(r study.Report) Report {
	out := Report{Epoch: r.Epoch, Step: r.Step, Values: make(map[string]Number)}
	for _, v := range r.Values {
		out.Values[v.Name] = Number(v.Value)
	}
	return out
}

func numbers(xs []float64) []Number {
	var out []Number
	for _, x := range xs {
		out = append(out, Number(x))
	}
	return out
}

// imply sets the state of a trial that has none: completed if there are values, else queued.
func (r *Trial) imply() {
	maps.DeleteFunc(r.Values, func(_ string, v Numbers) bool { return len(v) == 0 }) // null in JSON
	switch {
	case r.State != "":
	case len(r.Values) > 0:
		r.State = study.Completed.String()
	case r.Reason == "":
		r.State = study.Queued.String()
	}
}

// Lacking returns the first objective without a value of a completed trial, or "".
func (r Trial) Lacking(objectives []study.Objective) string {
	for _, o := range objectives {
		if len(r.Values[o.Name]) == 0 && r.State == study.Completed.String() {
			return o.Name
		}
	}
	return ""
}

// Measurable drops values that cannot be measured, the infinities on the good side of the
// objectives, and makes a completed trial failed if it loses one. ok is false if it did.
func (r Trial) Measurable(objectives []study.Objective) (out Trial, ok bool) {
	ok = true
	for _, o := range objectives {
		best := math.Inf(1)
		if o.Direction == study.Minimize {
			best = math.Inf(-1)
		}
		if slices.Contains(r.Values[o.Name], best) {
			if r.State == study.Completed.String() {
				ok = false
				r.State, r.Message = study.Failed.String(), fmt.Sprintf("%s was %v, which cannot be measured", o.Name, best)
			}
			r.Values, r.StdErr = without(r.Values, o.Name), without(r.StdErr, o.Name)
		}
		for i, report := range r.Reports {
			if report.Values[o.Name] == Number(best) {
				r.Reports = slices.Clone(r.Reports)
				r.Reports[i].Values = without(report.Values, o.Name)
			}
		}
	}
	r.Reports = slices.DeleteFunc(slices.Clone(r.Reports), func(report Report) bool { return len(report.Values) == 0 })
	return r, ok
}

func without[V any](m map[string]V, key string) map[string]V {
	out := maps.Clone(m)
	delete(out, key)
	return out
}

// Unfinished tells whether the trial has no outcome.
func (r Trial) Unfinished() bool {
	return r.State == study.Queued.String() || r.State == study.Running.String()
}

// Add returns the command that takes the trial in.
func (r Trial) Add(sp *space.Space) (study.Add, error) {
	config, err := Complete(sp, r.Config)
	if err != nil {
		return study.Add{}, err
	}
	outcome, err := r.outcome()
	if err != nil {
		return study.Add{}, err
	}
	c := study.Add{Config: config, Outcome: outcome, Attributes: r.Attributes}
	for _, report := range r.lastReports() {
		values := make([]study.NamedValue, 0, len(report.Values))
		for _, name := range slices.Sorted(maps.Keys(report.Values)) {
			values = append(values, study.NamedValue{Name: name, Value: float64(report.Values[name])})
		}
		c.Reports = append(c.Reports, study.Report{Step: report.Step, Values: values})
	}
	return c, nil
}

// Complete is sp.Complete for a configuration of texts. It reads the numbers of numeric
// parameters first, so that errors name numbers.
func Complete(sp *space.Space, c space.Config) (space.Config, error) {
	var entries []space.Assignment
	for name, v := range c.All() {
		p, _ := sp.Lookup(name)
		if text, ok := v.AsString(); ok && (p.Type == space.TypeFloat || p.Type == space.TypeInt) {
			v = number(text)
		}
		entries = append(entries, space.Assignment{Name: name, Value: v})
	}
	return sp.Complete(space.NewConfig(entries...))
}

// number is the number that text is, else the text.
func number(text string) space.Value {
	var c space.Config
	if err := c.UnmarshalJSON([]byte(`{"x":` + text + `}`)); err == nil && c.Len() == 1 {
		if v, ok := c.Get("x"); ok && (v.Kind() == space.KindInt || v.Kind() == space.KindFloat) {
			return v
		}
	}
	return space.String(text)
}

// lastReports are those of the last epoch. Earlier ones may contradict them.
func (r Trial) lastReports() []Report {
	last := 0
	for _, report := range r.Reports {
		last = max(last, report.Epoch)
	}
	return slices.DeleteFunc(slices.Clone(r.Reports), func(report Report) bool { return report.Epoch != last })
}

func (r Trial) outcome() (o study.Outcome, err error) {
	if o.State, err = study.ParseState(r.State); err != nil {
		return o, err
	}
	if o.State == study.Failed {
		if o.Reason, err = study.ParseReason(r.Reason); err != nil {
			return o, err
		}
	} else if r.Reason != "" {
		return o, fmt.Errorf("reason %.40q: only failed trials have one", r.Reason)
	}
	o.Message, o.Cost = r.Message, float64(r.Cost)
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		m := study.Metric{Name: name, Values: r.Values[name]}
		if s, ok := r.StdErr[name]; ok {
			m.StdErr, m.HasStdErr = float64(s), true
		}
		o.Metrics = append(o.Metrics, m)
	}
	for name := range r.StdErr {
		if _, ok := r.Values[name]; !ok {
			return o, fmt.Errorf("stderr.%s: there is no value of %s", name, name)
		}
	}
	return o, nil
}

// Study is a study as it is written, with the settings of its spec behind its state.
type Study struct {
	Name     string         `json:"name"`
	Status   string         `json:"status"`
	Finished string         `json:"finished,omitempty"` // why
	Detail   string         `json:"detail,omitempty"`
	Trials   int            `json:"trials"`
	Added    int            `json:"added,omitempty"` // trials that do not count towards max_trials
	Counts   map[string]int `json:"counts,omitempty"`
	Cost     Number         `json:"cost,omitempty"`
	Created  time.Time      `json:"created"`
	Position uint64         `json:"position"`
	spec     study.Spec
}

// Unread is a study that could not be read.
type Unread struct {
	Name   string `json:"name"`
	Status string `json:"status"` // unread
	Reason string `json:"reason"`
}

// OfUnread returns the written form of a study that could not be read.
func OfUnread(s tuner.Study) Unread { return Unread{s.Name, "unread", s.Unread} }

// OfStudy returns the written form of a study.
func OfStudy(s tuner.Study) Study {
	r := Study{
		Name: s.Name, Status: s.Status.String(), Trials: s.Trials, Added: s.Added, Cost: Number(s.Cost),
		Created: s.Created, Position: uint64(s.Position), spec: s.Spec, Counts: make(map[string]int),
	}
	r.spec.Attributes = s.Attributes
	if s.Status == study.StatusFinished {
		r.Finished, r.Detail = s.Finished.Reason.String(), s.Finished.Detail
	}
	for state, n := range s.Counts {
		r.Counts[state.String()] = n
	}
	return r
}

func (s Study) MarshalJSON() ([]byte, error) {
	type state Study // without this method
	out, err := jsonText(state(s))
	for name, at := range s.spec.Settings() {
		if v := setting(at); v != nil && err == nil {
			var text string
			text, err = jsonText(v)
			out = fmt.Sprintf("%s,%q:%s}", out[:len(out)-1], name, text)
		}
	}
	return []byte(out), err
}

// setting returns a setting as it is written, or nil to leave it out.
func setting(at any) any {
	switch at := at.(type) {
	case *time.Duration:
		return at.String()
	case *float64:
		return Number(*at)
	case **float64:
		if *at == nil {
			return nil
		}
	case *uint64:
		return strconv.FormatUint(*at, 10)
	case *study.Attributes:
		if len(*at) == 0 {
			return nil
		}
	case *study.Component:
		if at.Name == "" {
			return nil
		}
		return struct {
			Name    string          `json:"name"`
			Options json.RawMessage `json:"options,omitempty"`
		}{at.Name, json.RawMessage(at.Options)}
	}
	return at
}

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

// Number is a float64 for JSON, where NaN and the infinities are the strings "nan", "inf"
// and "-inf".
type Number float64

func (n Number) MarshalJSON() ([]byte, error) {
	text := metric.FormatNumber(float64(n))
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		text = `"` + text + `"`
	}
	return []byte(text), nil
}

func (n *Number) UnmarshalJSON(data []byte) error {
	x, err := metric.ParseNumber(strings.Trim(string(data), `"`))
	*n = Number(x)
	return err
}

// Numbers are written as one number if there is one, else as a list. None are read from null.
type Numbers []float64

func (n Numbers) MarshalJSON() ([]byte, error) {
	if len(n) == 1 {
		return Number(n[0]).MarshalJSON()
	}
	list := make([]Number, len(n))
	for i, x := range n {
		list[i] = Number(x)
	}
	return json.Marshal(list)
}

func (n *Numbers) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = nil
		return nil
	}
	if len(data) == 0 || data[0] != '[' {
		var x Number
		err := x.UnmarshalJSON(data)
		*n = Numbers{float64(x)}
		return err
	}
	var list []Number
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("an empty list of values")
	}
	*n = make(Numbers, len(list))
	for i, x := range list {
		(*n)[i] = float64(x)
	}
	return nil
}
