package figure

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteText writes the tables and notes for people to read. Columns of numbers are
// aligned right.
func (r *Result) WriteText(out io.Writer) error {
	var b strings.Builder
	for i, t := range r.Tables {
		if i > 0 {
			b.WriteByte('\n')
		}
		t.text(&b)
	}
	for i, note := range r.Notes {
		if i == 0 && len(r.Tables) > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(note + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (t *Table) text(b *strings.Builder) {
	if t.Title != "" {
		b.WriteString(t.Title + "\n")
	}
	lines := [][]string{make([]string, len(t.Columns))}
	width := make([]int, len(t.Columns))
	words := make([]bool, len(t.Columns))
	for c, column := range t.Columns {
		lines[0][c] = column.heading()
	}
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for c, cell := range row {
			line[c] = t.Columns[c].cell(cell)
			_, word := cell.(string)
			words[c] = words[c] || word
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		for c, s := range line {
			width[c] = max(width[c], utf8.RuneCountInString(s))
		}
	}
	for _, line := range lines {
		var l strings.Builder
		for c, s := range line {
			pad := strings.Repeat(" ", width[c]-utf8.RuneCountInString(s))
			if c > 0 {
				l.WriteString("  ")
			}
			if words[c] {
				l.WriteString(s + pad)
			} else {
				l.WriteString(pad + s)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
}

// cell is a cell for people.
func (c Column) cell(v any) string {
	f, ok := v.(float64)
	if !ok {
		return fmt.Sprint(v)
	}
	switch {
	case math.IsNaN(f):
		return "-"
	case c.Format != "":
		return fmt.Sprintf(c.Format, f)
	}
	return strconv.FormatFloat(f, 'g', 4, 64)
}
