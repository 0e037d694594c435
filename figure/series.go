package figure

import (
	"image/color"
	"math"
)

// look is how a series is drawn.
type look struct {
	color       color.NRGBA
	line, marks bool
	width, dash float64
	shape       int // of marks
}

func (p *Plot) look(i int, s Series, points int) look {
	if s.Style == Bundle {
		of := manyColor
		if i > 0 {
			of = bestColor
		}
		return look{color: of, line: true, width: 0.6}
	}
	if s.Color > 0 {
		i = s.Color - 1
	}
	l := look{color: colors[i%len(colors)], shape: i, width: lineWidth}
	l.line = s.Style == LinePoints || s.Style == Line || s.Style == Dashed
	l.marks = s.Style == LinePoints || s.Style == Points || points == 1 // a line of one point is not to be seen
	if round := i / len(colors); round > 0 {
		l.dash = 3 * float64(1+round)
	}
	if s.Style == Dashed {
		l.dash = 3
	}
	return l
}

// mark draws a mark on paper. Its shape goes with the series.
func (s *sheet) mark(at point, l look) {
	switch l.shape % 4 {
	case 0:
		s.disc(at, markRadius, l.color)
	case 1:
		s.fill(regular(at, 1.25*markRadius, 4, math.Pi/4), l.color)
	case 2:
		s.fill(regular(at, 1.35*markRadius, 3, -math.Pi/2), l.color)
	default:
		s.fill(regular(at, 1.3*markRadius, 4, 0), l.color)
	}
}

// sample draws a sample of a series for the legend.
func (p *Plot) sample(s *sheet, i int, series Series) func(at point) {
	l := p.look(i, series, len(series.X))
	return func(at point) {
		left, right := at.X-legendSample/2, at.X+legendSample/2
		switch {
		case series.Style == Best:
			s.disc(at, 3.8, bestColor)
		case series.Style == Band:
			s.fill([]point{{left, at.Y - 5}, {right, at.Y - 5}, {right, at.Y + 5}, {left, at.Y + 5}}, pale(l.color))
		default:
			if l.line {
				s.line([]point{{left, at.Y}, {right, at.Y}}, lineWidth, l.dash, l.color)
			}
			if l.marks {
				s.mark(at, l)
			}
		}
	}
}

// series draws one series.
func (p *Plot) series(s *sheet, i int, series Series) {
	d := p.drawable(series)
	l := p.look(i, series, len(d.at))
	switch {
	case len(series.Lines) > manyLines || series.Style == Points && len(d.at) > manyPoints:
		s.density(d.at, series.Lines, l.color)
		return
	case series.Style == Bundle:
		for _, line := range series.Lines {
			for _, part := range unbroken(line) {
				s.line(s.through(part), l.width, 0, l.color)
			}
		}
		return
	case len(d.at) == 0:
		return
	case series.Style == Band:
		s.fill(s.through(d.outline()), pale(l.color))
		return
	}
	on := s.through(d.at)
	if series.Style == Best { // with a white rim
		for _, at := range on {
			s.disc(at, 5.2, white)
			s.disc(at, 3.8, bestColor)
		}
		return
	}
	if l.line && len(on) > 1 {
		s.line(on, l.width, l.dash, l.color)
	}
	for k, at := range on {
		if d.low != nil {
			low, high := s.y.at(d.low[k]), s.y.at(d.high[k])
			s.line([]point{{at.X, low}, {at.X, high}}, lineWidth, 0, l.color)
			for _, y := range []float64{low, high} {
				s.line([]point{{at.X - 3, y}, {at.X + 3, y}}, lineWidth, 0, l.color)
			}
		}
		if l.marks {
			s.mark(at, l)
		}
	}
}

// unbroken returns the pieces of a line between its gaps.
func unbroken(line []float64) (out [][]point) {
	gap := true
	for x, y := range line {
		if !math.IsNaN(y) {
			if gap {
				out = append(out, nil)
			}
			out[len(out)-1] = append(out[len(out)-1], point{float64(x), y})
		}
		gap = math.IsNaN(y)
	}
	return out
}

// drawn are the points of a series, and the ends of their error bars, if they have any.
type drawn struct {
	at        []point
	low, high []float64
}

// drawable returns the points of a series that the axes can show.
func (p *Plot) drawable(s Series) (d drawn) {
	shows := func(a Axis, v float64) bool {
		return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0)
	}
	for i, x := range s.X {
		y := s.Y[i]
		if !shows(p.X, x) || !shows(p.Y, y) {
			continue
		}
		if s.Low != nil {
			if !shows(p.Y, s.Low[i]) || !shows(p.Y, s.High[i]) {
				continue
			}
			d.low, d.high = append(d.low, p.Y.Within(s.Low[i])), append(d.high, p.Y.Within(s.High[i]))
		}
		d.at = append(d.at, point{p.X.Within(x), p.Y.Within(y)})
	}
	return d
}

// outline goes along the upper ends and back along the lower ones.
func (d drawn) outline() (out []point) {
	for i, at := range d.at {
		out = append(out, point{at.X, d.high[i]})
	}
	for i := len(d.at) - 1; i >= 0; i-- {
		out = append(out, point{d.at[i].X, d.low[i]})
	}
	return out
}

// Empty tells whether the plot has no point that its axes can show.
func (p *Plot) Empty() bool {
	for _, b := range p.Bars {
		if !math.IsNaN(b.Value) {
			return false
		}
	}
	for _, s := range p.Series {
		if len(s.Lines) > 0 || len(p.drawable(s).at) > 0 {
			return false
		}
	}
	return true
}
