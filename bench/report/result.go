// Package report has the results of experiments. It writes tables as text, CSV, Markdown
// and JSON. Package figure draws the plots.
//
//	r := &report.Result{}
//	t := r.Table("times", "Time against n", report.Column{Name: "n"}, report.Column{Name: "time", Unit: "s"})
//	t.Add(1000, 0.25)
//	r.Plot("times", "Time against n", figure.Axis{Label: "n", Log: true}, figure.Axis{Label: "s"}).
//		Add(figure.Series{Name: "ours", X: t.Float("n"), Y: t.Float("time")})
//	files, err := r.WritePNGFiles("sample", "folder")
package report

import (
	"fmt"
	"slices"

	"github.com/bkbtuner/bkb/figure"
)

// Result is the result of an experiment.
type Result struct {
	Tables []*Table `json:"tables"`
	Notes  []string `json:"notes,omitempty"` // remarks for the reader, and verdicts

	figure.Plots `json:"-"`
}

// Table appends an empty table.
func (r *Result) Table(name, title string, columns ...Column) *Table {
	t := &Table{Name: name, Title: title, Columns: columns}
	r.Tables = append(r.Tables, t)
	return t
}

// Note appends a note.
func (r *Result) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Table is a table of results.
type Table struct {
	Name    string // within the experiment, as part of file names
	Title   string
	Columns []Column
	Rows    [][]any // string, int or float64, NaN where there is nothing to say
}

// Column is a column of a Table.
type Column struct {
	Name   string
	Unit   string // "" for pure numbers and words
	Format string // of float64 cells in text, such as "%.2f" (default "%.4g")
}

// heading is the name with the unit.
func (c Column) heading() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + " [" + c.Unit + "]"
}

// Add appends a row. It panics unless there is a cell, a string, int or float64,
// for each column.
func (t *Table) Add(cells ...any) {
	if len(cells) != len(t.Columns) {
		panic(fmt.Sprintf("report: table %s has %d columns, not %d", t.Name, len(t.Columns), len(cells)))
	}
	for i, c := range cells {
		switch c.(type) {
		case string, int, float64:
		default:
			panic(fmt.Sprintf("report: table %s, column %s: a %T is no cell", t.Name, t.Columns[i].Name, c))
		}
	}
	t.Rows = append(t.Rows, cells)
}

// Float returns a column as numbers. It panics if there is no such column or a
// cell is no number.
func (t *Table) Float(column string) []float64 {
	at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == column })
	if at < 0 {
		panic(fmt.Sprintf("report: table %s has no column %s", t.Name, column))
	}
	out := make([]float64, len(t.Rows))
	for i, row := range t.Rows {
		switch v := row[at].(type) {
		case float64:
			out[i] = v
		case int:
			out[i] = float64(v)
		default:
			panic(fmt.Sprintf("report: table %s, column %s: %v is no number", t.Name, column, v))
		}
	}
	return out
}

// Where returns a table of the rows whose cell in a column is the given one.
func (t *Table) Where(column string, value any) *Table {
	at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == column })
	out := &Table{Name: t.Name, Title: t.Title, Columns: t.Columns}
	for _, row := range t.Rows {
		if at >= 0 && row[at] == value {
			out.Rows = append(out.Rows, row)
		}
	}
	return out
}
