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
	least                   = 4.0 // size of a label
	legendRow               = 15
	legendGap, legendSample = 14, 18
	lineWidth, markRadius   = 1.2, 2.5
	barWidth                = 12
	tickLength              = 4
)

// The colors of the web page for most trials, the best, those that do not count, and others.
var (
	Accent = color.NRGBA{0x05, 0x50, 0xae, 255}
	Best   = color.NRGBA{0xb3, 0x26, 0x1e, 255}
	Muted  = color.NRGBA{0x57, 0x60, 0x6a, 255}
	Third  = color.NRGBA{0x1a, 0x7f, 0x37, 255}
)

var (
	palette   = []color.NRGBA{{238, 46, 47, 255}, {0, 140, 72, 255}, {24, 90, 169, 255}, {244, 125, 35, 255}, {102, 44, 145, 255}, {162, 29, 33, 255}, {180, 56, 148, 255}}
	black     = color.NRGBA{A: 255}
	white     = color.NRGBA{255, 255, 255, 255}
	gridColor = pale(black)
)

// pale is a color to be seen through.
func pale(c color.NRGBA) color.NRGBA { return color.NRGBA{c.R, c.G, c.B, 60} }

// sheet is a plot while it is drawn.
type sheet struct {
	paper
	x, y   extent
	xs, ys []Mark
	rows   int       // of texts below the x axis
	letter font.Face // of 100 points, to measure texts
	legend []int     // series
}

// text writes a text that is not empty.
func (s *sheet) text(at point, text string, size, anchor float64) {
	if text != "" {
		s.paper.text(at, text, size, anchor)
	}
}

// width is that of a text.
func (s *sheet) width(text string, size float64) float64 {
	return float64(font.MeasureString(s.letter, text)) / 64 * size / 100
}

// fitting shortens a text in its middle to a width, because names often differ at their ends.
func (s *sheet) fitting(text string, size, most float64) string {
	letters := []rune(text)
	short := text
	for n := len(letters) - 1; n > 0 && s.width(short, size) > most+1e-9; n-- {
		short = string(letters[:(n+1)/2]) + "…" + string(letters[len(letters)-n/2:])
	}
	return short
}

// label writes a text that is smaller if it is wider than the paper.
func (s *sheet) label(at point, text string, anchor float64) {
	const whole = paperWidth - 2*outerMargin
	size := min(labelSize, max(least, labelSize*whole/max(1, s.width(text, labelSize))))
	s.text(at, s.fitting(text, size, whole), size, anchor)
}

// widest is the width of the widest text of an axis.
func (s *sheet) widest(marks []Mark) (w float64) {
	for _, m := range marks {
		w = max(w, s.width(m.Text, tickSize))
	}
	return w
}

// through is where points of the plot are on paper.
func (s *sheet) through(points []point) []point {
	out := make([]point, len(points))
	for i, p := range points {
		out[i] = point{s.x.at(p.X), s.y.at(p.Y)}
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
	for i := range p.Series {
		p.series(s, i)
	}
	p.texts(s)
	p.drawLegend(s)
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
	s := &sheet{paper: on, letter: letter, x: newExtent(p.X), y: newExtent(p.Y), rows: 1}
	for i, series := range p.Series {
		d := p.drawable(series)
		for k, at := range d.at {
			s.x.take(at.X)
			s.y.take(at.Y)
			if d.low != nil {
				s.y.take(d.low[k], d.high[k])
			}
		}
		for _, line := range series.Lines {
			s.x.take(0, float64(len(line)-1))
			s.y.take(line...)
		}
		if series.Name != "" && p.visible(series) {
			s.legend = append(s.legend, i)
		}
	}
	s.x.pad()
	s.y.pad()
	s.xs, s.ys = s.x.marks(p.X), s.y.marks(p.Y)
	s.x.from, s.x.to = outerMargin, paperWidth-outerMargin-6 // half a text of a tick
	s.y.from, s.y.to = paperHeight-outerMargin, outerMargin
	if p.Title != "" {
		s.y.to += titleSize + 8
	}
	if p.Subtitle != "" {
		s.y.to += labelSize + 2
	}
	if rows := len(p.legendRows(s)); rows > 0 {
		s.y.from -= legendRow*float64(rows) + legendRow/3.0
	}
	if p.X.Label != "" {
		s.y.from -= labelSize + 4
	}
	if p.Y.Label != "" {
		s.y.to += labelSize + 6
	}
	if room := s.widest(s.ys); room > 0 {
		s.x.from += min(room, paperWidth/3) + tickLength + 4
	}
	last := 0.0
	for _, t := range p.Texts {
		if t.X == s.x.last {
			last = max(last, s.width(t.Text, smallSize))
		}
	}
	s.x.to -= last
	if p.X.Marks != nil && s.widest(s.xs)*float64(len(s.xs)) > s.x.to-s.x.from {
		s.rows = 2
	}
	s.y.from -= tickSize*float64(s.rows) + tickLength + 4
	return s, nil
}

// frame draws the titles, the grid, and the axes with their texts. A text that would cover the
// one before is left out, and names stand in two rows where one has no room for them.
func (p *Plot) frame(s *sheet) {
	left, right, bottom, top := s.x.from, s.x.to, s.y.from, s.y.to
	const whole = paperWidth - 2*outerMargin
	s.text(point{paperWidth / 2, outerMargin + titleSize/2}, s.fitting(p.Title, titleSize, whole), titleSize, 0.5)
	s.label(point{paperWidth / 2, outerMargin + titleSize + 4 + labelSize/2}, p.Subtitle, 0.5)

	below := bottom + tickLength + 2 + tickSize/2.0
	ends := [2]float64{math.Inf(-1), math.Inf(-1)} // of the texts in each row
	for i, m := range s.xs {
		x, row := s.x.at(m.At), i%s.rows
		if m.Text != "" && p.X.Marks == nil {
			s.line([]point{{x, bottom}, {x, top}}, 0.5, 0, gridColor)
		}
		s.line([]point{{x, bottom}, {x, bottom + m.length()}}, 0.5, 0, black)
		text := m.Text
		if text == "" {
			continue
		}
		if p.X.Marks != nil {
			share := float64(s.rows)*(right-left)/float64(len(s.xs)) - 4
			edge := min(x, paperWidth-x) - outerMargin
			text = s.fitting(text, tickSize, min(share, max(2*edge, share/2)))
		}
		half := s.width(text, tickSize) / 2
		if middle := max(half+outerMargin, min(x, paperWidth-outerMargin-half)); middle-half >= ends[row]+4 {
			ends[row] = middle + half
			s.text(point{middle, below + float64(row)*tickSize}, text, tickSize, 0.5)
		}
	}
	below += float64(s.rows)*tickSize - tickSize/2.0 + 3 + labelSize/2.0
	s.label(point{(left + right) / 2, below}, p.X.Label, 0.5)
	s.line([]point{{left, bottom}, {right, bottom}}, 0.5, 0, black)
	s.label(point{outerMargin, top - labelSize/2 - 5}, p.Y.Label, 0)
	if p.Y.Marks != nil && len(s.ys) == 0 {
		return
	}
	s.line([]point{{left, bottom}, {left, top}}, 0.5, 0, black)
	end := math.Inf(1)
	for _, m := range s.ys {
		y := s.y.at(m.At)
		if m.Text != "" && p.Y.Marks == nil {
			s.line([]point{{left, y}, {right, y}}, 0.5, 0, gridColor)
		}
		s.line([]point{{left - m.length(), y}, {left, y}}, 0.5, 0, black)
		if m.Text != "" && math.Abs(end-y) > tickSize {
			s.text(point{left - tickLength - 2, y}, s.fitting(m.Text, tickSize, paperWidth/3), tickSize, 1)
			end = y
		}
	}
}

// texts writes those beside points.
func (p *Plot) texts(s *sheet) {
	var written []point
	for _, t := range p.Texts {
		at := s.through([]point{{t.X, t.Y}})[0]
		free := true
		for _, other := range written {
			free = free && (other.X != at.X || math.Abs(other.Y-at.Y) > smallSize)
		}
		if free {
			written = append(written, at)
			right := at.X + 4 + s.width(t.Text, smallSize)
			s.fill([]point{{at.X + 2, at.Y - 4}, {right, at.Y - 4}, {right, at.Y + 4}, {at.X + 2, at.Y + 4}}, color.NRGBA{255, 255, 255, 200})
			s.text(point{at.X + 3, at.Y}, t.Text, smallSize, 0)
		}
	}
}

// legendRows are the series of the legend in rows that fit.
func (p *Plot) legendRows(s *sheet) (rows [][]int) {
	used := math.Inf(1)
	for _, i := range s.legend {
		w := p.entryWidth(s, i)
		if used+w > paperWidth-2*outerMargin {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], i)
		used += w + legendGap
	}
	return rows
}

func (p *Plot) entryWidth(s *sheet, i int) float64 {
	return min(legendSample+4+s.width(p.Series[i].Name, labelSize), paperWidth-2*outerMargin)
}

// drawLegend draws the legend below the axes.
func (p *Plot) drawLegend(s *sheet) {
	rows := p.legendRows(s)
	for k, row := range rows {
		y := paperHeight - outerMargin - legendRow*(float64(len(rows)-k)-0.5)
		width := -float64(legendGap)
		for _, i := range row {
			width += p.entryWidth(s, i) + legendGap
		}
		x := (paperWidth - width) / 2
		for _, i := range row {
			p.sample(s, i, point{x + legendSample/2, y})
			s.text(point{x + legendSample + 4, y}, s.fitting(p.Series[i].Name, labelSize, p.entryWidth(s, i)-legendSample-4), labelSize, 0)
			x += p.entryWidth(s, i) + legendGap
		}
	}
}
