package figure

import (
	"image"
	"image/color"
	"math"
)

// manyPoints and manyLines are the numbers from which on points and lines are drawn as an image
// of their density. Marks would cover each other, and an SVG would have a node for each.
const (
	manyPoints = 5000
	manyLines  = 200
)

// look is how a series is drawn.
type look struct {
	color       color.NRGBA
	line, marks bool
	width, dash float64
	shape       int // of marks
}

// look returns how series i is drawn, which has some points.
func (p *Plot) look(i, points int) look {
	s := p.Series[i]
	l := look{color: s.Color, shape: i % 4, width: lineWidth}
	if l.color.A == 0 {
		l.color = palette[i%len(palette)]
		l.dash = []float64{0, 6, 9, 12}[min(i/len(palette), 3)]
	} else {
		l.shape = 0
	}
	switch s.Style {
	case Points, Crosses:
		l.marks = true
	case LinePoints:
		l.line, l.marks = true, true
	case Dashed:
		l.line, l.dash = true, 3
	case Bar:
		l.line, l.width = true, barWidth
	case Bundle:
		l.line, l.width = true, 0.6
	default:
		l.line, l.marks = true, points == 1 // a line of one point is not to be seen
	}
	if s.Style == Crosses {
		l.shape = 4
	}
	return l
}

// mark draws a mark on paper. Its shape goes with the series.
func (s *sheet) mark(at point, l look) {
	switch l.shape {
	case 0:
		s.disc(at, markRadius, l.color)
	case 1:
		s.fill(regular(at, 1.25*markRadius, 4, math.Pi/4), l.color)
	case 2:
		s.fill(regular(at, 1.35*markRadius, 3, -math.Pi/2), l.color)
	case 3:
		s.fill(regular(at, 1.3*markRadius, 4, 0), l.color)
	default:
		const r = 2.5
		s.line([]point{{at.X - r, at.Y - r}, {at.X + r, at.Y + r}}, lineWidth, 0, l.color)
		s.line([]point{{at.X - r, at.Y + r}, {at.X + r, at.Y - r}}, lineWidth, 0, l.color)
	}
}

// sample draws a sample of a series around a point.
func (p *Plot) sample(s *sheet, i int, at point) {
	l := p.look(i, len(p.Series[i].X))
	left, right := at.X-legendSample/2, at.X+legendSample/2
	if p.Series[i].Style == Band {
		s.fill([]point{{left, at.Y - 5}, {right, at.Y - 5}, {right, at.Y + 5}, {left, at.Y + 5}}, pale(l.color))
		return
	}
	if l.line {
		s.line([]point{{left, at.Y}, {right, at.Y}}, max(l.width, lineWidth), l.dash, l.color)
	}
	if l.marks {
		s.mark(at, l)
	}
}

// series draws series i.
func (p *Plot) series(s *sheet, i int) {
	series := p.Series[i]
	d := p.drawable(series)
	l := p.look(i, len(d.at))
	on := s.through(d.at)
	switch {
	case len(series.Lines) > manyLines || !l.line && len(on) > manyPoints:
		s.density(on, series.Lines, l.color)
		return
	case series.Style == Band:
		s.fill(s.through(d.outline()), pale(l.color))
		return
	}
	for _, line := range series.Lines {
		for _, part := range unbroken(line) {
			s.line(s.through(part), l.width, 0, l.color)
		}
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
	for i, x := range s.X {
		y := s.Y[i]
		if !p.X.shows(x) || !p.Y.shows(y) {
			continue
		}
		if s.Low != nil {
			if !p.Y.shows(s.Low[i]) || !p.Y.shows(s.High[i]) {
				continue
			}
			d.low, d.high = append(d.low, p.Y.Within(s.Low[i])), append(d.high, p.Y.Within(s.High[i]))
		}
		at := point{p.X.Within(x), p.Y.Within(y)}
		if n := len(d.at); s.Style == Stepped && n > 0 {
			d.at = append(d.at, point{at.X, d.at[n-1].Y})
		}
		d.at = append(d.at, at)
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

// density draws points on paper, or lines with values at 0, 1, … and NaN for a gap, as the
// density of what covers each pixel.
func (s *sheet) density(points []point, lines [][]float64, of color.NRGBA) {
	k := s.scale()
	w, h := int((s.x.to-s.x.from)*k), int((s.y.from-s.y.to)*k)
	if w < 1 || h < 1 {
		return
	}
	counts := make([]float64, w*h)
	add := func(x, y int) {
		if x >= 0 && x < w && y >= 0 && y < h {
			counts[y*w+x]++
		}
	}
	for _, at := range points {
		x, y := int(math.Round((at.X-s.x.from)*k)), int(math.Round((at.Y-s.y.to)*k))
		for d := range 4 {
			add(x+d%2, y+d/2)
		}
	}
	for _, line := range lines {
		for i := range len(line) - 1 {
			x0, x1 := (s.x.at(float64(i))-s.x.from)*k, (s.x.at(float64(i+1))-s.x.from)*k
			y0, y1 := (s.y.at(line[i])-s.y.to)*k, (s.y.at(line[i+1])-s.y.to)*k
			if math.IsNaN(y0) || math.IsNaN(y1) {
				continue
			}
			steep := max(math.Abs(y1-y0)/(x1-x0), 1) // a steep line covers several rows of a column
			for x := math.Ceil(x0); x < x1; x++ {
				y := y0 + (y1-y0)*(x-x0)/(x1-x0)
				for dy := -steep / 2; dy < steep/2; dy++ {
					add(int(x), int(math.Round(y+dy)))
				}
			}
		}
	}
	s.image(point{s.x.from, s.y.to}, shades(counts, w, h, of))
}

// shades shows the logarithm of counts as opacity in 48 steps, which compress well.
func shades(counts []float64, w, h int, of color.NRGBA) image.Image {
	const steps, least = 48, 0.16
	most := 0.0
	for _, n := range counts {
		most = max(most, n)
	}
	tones := color.Palette{color.NRGBA{}}
	for k := 1; k <= steps; k++ {
		alpha := least + (0.95-least)*float64(k)/steps
		tones = append(tones, color.NRGBA{of.R, of.G, of.B, uint8(255 * alpha)})
	}
	img := image.NewPaletted(image.Rect(0, 0, w, h), tones)
	for i, n := range counts {
		if n > 0 {
			img.Pix[i] = uint8(1 + int(math.Round((steps-1)*math.Log1p(n)/math.Log1p(most))))
		}
	}
	return img
}
