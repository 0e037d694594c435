package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

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
	cmd.Flags().VarP(f, "format", "f", "output `format`, one of "+strings.Join(allowed, ", "))
	f.value = allowed[0]
	cmd.Flag("format").DefValue = allowed[0]
	register(cmd, "format", words(allowed...))
	return f
}

func (f *format) String() string { return f.value }
func (f *format) Type() string   { return "format" }

func (f *format) Set(s string) error {
	f.value = s
	return oneOf("--format", s, f.allowed...)
}

// jsonLine writes a value as JSON on one line. Characters that can forge output on a
// terminal are escaped.
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

// writeYAML writes the JSON of a value as YAML, one field on a line.
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

// block removes the style of JSON from a YAML tree, except from lists of scalars.
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

// sink writes records one by one.
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

// breaksMark marks a completed trial that breaks a constraint.
const breaksMark = "!"

// valueText is the value of a parameter with at most six digits.
func valueText(v space.Value) string {
	if x, ok := v.AsFloat(); ok {
		return fmt.Sprintf("%.6g", x)
	}
	return v.String()
}

// meanText is the value of an objective with at most six digits, and its standard error.
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

// trialSink writes trials in a format. A width of 0 means no limit for tables.
func trialSink(out io.Writer, form string, spec study.Spec, width int) (sink, error) {
	switch form {
	case "csv":
		return newCSVSink(out, spec)
	case "table":
		return newTrialTable(out, spec, false, width), nil
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
