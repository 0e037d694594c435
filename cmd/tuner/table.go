package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/record"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// tableRows is the number of rows after which the widths of a table are computed anew, so
// that long tables are not held in memory.
const tableRows = 1000

// table writes cells in columns. To fit a width it leaves out empty columns, cuts long
// cells, and then leaves out other columns.
type table struct {
	out    io.Writer
	width  int // columns of the output, with 0 for no limit
	header []string
	rows   [][]string
	least  map[int]int                   // columns whose cells may be cut, to this width
	drop   []int                         // columns that may be left out, in order
	colors map[int]func(s string) string // escape sequences for the cells of a column
	record bool                          // a table of one row that does not fit is written as a list
	wrap   bool                          // the last column is wrapped and not cut
	left   []int                         // columns that were left out
	begun  bool                          // the header was written
}

func newTable(out io.Writer, header ...string) *table {
	t := &table{out: out}
	t.header = cleaned(header)
	return t
}

// cleaned are cells without hostile characters. An empty cell is a dash.
func cleaned(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		if out[i] = clean(c); out[i] == "" {
			out[i] = "-"
		}
	}
	return out
}

// row adds a row.
func (t *table) row(cells ...string) {
	if t.rows = append(t.rows, cleaned(cells)); len(t.rows) == tableRows {
		t.flush()
	}
}

// end writes the rows that are left.
func (t *table) end() error {
	if t.record && !t.begun && len(t.rows) == 1 && !t.fits(t.widths()) {
		list := newTable(t.out, "NAME", "VALUE")
		list.width, list.least = t.width, map[int]int{0: 12, 1: 12}
		for i, name := range t.header {
			list.row(strings.ToLower(name), t.rows[0][i])
		}
		return list.end()
	}
	return t.flush()
}

// flush writes the rows.
func (t *table) flush() error {
	widths := t.fit()
	if !t.begun {
		t.begun = true
		if err := t.line(t.header, widths, func(int, string) string { return bold }); err != nil {
			return err
		}
	}
	last := len(t.header) - 1
	for _, row := range t.rows {
		if t.wrap {
			lines := strings.Split(figure.Wrap(row[last], widths[last], ""), "\n")
			for _, line := range lines[:len(lines)-1] {
				row[last] = line
				if err := t.line(row, widths, t.color); err != nil {
					return err
				}
				row = make([]string, len(row)) // the next lines have the last column alone
			}
			row[last] = lines[len(lines)-1]
		}
		if err := t.line(row, widths, t.color); err != nil {
			return err
		}
	}
	t.rows = t.rows[:0]
	return nil
}

// color is the escape sequence for a cell.
func (t *table) color(column int, cell string) string {
	if f := t.colors[column]; f != nil {
		return f(cell)
	}
	return ""
}

// widths are those of the columns. A column that is left out has the width -1.
func (t *table) widths() []int {
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

const gap = 2 // spaces between columns

func (t *table) fits(widths []int) bool { return t.over(widths) <= 0 }

// over is by how much the columns exceed the width.
func (t *table) over(widths []int) int {
	total := -gap
	for _, n := range widths {
		if n >= 0 {
			total += n + gap
		}
	}
	if t.width == 0 {
		return 0
	}
	return total - t.width
}

// fit returns the widths with which the table fits, as far as that can be had.
func (t *table) fit() []int {
	widths := t.widths()
	leave := func(i int) {
		if !t.begun && widths[i] >= 0 && !t.fits(widths) {
			t.left, widths[i] = append(t.left, i), -1
		}
	}
	for _, i := range t.drop {
		if !slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != "-" }) {
			leave(i)
		}
	}
	t.cut(widths)
	for _, i := range t.drop {
		leave(i)
	}
	if over := t.over(widths); over < 0 && t.width > 0 { // cut cells may have room now
		natural := t.widths()
		for i := range widths {
			if widths[i] >= 0 {
				more := min(natural[i]-widths[i], -over)
				widths[i], over = widths[i]+more, over+more
			}
		}
	}
	return widths
}

// cut makes the widest of the columns narrower that may be cut.
func (t *table) cut(widths []int) {
	for !t.fits(widths) {
		widest := -1
		for i, least := range t.least {
			least = max(least, utf8.RuneCountInString(t.header[i]))
			if widths[i] > least && (widest < 0 || widths[i] > widths[widest] || widths[i] == widths[widest] && i > widest) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// line writes one row.
func (t *table) line(cells []string, widths []int, color func(column int, cell string) string) error {
	p, painted := t.out.(*painter)
	last := 0
	for i, n := range widths {
		if n >= 0 {
			last = i
		}
	}
	var b strings.Builder
	for i, cell := range cells[:last+1] {
		if widths[i] < 0 {
			continue
		}
		text := short(cell, widths[i])
		escape := ""
		if painted {
			escape = color(i, cell)
		}
		if escape != "" {
			if err := p.paint(&b, escape, text); err != nil {
				return err
			}
		} else {
			b.WriteString(text)
		}
		if i < last {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+gap))
		}
	}
	_, err := fmt.Fprintln(t.out, b.String())
	return err
}

// leftOut names the columns that were left out to fit the width.
func (t *table) leftOut() []string {
	var names []string
	for i, name := range t.header {
		if slices.Contains(t.left, i) {
			names = append(names, name)
		}
	}
	return names
}

// remarkLeft notes the columns that a table left out.
func (g *globals) remarkLeft(cmd *cobra.Command, t *table) {
	if names := t.leftOut(); len(names) > 0 {
		g.note(cmd, "Without %s to fit %d columns. Use --wide for all.", strings.Join(names, ", "), t.width)
	}
}

// wideFlag adds --wide. It returns a function for the width of tables on a stream.
func wideFlag(cmd *cobra.Command) func(out io.Writer) int {
	wide := cmd.Flags().Bool("wide", false, "tables with all columns, wider than the terminal or $COLUMNS")
	return func(out io.Writer) int {
		if *wide {
			return 0
		}
		return outputWidth(out)
	}
}

// stateColor is the escape sequence for the state of a trial or the status of a study.
func stateColor(state string) string {
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

// trialTable writes trials as a table.
type trialTable struct {
	*table
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
	t.table = newTable(out, header...)
	t.width, t.record, t.least, t.drop, t.colors = width, brief, cuts, drop, map[int]func(string) string{1: stateColor}
	return t
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
	for _, name := range t.metrics {
		row = append(row, meanText(r, name))
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
	t.row(row...)
	return nil
}

// atMost cuts a text, unless the width of the table has no limit or it may be a list.
func (t *trialTable) atMost(text string, n int) string {
	if t.width == 0 || t.record {
		return text
	}
	return short(text, n)
}
