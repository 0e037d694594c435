package dataset

import (
	"fmt"
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
	// Stored is the number of stored values of sparse rows.
	Stored int `json:"stored,omitempty"`
	// Duplicates counts rows equal to an earlier one, targets included. It is −1 where
	// they were not counted, which is so for sparse rows, chunk files and more than 2²⁰
	// rows. Duplicates are kept, as they do no harm to learners with λ > 0.
	Duplicates int      `json:"duplicates"`
	Notes      []string `json:"notes,omitempty"`
}

var delimiterNames = map[string]string{",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "white space"}

// String returns the report as text, at most 20 columns of it.
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
	for i, c := range r.Columns {
		if i == 20 {
			fmt.Fprintf(&b, "           and %d columns more\n", len(r.Columns)-i)
			break
		}
		fmt.Fprintf(&b, "           %s: %s\n", c.Name, c.describe())
	}
	return b.String()
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
