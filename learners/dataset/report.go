package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/learners/data"
)

// Report describes the findings of Open and their reasons. It prints as text and encodes as JSON.
type Report struct {
	Files        []string `json:"files"`
	Format       Format   `json:"format"`
	FormatWhy    string   `json:"format_why"`
	Compressed   bool     `json:"compressed,omitempty"`
	Delimiter    string   `json:"delimiter,omitempty"`
	DelimiterWhy string   `json:"delimiter_why,omitempty"`
	Header       bool     `json:"header"`
	HeaderWhy    string   `json:"header_why,omitempty"`
	Rows         int      `json:"rows"`
	Inputs       int      `json:"inputs"`
	Target       []string `json:"target"`
	TargetWhy    string   `json:"target_why"`
	Columns      []Column `json:"columns"` // dense columns, in the order of the file
	Dropped      []string `json:"dropped,omitempty"`
	// Stored is the number of stored values of sparse rows.
	Stored int `json:"stored,omitempty"`
	// Duplicates counts rows equal to an earlier one, targets included. It is −1 for sparse
	// rows, chunk files and more than 2²⁰ rows.
	Duplicates int      `json:"duplicates"`
	Notes      []string `json:"notes,omitempty"`
}

var delimiterNames = map[string]string{",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "white space"}

// String returns the report as text.
func (r *Report) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s "+format+"\n", append([]any{name}, args...)...)
	}
	line("files", "%s", strings.Join(r.Files, ", "))
	if r.Compressed {
		line("format", "%s, compressed by gzip: %s", r.Format, r.FormatWhy)
	} else {
		line("format", "%s: %s", r.Format, r.FormatWhy)
	}
	if r.Delimiter != "" {
		line("delimiter", "%s: %s", cmp.Or(delimiterNames[r.Delimiter], strconv.Quote(r.Delimiter)), r.DelimiterWhy)
	}
	if r.HeaderWhy != "" {
		line("header", "%s: %s", map[bool]string{true: "yes", false: "no"}[r.Header], r.HeaderWhy)
	}
	line("rows", "%d", r.Rows)
	line("inputs", "%d", r.Inputs)
	if r.Stored > 0 {
		line("stored", "%d values, sparse", r.Stored)
	}
	line("target", "%s: %s", cmp.Or(strings.Join(r.Target, ", "), "none"), r.TargetWhy)
	if r.Duplicates > 0 {
		line("duplicates", "%d", r.Duplicates)
	}
	for _, n := range r.Notes {
		line("note", "%s", n)
	}
	for _, c := range r.Columns {
		line("", "%s: %s", c.Name, c.describe())
	}
	return b.String()
}

// Summary says in five lines what was read and how e encodes it.
func (r *Report) Summary(e *data.Encoding) []string {
	missing := map[string]int{}
	for _, c := range r.Columns {
		missing[c.Name] = c.Missing
	}
	kinds, values := map[data.Kind]int{}, map[data.Missing]int{}
	filled := map[data.Missing][]string{}
	var dropped, constant []string
	if len(r.Dropped) > 0 {
		dropped = append(dropped, quoted(r.Dropped, 8, ", "))
	}
	for _, in := range e.Inputs {
		kinds[in.Kind]++
		rule := e.Missing
		if in.Kind == data.Categorical {
			rule = data.FillMostFrequent
		}
		if in.Dropped {
			constant = append(constant, in.Name)
		} else if n := missing[in.Name]; n > 0 {
			filled[rule], values[rule] = append(filled[rule], in.Name), values[rule]+n
		}
	}
	if len(constant) > 0 {
		dropped = append(dropped, "for one value alone "+quoted(constant, 8, ", "))
	}
	columns := []string{count(r.Inputs, "input")}
	for _, kind := range []data.Kind{data.Numeric, data.Categorical, data.Time, data.Boolean} {
		if n := kinds[kind]; n > 0 {
			columns = append(columns, fmt.Sprintf("%d %s", n, kind))
		}
	}
	if e.Weights != "" {
		columns = append(columns, "weights in "+strconv.Quote(e.Weights))
	}
	var imputed []string
	for rule, names := range filled {
		what := string(rule)
		if rule == data.FillMostFrequent {
			what += " value"
		}
		imputed = append(imputed, fmt.Sprintf("%s in %s by the %s", count(values[rule], "value"), quoted(names, 8, ", "), what))
	}
	slices.Sort(imputed)
	target := cmp.Or(quoted(r.Target, 8, ", "), "none") + " (" + r.TargetWhy + ")"
	switch e.Task {
	case data.Classification:
		target += fmt.Sprintf(": classification, %d classes: %s", len(e.Classes), quoted(e.Classes, 4, ", "))
	case data.Regression:
		target += ": regression"
	}
	return []string{
		fmt.Sprintf("rows     %d in %s", r.Rows, strings.Join(r.Files, ", ")),
		"columns  " + strings.Join(columns, ", "),
		"dropped  " + cmp.Or(strings.Join(dropped, "; "), "none"),
		"imputed  " + cmp.Or(strings.Join(imputed, "; "), "none"),
		"target   " + target,
	}
}

// datesNote tells the order of dates in an input.
func datesNote(c *Column) string {
	return fmt.Sprintf("input %q: dates are read as %s: %s", c.Name, c.Dates, c.DatesWhy)
}

func (c *Column) describe() string {
	var s string
	switch c.Kind {
	case data.Numeric:
		s = fmt.Sprintf("numeric, %g to %g", c.Min, c.Max)
	case data.Boolean:
		s = "boolean"
	case data.Time:
		s = fmt.Sprintf("time, %s to %s", timeText(c.Min), timeText(c.Max))
		if c.Dates != "" {
			s += fmt.Sprintf(", dates as %s (%s)", c.Dates, c.DatesWhy)
		}
	case data.Categorical:
		s = fmt.Sprintf("categorical, %s: %s", count(len(c.Levels), "level"), quoted(c.Levels, 4, ", "))
	case data.Text:
		s = fmt.Sprintf("text, more than %d different", MaxLevels)
	}
	if c.Constant() {
		s += ", constant"
	}
	if c.Missing > 0 {
		s += fmt.Sprintf(", %d missing, the first in row %d", c.Missing, c.FirstMissing)
	}
	return s
}
