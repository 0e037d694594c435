package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bkbtuner/bkb/tuner/runner/metric"
	"github.com/bkbtuner/bkb/tuner/study"
)

// reading collects the values in the output of a command. It is safe for concurrent use.
type reading struct {
	objectives []study.Objective

	mu         sync.Mutex
	result     []study.Metric // of lines without a step
	lastStep   []study.Metric // of the last line with one
	besides    []study.Metric // of the last line without an objective
	infeasible *string
	unread     string         // the last line with an objective that is not written as name=NUMBER
	reports    []study.Report // not yet taken
	fresh      chan struct{}  // holds a token if there are reports
}

func newReading(objectives []study.Objective) *reading {
	return &reading{objectives: objectives, fresh: make(chan struct{}, 1)}
}

// said is the content of one line of output.
type said struct {
	step       int64
	hasStep    bool
	metrics    []study.Metric
	infeasible *string
}

// line reads one line of output.
func (r *reading) line(text string) {
	s := parseLine(text)
	if s.infeasible != nil {
		r.mu.Lock()
		r.infeasible = s.infeasible
		r.mu.Unlock()
		return
	}
	s.metrics = slices.DeleteFunc(s.metrics, func(m study.Metric) bool { return !r.tellable(m) })
	if !slices.ContainsFunc(s.metrics, func(m study.Metric) bool { return r.objective(m.Name) >= 0 }) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(s.metrics) > 0 {
			r.besides = s.metrics
		}
		if name, _, _ := r.meant(text); name != "" {
			r.unread = text
		}
		return
	}
	s.metrics = s.metrics[:min(len(s.metrics), study.MaxMetrics)]
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.hasStep {
		r.result = update(r.result, s.metrics)
		return
	}
	r.lastStep = update(nil, s.metrics)
	if len(r.reports) < study.MaxReports {
		r.reports = append(r.reports, study.Report{Step: s.step, Values: means(s.metrics)})
		select {
		case r.fresh <- struct{}{}:
		default:
		}
	}
}

func (r *reading) objective(name string) int {
	return slices.IndexFunc(r.objectives, func(o study.Objective) bool { return o.Name == name })
}

// tellable tells whether a study accepts a metric.
func (r *reading) tellable(m study.Metric) bool {
	if len(m.Name) > study.MaxNameBytes || len(m.Values) > study.MaxReplicates {
		return false
	}
	return r.objective(m.Name) >= 0 || !slices.ContainsFunc(m.Values, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}

// update replaces metrics by those of the same name.
func update(have, set []study.Metric) []study.Metric {
	for _, m := range set {
		if i := slices.IndexFunc(have, func(h study.Metric) bool { return h.Name == m.Name }); i >= 0 {
			have[i] = m
		} else {
			have = append(have, m)
		}
	}
	return have[:min(len(have), study.MaxMetrics)]
}

func means(metrics []study.Metric) []study.NamedValue {
	out := make([]study.NamedValue, len(metrics))
	for i, m := range metrics {
		out[i] = study.NamedValue{Name: m.Name, Value: m.Mean()}
	}
	return out
}

// take returns up to n reports that arrived since the last call.
func (r *reading) take(n int) []study.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, len(r.reports))
	out := r.reports[:n:n]
	r.reports = r.reports[n:]
	return out
}

// outcome returns the metrics that count. Those of lines without a step replace those of
// the last line with one. missing names an objective without a value.
func (r *reading) outcome() (metrics []study.Metric, infeasible *string, missing string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	metrics = update(slices.Clone(r.lastStep), r.result)
	for _, o := range r.objectives {
		if !slices.ContainsFunc(metrics, func(m study.Metric) bool { return m.Name == o.Name }) {
			missing = o.Name
			break
		}
	}
	return metrics, r.infeasible, missing
}

// other returns the metrics of the last line that had no objective.
func (r *reading) other() []study.Metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.besides
}

// advice says how to write the last line that names an objective and was not read. It is
// empty if there is none.
func (r *reading) advice() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, value, matched := r.meant(r.unread)
	switch {
	case name == "":
		return ""
	case strings.Contains(value, ","):
		return fmt.Sprintf("%q looks like a decimal comma, so write %s=%s", matched, name, strings.Replace(value, ",", ".", 1))
	default:
		return fmt.Sprintf("write %q as %s=%s", matched, name, value)
	}
}

// maxMeant is the most bytes of a line in which a value is looked for.
const maxMeant = 200

// meant returns the objective and the number that a line most likely reports, as the line
// has them.
func (r *reading) meant(text string) (name, value, matched string) {
	if text = strings.TrimSpace(text); len(text) > maxMeant {
		return "", "", ""
	}
	for _, o := range r.objectives {
		for from := text; ; {
			before, after, ok := strings.Cut(from, o.Name)
			if !ok {
				break
			}
			if m := valueAfter.FindStringSubmatch(after); m != nil && !inName.MatchString(before) {
				return o.Name, m[1], o.Name + m[0]
			}
			from = after
		}
	}
	return "", "", ""
}

var (
	// valueAfter is what follows a name: signs that people put there, and a number.
	valueAfter = regexp.MustCompile(`^["']?\s*[:=]?\s*["']?([-+]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?)`)
	// inName matches what comes before the end of a longer name.
	inName = regexp.MustCompile(`[\w./-]$`)
)

// parseLine reads words name=value, or a JSON object.
func parseLine(text string) said {
	text = strings.TrimSpace(text)
	if reason, ok := strings.CutPrefix(text, "infeasible="); ok {
		return said{infeasible: &reason}
	}
	if strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") {
		return parseObject([]byte(text))
	}
	var s said
	for word := range strings.FieldsSeq(text) {
		name, value, ok := strings.Cut(strings.TrimRight(word, ",;"), "=")
		if !ok || !isName(name) {
			continue
		}
		if name == "step" {
			if step, err := strconv.ParseInt(value, 10, 64); err == nil && step >= 0 {
				s.step, s.hasStep = step, true
			}
			continue
		}
		if m, err := metric.Parse([]string{name + "=" + value}, ""); err == nil {
			s.metrics = update(s.metrics, m)
		}
	}
	return s
}

func isName(s string) bool {
	for i, r := range s {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789./-", r)) {
			return false
		}
	}
	return s != ""
}

// parseObject reads a JSON object of numbers and lists of numbers. Other fields are left
// out.
func parseObject(text []byte) said {
	var s said
	var fields map[string]json.RawMessage
	if json.Unmarshal(metric.QuoteWords(text), &fields) != nil {
		return s
	}
	for name, raw := range fields {
		var reason string
		switch {
		case name == "infeasible":
			if json.Unmarshal(raw, &reason) == nil {
				s.infeasible = &reason
			}
		case name == "step":
			if step, err := strconv.ParseInt(string(raw), 10, 64); err == nil && step >= 0 {
				s.step, s.hasStep = step, true
			}
		default:
			if values, ok := numbers(raw); ok && isName(name) {
				s.metrics = append(s.metrics, study.Metric{Name: name, Values: values})
			}
		}
	}
	slices.SortFunc(s.metrics, func(a, b study.Metric) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func numbers(raw json.RawMessage) ([]float64, bool) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		items = []json.RawMessage{raw}
	}
	var out []float64
	for _, item := range items {
		x, err := metric.ParseNumber(string(bytes.Trim(item, `"`)))
		if err != nil {
			return nil, false
		}
		out = append(out, x)
	}
	return out, len(out) > 0
}

// maxLine is the most bytes that are read of a line of output. The rest is only logged.
const maxLine = 64 << 10

// lines is a writer that calls f with each line, cut to maxLine bytes.
type lines struct {
	f    func(string)
	part []byte
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, ok := bytes.Cut(p, []byte{'\n'})
		if room := maxLine - len(l.part); room > 0 {
			l.part = append(l.part, line[:min(room, len(line))]...)
		}
		if !ok {
			return n, nil
		}
		l.flush()
		p = rest
	}
}

// flush ends the line begun.
func (l *lines) flush() {
	if len(l.part) > 0 {
		l.f(string(l.part))
	}
	l.part = l.part[:0]
}
