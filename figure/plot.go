// Package figure draws plots of results as PNG and SVG. Many points are drawn as their density.
//
//	var plots figure.Plots
//	plots.Plot("times", "Time against n", figure.Axis{Label: "n", Log: true}, figure.Axis{Label: "s"}).
//		Add(figure.Series{Name: "ours", X: n, Y: seconds})
//	files, err := plots.WritePNGFiles("sample", "folder")
package figure

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/bkbtuner/bkb/internal/atomicfile"
)

// Plots are the plots of one result.
type Plots []*Plot

// Plot appends an empty plot.
func (l *Plots) Plot(name, title string, x, y Axis) *Plot {
	p := &Plot{Name: name, Title: title, X: x, Y: y}
	*l = append(*l, p)
	return p
}

// Plot is a plot of results. The subtitle is written smaller, in a size in which all of it fits.
type Plot struct {
	Name, Title, Subtitle string
	X, Y                  Axis
	Series                []Series
	Texts                 []Text
}

// Text stands beside a point of the plot, unless it would cover one before.
type Text struct {
	X, Y float64
	Text string
}

// Axis is an axis of a Plot.
type Axis struct {
	Label string
	Log   bool
	// Min and Max, if Min < Max, are the ends of the axis. Points beyond lie at its edge.
	Min, Max float64
	// Marks are the only ticks if they are not nil, as for names and coordinates.
	Marks []Mark
}

// Within returns the place of a value on the axis.
func (a Axis) Within(v float64) float64 {
	if a.Min < a.Max {
		return min(max(v, a.Min), a.Max)
	}
	return v
}

// shows tells whether the axis can show a value.
func (a Axis) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0)
}

// Mark is a place on an axis with its text.
type Mark struct {
	At   float64
	Text string
}

// Style is how a series is drawn.
type Style int

// The styles are a line with marks, a line alone, one with steps, a broken one, marks alone,
// crosses, a shaded band from Low to High, and thick lines. Bundle has many lines, each
// through the values of Lines at 0, 1, 2, ….
const (
	LinePoints Style = iota
	Line
	Stepped
	Dashed
	Points
	Crosses
	Band
	Bar
	Bundle
)

// Series is a series of points of a Plot. A point that is not finite, or not positive on
// a logarithmic axis, is not drawn.
type Series struct {
	Name string
	X, Y []float64
	// Low and High, nil or as long as Y, are the ends of error bars, or of the band.
	Low, High []float64
	Style     Style
	// Color is that of the series. Without one it has the next of a palette.
	Color color.NRGBA
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

// Empty tells whether the plot has no point that its axes can show.
func (p *Plot) Empty() bool {
	for _, s := range p.Series {
		if p.visible(s) {
			return false
		}
	}
	return true
}

func (p *Plot) visible(s Series) bool { return len(s.Lines) > 0 || len(p.drawable(s).at) > 0 }

// WritePNGFiles writes every plot that has points as folder/name-plot.png, with a number after
// a name that another plot has. It creates the folder. It returns the files written.
func (l Plots) WritePNGFiles(name, folder string) ([]string, error) {
	return l.write(name, folder, ".png", (*Plot).WritePNG)
}

// WriteSVGFiles is [Plots.WritePNGFiles] for SVG.
func (l Plots) WriteSVGFiles(name, folder string) ([]string, error) {
	return l.write(name, folder, ".svg", (*Plot).WriteSVG)
}

func (l Plots) write(name, folder, ending string, draw func(*Plot, io.Writer) error) (files []string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	taken := make(map[string]bool) // in lower case, as some systems compare names
	for _, p := range l {
		if p.Empty() {
			continue
		}
		text := name + "-" + p.Name
		for k := 2; taken[strings.ToLower(text)]; k++ {
			text = fmt.Sprintf("%s-%s~%d", name, p.Name, k)
		}
		taken[strings.ToLower(text)] = true
		file := atomicfile.Name(text) + ending
		if err := atomicfile.WriteIn(root, file, 0o644, func(out io.Writer) error { return draw(p, out) }); err != nil {
			return files, err
		}
		files = append(files, filepath.Join(folder, file))
	}
	return files, nil
}
