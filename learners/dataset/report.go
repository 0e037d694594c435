package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/learners/data"
)

// Report describes the findings of Open and their reasons. It prints as text and
// encodes as JSON.
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
	// Duplicates counts rows equal to an earlier one, targets included. It is −1 where
	// they were not counted, which is so for sparse rows, chunk files and more than 2²⁰
	// rows. Duplicates are kept, as they do no harm to learners with λ > 0.
	Duplicates int      `json:"duplicates"`
	Notes      []string `json:"notes,omitempty"`
}

var delimiterNames = map[string]string{",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "white space"}

// String returns the report as text.
func (r *Report) String() string {
	var b strings.Builder
	gz := ""
	if r.Compressed {
		gz = ", compressed by gzip"
	}
	fmt.Fprintf(&b, "files      %s\nformat     %s%s: %s\n", strings.Join(r.Files, ", "), r.Format, gz, r.FormatWhy)
	if r.Delimiter != "" {
		name := delimiterNames[r.Delimiter]
		if name == "" {
			name = fmt.Sprintf("%q", r.Delimiter)
		}
		fmt.Fprintf(&b, "delimiter  %s: %s\n", name, r.DelimiterWhy)
	}
	if r.HeaderWhy != "" {
		fmt.Fprintf(&b, "header     %s: %s\n", map[bool]string{true: "yes", false: "no"}[r.Header], r.HeaderWhy)
	}
	fmt.Fprintf(&b, "rows       %d\ninputs     %d\n", r.Rows, r.Inputs)
	if r.Stored > 0 {
		fmt.Fprintf(&b, "stored     %d values, sparse\n", r.Stored)
	}
	target := "none"
	if len(r.Target) > 0 {
		target = strings.Join(r.Target, ", ")
	}
	fmt.Fprintf(&b, "target     %s: %s\n", target, r.TargetWhy)
	if r.Duplicates > 0 {
		fmt.Fprintf(&b, "duplicates %d\n", r.Duplicates)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note       %s\n", n)
	}
	for _, c := range r.Columns {
		fmt.Fprintf(&b, "           %s: %s\n", c.Name, c.describe())
	}
	return b.String()
}

// Summary says in five lines what was read and how e encodes it.
func (r *Report) Summary(e *data.Encoding) []string {
	kinds, missing := map[data.Kind]int{}, map[string]int{}
	for i := range r.Columns {
		missing[r.Columns[i].Name] = r.Columns[i].Missing
	}
	rules := map[data.Missing][]string{}
	values := map[data.Missing]int{}
	var dropped, constant []string
	if len(r.Dropped) > 0 {
		dropped = append(dropped, quoted(r.Dropped, 8, ", "))
	}
	for i := range e.Inputs {
		in := &e.Inputs[i]
		if kinds[in.Kind]++; in.Dropped {
			constant = append(constant, in.Name)
		} else if n := missing[in.Name]; n > 0 {
			rule := e.Missing
			if in.Kind == data.Categorical {
				rule = data.FillMostFrequent
			}
			rules[rule], values[rule] = append(rules[rule], in.Name), values[rule]+n
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
	for rule, names := range rules {
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
