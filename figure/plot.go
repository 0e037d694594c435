// Package figure draws plots of results as PNG and SVG. Many points are drawn as their
// density.
//
//	var plots figure.Plots
//	plots.Plot("times", "Time against n", figure.Axis{Label: "n", Log: true}, figure.Axis{Label: "s"}).
//		Add(figure.Series{Name: "ours", X: n, Y: seconds})
//	files, err := plots.WritePNGFiles("sample", "folder")
package figure

import "fmt"

// Plots are the plots of one result.
type Plots []*Plot

// Plot appends an empty plot.
func (l *Plots) Plot(name, title string, x, y Axis) *Plot {
	p := &Plot{Name: name, Title: title, X: x, Y: y}
	*l = append(*l, p)
	return p
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
