package trials

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/runner/metric"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// csvSink writes trials as CSV.
type csvSink struct {
	w      *csv.Writer
	header []string
}

func newCSVSink(out io.Writer, spec study.Spec) (cli.Sink, error) {
	s := &csvSink{csv.NewWriter(out), record.CSVHeader(spec)}
	return s, s.w.Write(s.header)
}

func (s *csvSink) Put(v any) error {
	row, err := v.(record.Trial).CSVRow(s.header)
	if err != nil {
		return err
	}
	return s.w.Write(row)
}

func (s *csvSink) End() error {
	s.w.Flush()
	return s.w.Error()
}

// breaksMark marks a completed trial that breaks a constraint.
const breaksMark = "!"

// valueText is the value of a parameter with at most six digits.
func valueText(v space.Value) string {
	if x, ok := v.AsFloat(); ok {
		return fmt.Sprintf("%.6g", x)
	}
	return v.String()
}

// MeanText is the value of an objective with at most six digits, and its standard error.
func MeanText(r record.Trial, name string) string {
	values, ok := r.Values[name]
	if !ok {
		return ""
	}
	m := study.Metric{Name: name, Values: values}
	if s, ok := r.StdErr[name]; ok {
		m.StdErr, m.HasStdErr = float64(s), true
	}
	text := metric.FormatNumber(m.Mean())
	if short := fmt.Sprintf("%.6g", m.Mean()); len(short) < len(text) {
		text = short
	}
	if s, ok := m.StandardError(); ok {
		text += fmt.Sprintf("±%.2g", s)
	}
	return text
}

// trialSink writes trials in a format. A width of 0 means no limit for tables.
func trialSink(out io.Writer, form string, spec study.Spec, width int) (cli.Sink, error) {
	switch form {
	case "csv":
		return newCSVSink(out, spec)
	case "table":
		return newTrialTable(out, spec, false, width), nil
	default:
		return &cli.ListSink{Out: out, Format: form}, nil
	}
}

// trialTable writes trials as a table.
type trialTable struct {
	*cli.Table
	spec    study.Spec
	metrics []string // objectives, and metrics with a limit
	brief   bool     // without worker and message
}

// newTrialTable returns a table for trials. A width of 0 means no limit.
func newTrialTable(out io.Writer, spec study.Spec, brief bool, width int) *trialTable {
	const least = 6 // of a text
	header := []string{"TRIAL", "STATE"}
	t := &trialTable{spec: spec, brief: brief}
	for _, o := range spec.Objectives {
		t.metrics = append(t.metrics, o.Name)
	}
	for _, name := range propose.ConstrainedMetrics(spec.Proposer) {
		if !slices.Contains(t.metrics, name) {
			t.metrics = append(t.metrics, name)
		}
	}
	for _, name := range t.metrics {
		header = append(header, strings.ToUpper(name))
	}
	var drop []int
	cuts := map[int]int{}
	for _, p := range spec.Space.Parameters() {
		if drop = append(drop, len(header)); p.Type != space.TypeFloat && p.Type != space.TypeInt { // numbers are whole
			cuts[len(header)] = least
		}
		header = append(header, p.Name)
	}
	slices.Reverse(drop)
	if !brief {
		n := len(header)
		drop = slices.Concat([]int{n}, drop, []int{n + 1})
		cuts[n], cuts[n+1] = least, 2*least
		header = append(header, "WORKER", "MESSAGE")
	}
	t.Table = cli.NewTable(out, header...)
	t.Width, t.Record, t.Least, t.Drop, t.Colors = width, brief, cuts, drop, map[int]func(string) string{1: cli.StateColor}
	return t
}

func (t *trialTable) Put(v any) error {
	r := v.(record.Trial)
	state := r.State
	if r.Reason != "" {
		state += "(" + r.Reason + ")"
	}
	if r.Feasible != nil && !*r.Feasible && r.State == study.Completed.String() {
		state += " " + breaksMark
	}
	row := []string{fmt.Sprint(r.Trial), state}
	for _, name := range t.metrics {
		row = append(row, MeanText(r, name))
	}
	for _, p := range t.spec.Space.Parameters() {
		text := ""
		if v, ok := r.Config.Get(p.Name); ok {
			text = t.atMost(valueText(v), 32)
		}
		row = append(row, text)
	}
	if !t.brief {
		row = append(row, r.Worker, t.atMost(r.Message, 60))
	}
	t.Row(row...)
	return nil
}

// atMost cuts a text, unless the width of the table has no limit or it may be a list.
func (t *trialTable) atMost(text string, n int) string {
	if t.Width == 0 || t.Record {
		return text
	}
	return cli.Short(text, n)
}
