package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/record"
	"github.com/bkbtuner/bkb/tuner/runner/metric"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// format is a --format flag.
type format struct {
	value   string
	allowed []string
}

// formatFlag adds a --format flag whose first allowed value is the default.
func formatFlag(cmd *cobra.Command, allowed ...string) *format {
	f := &format{allowed: allowed}
	cmd.Flags().VarP(f, "format", "f", "the form of the output: "+strings.Join(allowed, ", "))
	f.value = allowed[0]
	cmd.Flag("format").DefValue = allowed[0]
	register(cmd, "format", words(allowed...))
	return f
}

func (f *format) String() string { return f.value }
func (f *format) Type() string   { return "form" }

func (f *format) Set(s string) error {
	if !slices.Contains(f.allowed, s) {
		return fmt.Errorf("must be %s", strings.Join(f.allowed, ", "))
	}
	f.value = s
	return nil
}

// jsonLine writes a value as JSON on one line. Characters that play tricks on
// terminals are escaped.
func jsonLine(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if hostile(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes(), nil
}

// writeJSON writes a value as JSON and a line end.
func writeJSON(out io.Writer, v any) error {
	line, err := jsonLine(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}

// writeYAML writes a value as YAML: what its JSON says, one field a line.
func writeYAML(out io.Writer, v any) error {
	line, err := jsonLine(v)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(line, &node); err != nil {
		return err
	}
	block(&node)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&node); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	_, err = out.Write(b.Bytes())
	return err
}

// block takes JSON's style from a YAML tree, except from small things.
func block(n *yaml.Node) {
	small := n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Kind != yaml.ScalarNode })
	if !small {
		n.Style = 0
	}
	for _, c := range n.Content {
		if c.Kind == yaml.ScalarNode && strings.ContainsFunc(c.Value, hostile) {
			continue // stays quoted
		}
		block(c)
	}
}

// sink writes things one by one.
type sink interface {
	put(v any) error
	end() error
}

// listSink writes JSON (a list), JSON lines or YAML.
type listSink struct {
	out    io.Writer
	format string
	n      int
}

func (s *listSink) put(v any) error {
	s.n++
	switch s.format {
	case "yaml":
		return writeYAML(s.out, []any{v})
	case "jsonl":
		return writeJSON(s.out, v)
	}
	line, err := jsonLine(v)
	if err != nil {
		return err
	}
	before := ",\n "
	if s.n == 1 {
		before = "["
	}
	_, err = fmt.Fprintf(s.out, "%s%s", before, line)
	return err
}

func (s *listSink) end() error {
	text := ""
	switch {
	case s.format == "json" && s.n == 0, s.format == "yaml" && s.n == 0:
		text = "[]\n"
	case s.format == "json":
		text = "]\n"
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// csvSink writes trials as CSV.
type csvSink struct {
	w      *csv.Writer
	header []string
}

func newCSVSink(out io.Writer, spec study.Spec) (sink, error) {
	s := &csvSink{csv.NewWriter(out), record.CSVHeader(spec)}
	return s, s.w.Write(s.header)
}

func (s *csvSink) put(v any) error {
	row, err := v.(record.Trial).CSVRow(s.header)
	if err != nil {
		return err
	}
	return s.w.Write(row)
}

func (s *csvSink) end() error {
	s.w.Flush()
	return s.w.Error()
}

// tableRows is after how many rows a table's columns are set anew, so that long
// tables are not held in memory.
const tableRows = 1000

// table writes cells in columns.
type table struct {
	w *tabwriter.Writer
	n int
}

func newTable(out io.Writer, header ...string) *table {
	t := &table{w: tabwriter.NewWriter(headed(out), 0, 8, 2, ' ', 0)}
	t.row(header...)
	return t
}

// row writes one row; its last cell may be longer than a column.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		if cells[i] = clean(c); cells[i] == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
	if t.n++; t.n%tableRows == 0 {
		t.w.Flush()
	}
}

func (t *table) end() error { return t.w.Flush() }

// breaksMark marks a completed trial that breaks a constraint.
const breaksMark = "!"

// trialTable writes trials as a table.
type trialTable struct {
	*table
	spec  study.Spec
	brief bool // without worker and message
}

func newTrialTable(out io.Writer, spec study.Spec, brief bool) *trialTable {
	header := []string{"TRIAL", "STATE"}
	for _, o := range spec.Objectives {
		header = append(header, strings.ToUpper(o.Name))
	}
	for _, p := range spec.Space.Parameters() {
		header = append(header, p.Name)
	}
	if !brief {
		header = append(header, "WORKER", "MESSAGE")
	}
	return &trialTable{newTable(out, header...), spec, brief}
}

func (t *trialTable) put(v any) error {
	r := v.(record.Trial)
	state := r.State
	if r.Reason != "" {
		state += "(" + r.Reason + ")"
	}
	if r.Feasible != nil && !*r.Feasible && r.State == study.Completed.String() {
		state += " " + breaksMark
	}
	row := []string{fmt.Sprint(r.Trial), state}
	for _, o := range t.spec.Objectives {
		row = append(row, meanText(r, o.Name))
	}
	for _, p := range t.spec.Space.Parameters() {
		text := ""
		if v, ok := r.Config.Get(p.Name); ok {
			text = short(valueText(v), 32)
		}
		row = append(row, text)
	}
	if !t.brief {
		row = append(row, r.Worker, short(r.Message, 60))
	}
	t.row(row...)
	return nil
}

// valueText is a parameter's value for people: floats to six digits.
func valueText(v space.Value) string {
	if x, ok := v.AsFloat(); ok {
		return fmt.Sprintf("%.6g", x)
	}
	return v.String()
}

// meanText is an objective's value, to six digits, and its standard error.
func meanText(r record.Trial, name string) string {
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

// trialSink writes trials in a form.
func trialSink(out io.Writer, form string, spec study.Spec) (sink, error) {
	switch form {
	case "csv":
		return newCSVSink(out, spec)
	case "table":
		return newTrialTable(out, spec, false), nil
	default:
		return &listSink{out: out, format: form}, nil
	}
}

// shellQuote writes text as one word of a POSIX shell.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune("_-./:=,+@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
