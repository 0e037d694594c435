package figure

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of plots, and the resolution of PNG, twice that of a plain screen.
const (
	plotWidth  = 16 * vg.Centimeter
	plotHeight = 11 * vg.Centimeter
	resolution = 192
)

// WritePNG draws the plot. It fails if there is nothing to draw.
func (p *Plot) WritePNG(out io.Writer) error {
	drawn, err := p.build()
	if err != nil {
		return err
	}
	c := vgimg.NewWith(vgimg.UseWH(plotWidth, plotHeight), vgimg.UseDPI(resolution))
	drawn.drawOn(draw.New(c))
	_, err = vgimg.PngCanvas{Canvas: c}.WriteTo(out)
	return err
}

// WriteSVG draws the plot. It fails if there is nothing to draw. Dense parts are an image in
// it, so that its size does not grow with the number of points.
func (p *Plot) WriteSVG(out io.Writer) error {
	drawn, err := p.build()
	if err != nil {
		return err
	}
	c := vgsvg.New(plotWidth, plotHeight)
	drawn.drawOn(draw.New(c))
	_, err = c.WriteTo(out)
	return err
}

// drawing is a plot in the form of the drawing library, with a legend below it.
type drawing struct {
	*plot.Plot
	legend []plot.Legend // of one entry each
}

// entry appends to the legend. A series without a name has no entry.
func (d *drawing) entry(name string, marks ...plot.Thumbnailer) {
	if name == "" {
		return
	}
	l := plot.NewLegend()
	l.TextStyle = d.Legend.TextStyle
	l.Left, l.YPosition = true, draw.PosCenter
	l.Add(name, marks...)
	d.legend = append(d.legend, l)
}

// The space around the plot, and between entries of the legend.
const (
	outerMargin = vg.Length(8)
	legendGap   = vg.Length(14)
	rowHeight   = vg.Length(15)
)

// drawOn draws the plot and below it the legend in rows.
func (d *drawing) drawOn(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	inner := draw.Crop(c, outerMargin, -outerMargin, outerMargin, -outerMargin)
	var rows [][]plot.Legend
	var widths []vg.Length
	for _, l := range d.legend {
		w := l.Rectangle(inner).Size().X
		last := len(rows) - 1
		if last >= 0 && widths[last]+legendGap+w <= inner.Size().X {
			rows[last], widths[last] = append(rows[last], l), widths[last]+legendGap+w
		} else {
			rows, widths = append(rows, []plot.Legend{l}), append(widths, w)
		}
	}
	below := rowHeight * vg.Length(len(rows))
	above := vg.Length(0)
	if below > 0 {
		above = rowHeight / 3
	}
	d.Draw(draw.Crop(inner, 0, 0, below+above, 0))
	for i, row := range rows {
		at := inner
		at.Max.Y = inner.Min.Y + below - rowHeight*vg.Length(i)
		at.Min.Y = at.Max.Y - rowHeight
		at.Min.X += (inner.Size().X - widths[i]) / 2
		for _, l := range row {
			l.Top = true
			l.Draw(at)
			at.Min.X += l.Rectangle(inner).Size().X + legendGap
		}
	}
}

// build returns the plot in the form of the drawing library.
func (p *Plot) build() (*drawing, error) {
	if p.Empty() {
		return nil, fmt.Errorf("figure: plot %s has no points", p.Name)
	}
	drawn := &drawing{Plot: plot.New()}
	sansSerif(drawn.Plot)
	drawn.Title.Text = p.Title
	drawn.Title.Padding = vg.Points(6)
	drawn.X.Label.Text, drawn.Y.Label.Text = p.X.Label, p.Y.Label
	if len(p.Bars) > 0 {
		return drawn, p.bars(drawn.Plot)
	}
	if len(p.Ticks) == 0 {
		grid := plotter.NewGrid()
		grid.Horizontal.Color, grid.Vertical.Color = pale(color.Black), pale(color.Black)
		drawn.Add(grid)
	}
	logarithmic(&drawn.X, p.X.Log)
	logarithmic(&drawn.Y, p.Y.Log)
	marked(&drawn.X, p.X.Marks)
	marked(&drawn.Y, p.Y.Marks)
	if len(p.Names) > 0 {
		drawn.NominalX(p.Names...)
	}
	for _, top := range []bool{false, true} {
		for i, s := range p.Series {
			if top != (s.Style == Best) {
				continue
			}
			if err := p.draw(drawn, i, s); err != nil {
				return nil, fmt.Errorf("figure: plot %s, series %s: %w", p.Name, s.Name, err)
			}
		}
	}
	widen(&drawn.X, p.X.Log)
	widen(&drawn.Y, p.Y.Log)
	margin(&drawn.X, p.X.Log)
	margin(&drawn.Y, p.Y.Log)
	if len(p.Ticks) > 0 {
		return drawn, p.ticks(drawn.Plot)
	}
	return drawn, nil
}

// sansSerif sets the typeface of all texts.
func sansSerif(p *plot.Plot) {
	for _, f := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font,
	} {
		f.Variant = "Sans"
	}
	p.Title.TextStyle.Font.Size = font.Points(13)
	p.Legend.TextStyle.Font.Size = font.Points(9)
}

// marked gives an axis its own ticks.
func marked(a *plot.Axis, marks []Mark) {
	if len(marks) == 0 {
		return
	}
	var ticks plot.ConstantTicks
	for _, m := range marks {
		ticks = append(ticks, plot.Tick{Value: m.At, Label: m.Text})
	}
	a.Tick.Marker = ticks
}

// margin keeps data off the frame.
func margin(a *plot.Axis, log bool) {
	const share = 0.03
	if log {
		ratio := math.Pow(a.Max/a.Min, share)
		a.Min, a.Max = a.Min/ratio, a.Max*ratio
		return
	}
	d := share * (a.Max - a.Min)
	a.Min, a.Max = a.Min-d, a.Max+d
}

// bars draws the bars, and the half length of their errors as a line.
func (p *Plot) bars(on *plot.Plot) error {
	n := len(p.Bars)
	values, names := make(plotter.Values, n), make([]string, n)
	var errs drawnAcross
	for i, b := range p.Bars {
		at := n - 1 - i // from the top
		values[at], names[at] = b.Value, b.Name
		if b.Err > 0 {
			errs.XYs = append(errs.XYs, plotter.XY{X: b.Value, Y: float64(at)})
			errs.XErrors = append(errs.XErrors, struct{ Low, High float64 }{b.Err, b.Err})
		}
	}
	width := min(vg.Points(18), plotHeight*0.6/vg.Length(n))
	chart, err := plotter.NewBarChart(values, width)
	if err != nil {
		return err
	}
	chart.Horizontal, chart.Color, chart.LineStyle.Width = true, plotutil.DarkColors[2], 0
	on.Add(chart)
	if len(errs.XYs) > 0 {
		lines, err := plotter.NewXErrorBars(errs)
		if err != nil {
			return err
		}
		on.Add(lines)
	}
	on.NominalY(names...)
	on.X.Min = 0
	on.X.Max = max(on.X.Max*1.05, 1e-9)
	return nil
}

// drawnAcross are points with horizontal error bars.
type drawnAcross struct {
	plotter.XYs
	plotter.XErrors
}

// ticks draws vertical axes at the names, with the texts of the ticks beside them.
func (p *Plot) ticks(on *plot.Plot) error {
	for i := range p.Names {
		axis, err := plotter.NewLine(plotter.XYs{{X: float64(i), Y: 0}, {X: float64(i), Y: 1}})
		if err != nil {
			return err
		}
		axis.Width = vg.Points(0.8)
		on.Add(axis)
	}
	labels := plotter.XYLabels{}
	for _, t := range p.Ticks {
		labels.XYs = append(labels.XYs, plotter.XY{X: t.X, Y: t.Y})
		labels.Labels = append(labels.Labels, t.Text)
	}
	texts, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	for i := range texts.TextStyle {
		s := &texts.TextStyle[i]
		s.Font.Variant, s.Font.Size = "Sans", font.Points(7)
		s.YAlign = text.YCenter
	}
	texts.Offset = vg.Point{X: vg.Points(2)}
	on.Add(texts)
	on.Y.Tick.Marker = plot.ConstantTicks(nil)
	on.Y.LineStyle.Width = 0
	on.Y.Min, on.Y.Max = min(on.Y.Min, -0.03), max(on.Y.Max, 1.03)
	on.X.Max += 0.35 // for the texts of the last axis
	return nil
}

// Empty tells whether the plot has no point that its axes can show.
func (p *Plot) Empty() bool {
	for _, b := range p.Bars {
		if !math.IsNaN(b.Value) {
			return false
		}
	}
	for _, s := range p.Series {
		if len(s.Lines) > 0 || len(p.drawable(s).XYs) > 0 {
			return false
		}
	}
	return true
}

// draw draws one series.
func (p *Plot) draw(on *drawing, i int, s Series) error {
	if s.Style == Bundle {
		return p.bundle(on, i, s)
	}
	if s.Color > 0 {
		i = s.Color - 1
	}
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
		on.entry(s.Name, band)
		return nil
	}
	if s.Style == Points && len(at.XYs) > manyPoints {
		d := density{points: at.XYs, color: plotutil.DarkColors[i%len(plotutil.DarkColors)]}
		on.Add(d)
		on.entry(s.Name, d)
		return nil
	}
	if s.Style == Best {
		return best(on, s.Name, at.XYs)
	}
	var legend []plot.Thumbnailer
	if s.Style != Points {
		line, err := plotter.NewLine(at.XYs)
		if err != nil {
			return err
		}
		line.Color, line.Width = plotutil.DarkColors[i%len(plotutil.DarkColors)], vg.Points(1.2)
		line.Dashes = plotutil.Dashes(i / len(plotutil.DarkColors))
		if s.Style == Dashed {
			line.Dashes = []vg.Length{vg.Points(3), vg.Points(3)}
		}
		on.Add(line)
		legend = append(legend, line)
	}
	if s.Style == LinePoints || s.Style == Points || len(at.XYs) == 1 { // a line of one point is not to be seen
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
		bars.Color, bars.Width = plotutil.DarkColors[i%len(plotutil.DarkColors)], vg.Points(1.2)
		on.Add(bars)
	}
	on.entry(s.Name, legend...)
	return nil
}

// best draws large marks with a white rim.
func best(on *drawing, name string, at plotter.XYs) error {
	rim, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	marks, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	rim.GlyphStyle = draw.GlyphStyle{Color: color.White, Radius: vg.Points(5.2), Shape: draw.CircleGlyph{}}
	marks.GlyphStyle = draw.GlyphStyle{Color: bestColor, Radius: vg.Points(3.8), Shape: draw.CircleGlyph{}}
	on.Add(rim, marks)
	on.entry(name, marks)
	return nil
}

// bestColor is that of the best trials.
var bestColor = color.NRGBA{R: 200, G: 30, B: 45, A: 255}

// bundle draws lines, many as their density.
func (p *Plot) bundle(on *drawing, i int, s Series) error {
	of := color.Color(color.NRGBA{R: 90, G: 125, B: 175, A: 255})
	if i > 0 {
		of = bestColor
	}
	if len(s.Lines) > manyLines {
		d := density{lines: s.Lines, color: of}
		on.Add(d)
		on.entry(s.Name, d)
		return nil
	}
	style := draw.LineStyle{Color: of, Width: vg.Points(0.6)}
	for _, line := range s.Lines {
		for _, part := range unbroken(line) {
			l, err := plotter.NewLine(part)
			if err != nil {
				return err
			}
			l.LineStyle = style
			on.Add(l)
		}
	}
	on.entry(s.Name, &plotter.Line{LineStyle: style})
	return nil
}

// unbroken returns the pieces of a line between its gaps.
func unbroken(line []float64) (out []plotter.XYs) {
	gap := true
	for x, y := range line {
		if !math.IsNaN(y) {
			if gap {
				out = append(out, nil)
			}
			out[len(out)-1] = append(out[len(out)-1], plotter.XY{X: float64(x), Y: y})
		}
		gap = math.IsNaN(y)
	}
	return out
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
			at := p.Y.Within(y)
			d.YErrors = append(d.YErrors, struct{ Low, High float64 }{at - p.Y.Within(s.Low[i]), p.Y.Within(s.High[i]) - at})
		}
		d.XYs = append(d.XYs, plotter.XY{X: p.X.Within(x), Y: p.Y.Within(y)})
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

// pale is a color to be seen through.
func pale(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 60}
}

// logTicks marks powers of ten, and where there are few of them also 2 and 5 times
// these. If an axis has fewer than three such numbers, it has ticks as a linear one.
type logTicks struct{}

func (logTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	labels := 0
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	wide := last-first > 3
	every := math.Ceil((last - first) / 8)
	for e := first; e <= last; e++ {
		for k := 1.0; k < 10; k++ {
			t := plot.Tick{Value: k * math.Pow(10, e)}
			if t.Value < low*(1-1e-9) || t.Value > high*(1+1e-9) {
				continue
			}
			if k == 1 && math.Mod(e, every) == 0 || !wide && (k == 2 || k == 5) {
				t.Label = strconv.FormatFloat(t.Value, 'g', 6, 64)
				labels++
			}
			ticks = append(ticks, t)
		}
	}
	if labels < 3 {
		return plot.DefaultTicks{}.Ticks(low, high)
	}
	return ticks
}
