// Package figure holds tables and plots of results. It writes tables as text, CSV,
// Markdown and JSON, and plots as PNG and SVG. Many points are drawn as their density.
//
//	r := &figure.Result{}
//	t := r.Table("times", "Time against n", figure.Column{Name: "n"}, figure.Column{Name: "time", Unit: "s"})
//	t.Add(1000, 0.25)
//	r.Plot("times", "Time against n", figure.Axis{Label: "n", Log: true}, figure.Axis{Label: "s"}).
//		Add(figure.Series{Name: "ours", X: t.Float("n"), Y: t.Float("time")})
//	files, err := r.WritePNGFiles("sample", "folder")
package figure

import (
	"fmt"
	"slices"
)

// Result is the result of an experiment.
type Result struct {
	Tables []*Table `json:"tables"`
	Plots  []*Plot  `json:"-"`
	Notes  []string `json:"notes,omitempty"` // remarks for the reader, and verdicts
}

// Table appends an empty table.
func (r *Result) Table(name, title string, columns ...Column) *Table {
	t := &Table{Name: name, Title: title, Columns: columns}
	r.Tables = append(r.Tables, t)
	return t
}

// Plot appends an empty plot.
func (r *Result) Plot(name, title string, x, y Axis) *Plot {
	p := &Plot{Name: name, Title: title, X: x, Y: y}
	r.Plots = append(r.Plots, p)
	return p
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
		panic(fmt.Sprintf("figure: table %s has %d columns, not %d", t.Name, len(t.Columns), len(cells)))
	}
	for i, c := range cells {
		switch c.(type) {
		case string, int, float64:
		default:
			panic(fmt.Sprintf("figure: table %s, column %s: a %T is no cell", t.Name, t.Columns[i].Name, c))
		}
	}
	t.Rows = append(t.Rows, cells)
}

// Float returns a column as numbers. It panics if there is no such column or a
// cell is no number.
func (t *Table) Float(column string) []float64 {
	at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == column })
	if at < 0 {
		panic(fmt.Sprintf("figure: table %s has no column %s", t.Name, column))
	}
	out := make([]float64, len(t.Rows))
	for i, row := range t.Rows {
		switch v := row[at].(type) {
		case float64:
			out[i] = v
		case int:
			out[i] = float64(v)
		default:
			panic(fmt.Sprintf("figure: table %s, column %s: %v is no number", t.Name, column, v))
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

// Plot is a plot of results.
type Plot struct {
	Name, Title string
	X, Y        Axis
	Series      []Series
	// Names, if there are any, stand along the x axis at 0, 1, 2, ….
	Names []string
	// Bars, if there are any, are drawn from left to right below each other, with the
	// first at the top. The plot then has no series.
	Bars []Bar
	// Ticks, if there are any, are drawn beside points of the plot.
	Ticks []Tick
}

// Bar is a number with its name, and a standard error or 0.
type Bar struct {
	Name       string
	Value, Err float64
}

// Tick is a text beside the point of a vertical axis in the plot.
type Tick struct {
	X, Y float64
	Text string
}

// Axis is an axis of a Plot.
type Axis struct {
	Label string
	Log   bool
	// Min and Max, if Min < Max, are the ends of the axis. Points beyond lie at its edge.
	Min, Max float64
	// Marks, if there are any, are the only ticks. A linear axis of coordinates has them.
	Marks []Mark
}

// Within returns the place of a value on the axis.
func (a Axis) Within(v float64) float64 {
	if a.Min < a.Max {
		return min(max(v, a.Min), a.Max)
	}
	return v
}

// Mark is a place on an axis with its text.
type Mark struct {
	At   float64
	Text string
}

// Style is how a series is drawn.
type Style int

// The styles are a line with marks, a line alone, marks alone, a shaded band from Low to
// High, a broken line, and large marks on top of all others. Bundle has many lines, each
// through the values of Lines at 0, 1, 2, …. A second Bundle is that of the best.
const (
	LinePoints Style = iota
	Line
	Points
	Band
	Dashed
	Best
	Bundle
)

// Series is a series of points of a Plot. A point that is not finite, or not positive on
// a logarithmic axis, is not drawn.
type Series struct {
	Name string
	X, Y []float64
	// Low and High, nil or as long as Y, are the ends of error bars, or of the
	// band.
	Low, High []float64
	Style     Style
	// Color, from 1 on, is that of the series. 0 means the next one.
	Color int
	// Lines are those of a Bundle, with NaN for a gap.
	Lines [][]float64
}

// Add appends a series and returns the plot. It panics if lengths differ.
func (p *Plot) Add(s Series) *Plot {
	n := len(s.X)
	if s.Style == Band && s.Y == nil {
		s.Y = s.High
	}
	bars := s.Low != nil || s.High != nil
	if len(s.Y) != n || bars && (len(s.Low) != n || len(s.High) != n) || s.Style == Band && !bars {
		panic(fmt.Sprintf("figure: plot %s, series %s: lengths %d, %d, %d, %d", p.Name, s.Name, n, len(s.Y), len(s.Low), len(s.High)))
	}
	p.Series = append(p.Series, s)
	return p
}
