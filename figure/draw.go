package figure

import (
	"fmt"
	"image/color"
	"math"

	"golang.org/x/image/font"
)

// Sizes of texts and widths of lines in points.
const (
	outerMargin             = 8
	titleSize, labelSize    = 12, 10
	tickSize, smallSize     = 9, 7
	legendSize, legendRow   = 10, 15
	legendGap, legendSample = 14, 18
	lineWidth, markRadius   = 1.2, 2.5
	tickLength              = 4
)

// colors are those of the series, in turn.
var colors = []color.NRGBA{{238, 46, 47, 255}, {0, 140, 72, 255}, {24, 90, 169, 255}, {244, 125, 35, 255}, {102, 44, 145, 255}, {162, 29, 33, 255}, {180, 56, 148, 255}}

var (
	black     = color.NRGBA{A: 255}
	white     = color.NRGBA{255, 255, 255, 255}
	gridColor = pale(black)
	bestColor = color.NRGBA{200, 30, 45, 255} // of the best trials
	manyColor = color.NRGBA{90, 125, 175, 255}
)

// pale is a color to be seen through.
func pale(c color.NRGBA) color.NRGBA { return color.NRGBA{c.R, c.G, c.B, 60} }

// sheet is a plot while it is drawn.
type sheet struct {
	paper
	x, y   extent
	letter font.Face // of 100 points, to measure texts
	legend []entry
}

// entry is a series in the legend, with what draws a sample of it around a point.
type entry struct {
	name   string
	sample func(at point)
}

// width is that of a text.
func (s *sheet) width(text string, size float64) float64 {
	return float64(font.MeasureString(s.letter, text)) / 64 * size / 100
}

// fitting shortens a text to a width.
func (s *sheet) fitting(text string, size, most float64) string {
	if s.width(text, size) <= most+1e-9 {
		return text
	}
	letters := []rune(text)
	for len(letters) > 1 && s.width(string(letters)+"…", size) > most {
		letters = letters[:len(letters)-1]
	}
	return string(letters) + "…"
}

// at is where a point of the plot is on paper.
func (s *sheet) at(p point) point { return point{s.x.at(p.X), s.y.at(p.Y)} }

// through is where points of the plot are on paper.
func (s *sheet) through(points []point) []point {
	out := make([]point, len(points))
	for i, p := range points {
		out[i] = s.at(p)
	}
	return out
}

// draw draws the plot.
func (p *Plot) draw(on paper) error {
	s, err := p.layOut(on)
	if err != nil {
		return err
	}
	s.fill([]point{{0, 0}, {paperWidth, 0}, {paperWidth, paperHeight}, {0, paperHeight}}, white)
	p.frame(s)
	p.bars(s)
	for _, top := range []bool{false, true} {
		for i, series := range p.Series {
			if top == (series.Style == Best) {
				p.series(s, i, series)
			}
		}
	}
	p.upright(s)
	s.drawLegend()
	return nil
}

// layOut finds the ranges of the axes and their places, with room for the texts around.
func (p *Plot) layOut(on paper) (*sheet, error) {
	if p.Empty() {
		return nil, fmt.Errorf("figure: plot %s has no points", p.Name)
	}
	letter, err := face(100, 72)
	if err != nil {
		return nil, err
	}
	s := &sheet{paper: on, letter: letter}
	s.x = extent{low: math.Inf(1), high: math.Inf(-1), log: p.X.Log}
	s.y = extent{low: math.Inf(1), high: math.Inf(-1), log: p.Y.Log}
	for _, series := range p.Series {
		d := p.drawable(series)
		for i, at := range d.at {
			s.x.take(at.X)
			s.y.take(at.Y)
			if d.low != nil {
				s.y.take(d.low[i])
				s.y.take(d.high[i])
			}
		}
		for _, line := range series.Lines {
			s.x.take(0)
			s.x.take(float64(len(line) - 1))
			for _, y := range line {
				if !math.IsNaN(y) {
					s.y.take(y)
				}
			}
		}
	}
	for _, m := range p.X.Marks {
		s.x.take(m.At)
	}
	for _, m := range p.Y.Marks {
		s.y.take(m.At)
	}
	s.x.pad()
	s.y.pad()
	s.x.from, s.x.to = outerMargin, paperWidth-outerMargin
	s.y.from, s.y.to = paperHeight-outerMargin, outerMargin
	if p.Title != "" {
		s.y.to += titleSize + 8
	}
	if len(p.Bars) > 0 {
		s.x.low, s.x.high, s.y.low, s.y.high = 0, 1e-9, -0.6, float64(len(p.Bars))-0.4
		for _, b := range p.Bars {
			s.x.high = max(s.x.high, 1.05*b.Value, 1.05*(b.Value+b.Err))
		}
	}
	if len(p.Ticks) > 0 { // room for the texts
		s.y.low, s.y.high = min(s.y.low, -0.03), max(s.y.high, 1.03)
		s.x.high += 0.35
	}
	for i, series := range p.Series {
		if series.Name != "" && (len(series.Lines) > 0 || len(p.drawable(series).at) > 0) {
			s.legend = append(s.legend, entry{series.Name, p.sample(s, i, series)})
		}
	}
	if rows := len(s.rows()); rows > 0 {
		s.y.from -= legendRow*float64(rows) + legendRow/3.0
	}
	if p.X.Label != "" {
		s.y.from -= labelSize + 4
	}
	s.y.from -= tickSize + tickLength + 4
	if len(p.Names) > 0 {
		s.y.from -= tickSize // the names stand in two rows
	}
	if p.Y.Label != "" {
		s.x.from += labelSize + 6
	}
	if room := 0.0; len(p.Ticks) == 0 {
		for _, t := range p.marks(s, &p.Y, &s.y) {
			room = max(room, s.width(t.Text, tickSize))
		}
		s.x.from += min(room, paperWidth/3) + tickLength + 4
	}
	s.x.to -= 6 // half a text of a tick
	return s, nil
}

// marks are those of an axis that are within it.
func (p *Plot) marks(s *sheet, a *Axis, e *extent) (out []Mark) {
	var all []Mark
	switch {
	case a == &p.Y && len(p.Bars) > 0:
		for i, b := range p.Bars {
			all = append(all, Mark{float64(len(p.Bars) - 1 - i), b.Name}) // from the top
		}
	case a == &p.X && len(p.Names) > 0:
		for i, name := range p.Names {
			all = append(all, Mark{float64(i), name})
		}
	case len(a.Marks) > 0:
		all = a.Marks
	default:
		all = e.ticks()
	}
	for _, m := range all {
		if e.has(m.At) {
			out = append(out, m)
		}
	}
	return out
}

// frame draws the title, the grid, and the axes with their texts. A text that would cover the
// one before is left out, but names stand in two rows.
func (p *Plot) frame(s *sheet) {
	left, right, bottom, top := s.x.from, s.x.to, s.y.from, s.y.to
	s.text(point{paperWidth / 2, outerMargin + titleSize/2}, s.fitting(p.Title, titleSize, paperWidth-2*outerMargin), titleSize, 0.5, false)
	below := bottom + tickLength + 2 + tickSize/2.0
	xs := p.marks(s, &p.X, &s.x)
	ends := [2]float64{math.Inf(-1), math.Inf(-1)} // of the texts in each row
	for i, m := range xs {
		x, row := s.x.at(m.At), 0
		if m.Text != "" && len(p.Names) == 0 {
			s.line([]point{{x, bottom}, {x, top}}, 0.5, 0, gridColor)
		}
		s.line([]point{{x, bottom}, {x, bottom + m.length()}}, 0.5, 0, black)
		text := m.Text
		if text == "" {
			continue
		}
		if len(p.Names) > 0 {
			row = i % 2
			text = s.fitting(text, tickSize, 2*(right-left)/float64(len(p.Names))-4)
		}
		half := s.width(text, tickSize) / 2
		middle := max(half+outerMargin, min(x, paperWidth-outerMargin-half))
		if middle-half < ends[row]+4 {
			continue
		}
		ends[row] = middle + half
		s.text(point{middle, below + float64(row)*tickSize}, text, tickSize, 0.5, false)
	}
	if p.X.Label != "" {
		below += tickSize/2.0 + 3 + labelSize/2.0
		if len(p.Names) > 0 {
			below += tickSize
		}
		s.text(point{(left + right) / 2, below}, s.fitting(p.X.Label, labelSize, paperWidth-2*outerMargin), labelSize, 0.5, false)
	}
	s.line([]point{{left, bottom}, {right, bottom}}, 0.5, 0, black)
	if p.Y.Label != "" {
		s.text(point{outerMargin + labelSize/2, (top + bottom) / 2}, s.fitting(p.Y.Label, labelSize, paperHeight-2*outerMargin), labelSize, 0.5, true)
	}
	if len(p.Ticks) > 0 {
		return
	}
	s.line([]point{{left, bottom}, {left, top}}, 0.5, 0, black)
	end := math.Inf(1)
	for _, m := range p.marks(s, &p.Y, &s.y) {
		y := s.y.at(m.At)
		if m.Text != "" && len(p.Bars) == 0 {
			s.line([]point{{left, y}, {right, y}}, 0.5, 0, gridColor)
		}
		s.line([]point{{left - m.length(), y}, {left, y}}, 0.5, 0, black)
		if m.Text != "" && math.Abs(end-y) > tickSize {
			s.text(point{left - tickLength - 2, y}, s.fitting(m.Text, tickSize, paperWidth/3), tickSize, 1, false)
			end = y
		}
	}
}

// bars draws the bars, and their errors as lines.
func (p *Plot) bars(s *sheet) {
	half := min(9, 0.3*(s.y.from-s.y.to)/float64(max(1, len(p.Bars))))
	for i, b := range p.Bars {
		if math.IsNaN(b.Value) {
			continue
		}
		y := s.y.at(float64(len(p.Bars) - 1 - i))
		end := s.x.at(b.Value)
		s.fill([]point{{s.x.from, y - half}, {end, y - half}, {end, y + half}, {s.x.from, y + half}}, colors[2])
		if b.Err > 0 {
			low, high := s.x.at(max(0, b.Value-b.Err)), s.x.at(b.Value+b.Err)
			s.line([]point{{low, y}, {high, y}}, 0.8, 0, black)
			for _, x := range []float64{low, high} {
				s.line([]point{{x, y - 3}, {x, y + 3}}, 0.8, 0, black)
			}
		}
	}
}

// upright draws vertical axes at the names, with the texts of the ticks beside them. A text
// that would cover another is left out.
func (p *Plot) upright(s *sheet) {
	if len(p.Ticks) == 0 {
		return
	}
	for i := range p.Names {
		s.line(s.through([]point{{float64(i), 0}, {float64(i), 1}}), 0.8, 0, black)
	}
	var written []point
	for _, t := range p.Ticks {
		at := s.at(point{t.X, t.Y})
		free := true
		for _, other := range written {
			free = free && (other.X != at.X || math.Abs(other.Y-at.Y) > smallSize)
		}
		if free {
			written = append(written, at)
			s.text(point{at.X + 3, at.Y}, t.Text, smallSize, 0, false)
		}
	}
}

// rows are the entries of the legend in rows that fit.
func (s *sheet) rows() (rows [][]entry) {
	used := math.Inf(1)
	for _, e := range s.legend {
		w := s.entryWidth(e)
		if used+w > paperWidth-2*outerMargin {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		used += w + legendGap
	}
	return rows
}

func (s *sheet) entryWidth(e entry) float64 {
	return min(legendSample+4+s.width(e.name, legendSize), paperWidth-2*outerMargin)
}

// drawLegend draws the legend below the axes.
func (s *sheet) drawLegend() {
	rows := s.rows()
	for i, row := range rows {
		y := paperHeight - outerMargin - legendRow*(float64(len(rows)-i)-0.5)
		width := -float64(legendGap)
		for _, e := range row {
			width += s.entryWidth(e) + legendGap
		}
		x := (paperWidth - width) / 2
		for _, e := range row {
			e.sample(point{x + legendSample/2, y})
			s.text(point{x + legendSample + 4, y}, s.fitting(e.name, legendSize, s.entryWidth(e)-legendSample-4), legendSize, 0, false)
			x += s.entryWidth(e) + legendGap
		}
	}
}
