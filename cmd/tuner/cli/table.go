package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// tableRows is the number of rows after which the widths of a table are computed anew, so
// that long tables are not held in memory.
const tableRows = 1000

// Table writes cells in columns. To fit a width it leaves out empty columns, cuts long
// cells, and then leaves out other columns.
type Table struct {
	out    io.Writer
	Width  int // columns of the output, with 0 for no limit
	header []string
	rows   [][]string
	Least  map[int]int                   // columns whose cells may be cut, to this width
	Drop   []int                         // columns that may be left out, in order
	Colors map[int]func(s string) string // escape sequences for the cells of a column
	Record bool                          // a table of one row that does not fit is written as a list
	left   []int                         // columns that were left out
	begun  bool                          // the header was written
}

func NewTable(out io.Writer, header ...string) *Table {
	t := &Table{out: out}
	t.header = cleaned(header)
	return t
}

// cleaned are cells without hostile characters. An empty cell is a dash.
func cleaned(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		if out[i] = Clean(c); out[i] == "" {
			out[i] = "-"
		}
	}
	return out
}

// Row adds a row.
func (t *Table) Row(cells ...string) {
	if t.rows = append(t.rows, cleaned(cells)); len(t.rows) == tableRows {
		t.flush()
	}
}

// End writes the rows that are left.
func (t *Table) End() error {
	if t.Record && !t.begun && len(t.rows) == 1 && t.Width > 0 && t.room(t.natural()) < 0 {
		list := NewTable(t.out, "NAME", "VALUE")
		list.Width, list.Least = t.Width, map[int]int{0: 12, 1: 12}
		for i, name := range t.header {
			list.Row(strings.ToLower(name), t.rows[0][i])
		}
		return list.End()
	}
	return t.flush()
}

func (t *Table) flush() error {
	widths := t.fit()
	if !t.begun {
		t.begun = true
		if err := t.line(t.header, widths, func(int, string) string { return bold }); err != nil {
			return err
		}
	}
	for _, row := range t.rows {
		if err := t.line(row, widths, t.color); err != nil {
			return err
		}
	}
	t.rows = t.rows[:0]
	return nil
}

func (t *Table) color(column int, cell string) string {
	if f := t.Colors[column]; f != nil {
		return f(cell)
	}
	return ""
}

const gap = 2 // spaces between columns

// natural are the widths of the columns, or -1 for those that are left out.
func (t *Table) natural() []int {
	widths := make([]int, len(t.header))
	for i, name := range t.header {
		widths[i] = utf8.RuneCountInString(name)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		if slices.Contains(t.left, i) {
			widths[i] = -1
		}
	}
	return widths
}

// room is what columns leave of the width, which has a limit.
func (t *Table) room(widths []int) int {
	room := t.Width + gap
	for _, n := range widths {
		if n >= 0 {
			room -= n + gap
		}
	}
	return room
}

// fit returns the widths with which the table fits, as far as that can be had.
func (t *Table) fit() []int {
	natural := t.natural()
	if t.Width == 0 {
		return natural
	}
	widths := slices.Clone(natural)
	leave := func(i int) {
		if !t.begun && widths[i] >= 0 && t.room(widths) < 0 {
			t.left, widths[i] = append(t.left, i), -1
		}
	}
	for _, i := range t.Drop {
		if !slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != "-" }) {
			leave(i)
		}
	}
	for t.room(widths) < 0 { // make the widest column narrower that may be cut
		widest := -1
		for i, least := range t.Least {
			least = max(least, utf8.RuneCountInString(t.header[i]))
			if widths[i] > least && (widest < 0 || widths[i] > widths[widest] || widths[i] == widths[widest] && i > widest) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for _, i := range t.Drop {
		leave(i)
	}
	for i, n := range widths { // cut cells may have room now
		if n >= 0 {
			widths[i] += max(0, min(natural[i]-n, t.room(widths)))
		}
	}
	return widths
}

func (t *Table) line(cells []string, widths []int, color func(column int, cell string) string) error {
	out, colors := t.out, false
	if s, ok := out.(*stream); ok && s.colors {
		out, colors = s.Writer, true
	}
	var b strings.Builder
	for i, cell := range cells {
		if widths[i] < 0 {
			continue
		}
		text := Short(cell, widths[i])
		if i == 0 { // a name
			text = space.Middle(Clean(cell), widths[i])
		}
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+gap)
		if escape := color(i, cell); colors && escape != "" {
			text = escape + text + plain
		}
		b.WriteString(text + pad)
	}
	_, err := fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
	return err
}

// leftOut names the columns that were left out to fit the width.
func (t *Table) leftOut() []string {
	var names []string
	for i, name := range t.header {
		if slices.Contains(t.left, i) {
			names = append(names, name)
		}
	}
	return names
}

// RemarkLeft notes the columns that a table left out.
func (g *Globals) RemarkLeft(cmd *cobra.Command, t *Table) {
	if names := t.leftOut(); len(names) > 0 {
		g.Note(cmd, "Without %s to fit %d columns. Use --wide for all.", strings.Join(names, ", "), t.Width)
	}
}

// WideFlag adds --wide. It returns a function for the width of tables on a stream.
func WideFlag(cmd *cobra.Command) func(out io.Writer) int {
	wide := cmd.Flags().Bool("wide", false, "tables with all columns, wider than the terminal")
	return func(out io.Writer) int {
		if *wide {
			return 0
		}
		return TableWidth(out)
	}
}

// StateColor is the escape sequence for the state of a trial or the status of a study.
func StateColor(state string) string {
	word, _, _ := strings.Cut(strings.ReplaceAll(state, "(", " "), " ")
	switch word {
	case study.Completed.String(), study.StatusFinished.String():
		return green
	case study.Running.String(), study.StatusActive.String():
		return cyan
	case study.Failed.String(), "unread":
		return red
	case study.Infeasible.String(), study.StatusPaused.String():
		return yellow
	case study.Pruned.String():
		return magenta
	}
	return ""
}
