package figure

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The size of plots.
const (
	plotWidth  = 16 * vg.Centimeter
	plotHeight = 11 * vg.Centimeter
)

// WritePNG draws the plot. It fails if there is nothing to draw.
func (p *Plot) WritePNG(out io.Writer) error {
	if p.Empty() {
		return fmt.Errorf("figure: plot %s has no points", p.Name)
	}
	drawn := plot.New()
	drawn.Title.Text = p.Title
	drawn.X.Label.Text, drawn.Y.Label.Text = p.X.Label, p.Y.Label
	drawn.Legend.Top = true
	drawn.Add(plotter.NewGrid())
	logarithmic(&drawn.X, p.X.Log)
	logarithmic(&drawn.Y, p.Y.Log)
	if len(p.Names) > 0 {
		drawn.NominalX(p.Names...)
	}
	for i, s := range p.Series {
		if err := p.draw(drawn, i, s); err != nil {
			return fmt.Errorf("figure: plot %s, series %s: %w", p.Name, s.Name, err)
		}
	}
	widen(&drawn.X, p.X.Log)
	widen(&drawn.Y, p.Y.Log)
	room(&drawn.Y, p.Y.Log, len(p.Series))
	w, err := drawn.WriterTo(plotWidth, plotHeight, "png")
	if err != nil {
		return fmt.Errorf("figure: plot %s: %w", p.Name, err)
	}
	_, err = w.WriteTo(out)
	return err
}

// Empty tells whether the plot has no point that its axes can show.
func (p *Plot) Empty() bool {
	for _, s := range p.Series {
		if len(p.drawable(s).XYs) > 0 {
			return false
		}
	}
	return true
}

// draw draws one series.
func (p *Plot) draw(on *plot.Plot, i int, s Series) error {
	at := p.drawable(s)
	if len(at.XYs) == 0 {
		return nil
	}
	if s.Style == Band {
		band, err := plotter.NewPolygon(at.outline())
		if err != nil {
			return err
		}
		band.Color, band.LineStyle.Width = pale(plotutil.DarkColors[i%len(plotutil.DarkColors)]), 0
		on.Add(band)
		on.Legend.Add(s.Name, band)
		return nil
	}
	var legend []plot.Thumbnailer
	if s.Style != Points {
		line, err := plotter.NewLine(at.XYs)
		if err != nil {
			return err
		}
		line.Color, line.Width = plotutil.DarkColors[i%len(plotutil.DarkColors)], vg.Points(1.2)
		line.Dashes = plotutil.Dashes(i / len(plotutil.DarkColors))
		on.Add(line)
		legend = append(legend, line)
	}
	if s.Style != Line {
		marks, err := plotter.NewScatter(at.XYs)
		if err != nil {
			return err
		}
		marks.GlyphStyle = draw.GlyphStyle{
			Color: plotutil.DarkColors[i%len(plotutil.DarkColors)], Radius: vg.Points(2.5),
			Shape: plotutil.DefaultGlyphShapes[i%len(plotutil.DefaultGlyphShapes)],
		}
		on.Add(marks)
		legend = append(legend, marks)
	}
	if at.YErrors != nil {
		bars, err := plotter.NewYErrorBars(at)
		if err != nil {
			return err
		}
		bars.Color = plotutil.DarkColors[i%len(plotutil.DarkColors)]
		on.Add(bars)
	}
	on.Legend.Add(s.Name, legend...)
	return nil
}

// drawn are points with error bars.
type drawn struct {
	plotter.XYs
	plotter.YErrors
}

// drawable returns the points of a series that the axes can show.
func (p *Plot) drawable(s Series) drawn {
	shows := func(a Axis, v float64) bool {
		return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0)
	}
	var d drawn
	for i, x := range s.X {
		y := s.Y[i]
		if !shows(p.X, x) || !shows(p.Y, y) {
			continue
		}
		if s.Low != nil {
			if !shows(p.Y, s.Low[i]) || !shows(p.Y, s.High[i]) {
				continue
			}
			d.YErrors = append(d.YErrors, struct{ Low, High float64 }{y - s.Low[i], s.High[i] - y})
		}
		d.XYs = append(d.XYs, plotter.XY{X: x, Y: y})
	}
	return d
}

// outline goes along the upper ends and back along the lower ones.
func (d drawn) outline() plotter.XYs {
	var out plotter.XYs
	for i, at := range d.XYs {
		out = append(out, plotter.XY{X: at.X, Y: at.Y + d.YErrors[i].High})
	}
	for i := len(d.XYs) - 1; i >= 0; i-- {
		out = append(out, plotter.XY{X: d.XYs[i].X, Y: d.XYs[i].Y - d.YErrors[i].Low})
	}
	return out
}

func logarithmic(a *plot.Axis, is bool) {
	if is {
		a.Scale, a.Tick.Marker = plot.LogScale{}, logTicks{}
	}
}

// widen makes an axis on which all points coincide drawable.
func widen(a *plot.Axis, log bool) {
	switch {
	case a.Min < a.Max:
	case log:
		a.Min, a.Max = a.Min/2, a.Max*2
	default:
		a.Min, a.Max = a.Min-0.5, a.Max+0.5
	}
}

// room makes room for the legend above the data.
func room(a *plot.Axis, log bool, entries int) {
	share := 0.055 * float64(entries)
	if log {
		a.Max *= math.Pow(a.Max/a.Min, share)
	} else {
		a.Max += share * (a.Max - a.Min)
	}
}

// pale is a color to be seen through.
func pale(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 60}
}

// logTicks marks powers of ten, and where there are few of them also 2 and 5 times
// these.
type logTicks struct{}

func (logTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	wide := last-first > 3
	for e := first; e <= last; e++ {
		for k := 1.0; k < 10; k++ {
			t := plot.Tick{Value: k * math.Pow(10, e)}
			if k == 1 || !wide && (k == 2 || k == 5) {
				t.Label = strconv.FormatFloat(t.Value, 'g', 3, 64)
			}
			if t.Value >= low*(1-1e-9) && t.Value <= high*(1+1e-9) {
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}
