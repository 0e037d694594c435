package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteText writes the tables and notes for people to read. Columns of numbers are
// aligned right. A table that is wider than width columns comes in parts below each other,
// each with the first columns again, and titles and notes are wrapped. A width of 0 means
// no limit.
func (r *Result) WriteText(out io.Writer, width int) error {
	if width == 0 {
		width = math.MaxInt
	}
	var b strings.Builder
	for i, t := range r.Tables {
		if i > 0 {
			b.WriteByte('\n')
		}
		t.text(&b, width)
	}
	for i, note := range r.Notes {
		if i == 0 && len(r.Tables) > 0 {
			b.WriteByte('\n')
		}
		wrap(&b, note, width)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// Wrap breaks a text into lines of at most limit columns, where words allow it. The lines
// after the first begin with indent.
func Wrap(text string, limit int, indent string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > limit:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// wrap writes a text that is too wide in indented lines.
func wrap(b *strings.Builder, text string, width int) {
	if utf8.RuneCountInString(text) > width {
		text = Wrap(text, width, "  ")
	}
	b.WriteString(text + "\n")
}

const gap = "  " // between columns

func (t *Table) text(b *strings.Builder, limit int) {
	if t.Title != "" {
		wrap(b, t.Title, limit)
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
	for i, part := range parts(width, words, limit) {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, line := range lines {
			var l strings.Builder
			for i, c := range part {
				pad := strings.Repeat(" ", width[c]-utf8.RuneCountInString(line[c]))
				if i > 0 {
					l.WriteString(gap)
				}
				if words[c] {
					l.WriteString(line[c] + pad)
				} else {
					l.WriteString(pad + line[c])
				}
			}
			b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
		}
	}
}

// parts divides columns so that each part fits the limit as far as it can. The first
// column, and those of words right after it, are in each part if they leave it half of its
// room.
func parts(width []int, words []bool, limit int) [][]int {
	span := func(columns []int) int {
		n := -len(gap)
		for _, c := range columns {
			n += width[c] + len(gap)
		}
		return n
	}
	all := make([]int, len(width))
	for c := range all {
		all[c] = c
	}
	if span(all) <= limit {
		return [][]int{all}
	}
	keys := 0
	for keys < len(all) && (keys == 0 || words[keys]) && span(all[:keys+1]) <= limit/2 {
		keys++
	}
	var out [][]int
	part := slices.Clone(all[:keys])
	for _, c := range all[keys:] {
		if len(part) > keys && span(append(part, c)) > limit {
			out, part = append(out, part), slices.Clone(all[:keys])
		}
		part = append(part, c)
	}
	return append(out, part)
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
