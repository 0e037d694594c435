package figure

import (
	"image"
	"image/color"
	"math"
)

// manyPoints and manyLines are the numbers from which on points and lines are drawn as an
// image of their density. Marks would cover each other, and an SVG would have a node for
// each.
const (
	manyPoints = 5000
	manyLines  = 200
)

// density draws points or lines, with values at 0, 1, … and NaN for a gap, as the density of
// what covers each pixel.
func (s *sheet) density(points []point, lines [][]float64, of color.NRGBA) {
	k := s.scale()
	w, h := int((s.x.to-s.x.from)*k), int((s.y.from-s.y.to)*k)
	if w < 1 || h < 1 {
		return
	}
	at := counts{w: w, h: h, n: make([]float64, w*h)}
	column := func(x float64) float64 { return s.x.share(x) * float64(w-1) }
	row := func(y float64) float64 { return (1 - s.y.share(y)) * float64(h-1) }
	for _, q := range points {
		x, y := int(math.Round(column(q.X))), int(math.Round(row(q.Y)))
		for dx := range 2 {
			for dy := range 2 {
				at.add(x+dx, y+dy)
			}
		}
	}
	for _, line := range lines {
		for k := range len(line) - 1 {
			x0, x1, y0, y1 := column(float64(k)), column(float64(k+1)), row(line[k]), row(line[k+1])
			if math.IsNaN(y0) || math.IsNaN(y1) {
				continue
			}
			steep := max(math.Abs(y1-y0)/(x1-x0), 1) // a steep line covers several rows of a column
			for x := math.Ceil(x0); x < x1; x++ {
				y := y0 + (y1-y0)*(x-x0)/(x1-x0)
				for dy := -steep / 2; dy < steep/2; dy++ {
					at.add(int(x), int(math.Round(y+dy)))
				}
			}
		}
	}
	s.image(point{s.x.from, s.y.to}, at.image(of))
}

// counts say how often each pixel is covered.
type counts struct {
	w, h int
	n    []float64
}

func (c *counts) add(x, y int) {
	if x >= 0 && x < c.w && y >= 0 && y < c.h {
		c.n[y*c.w+x]++
	}
}

// image shows the logarithm of the counts as opacity in 48 steps, which compress well.
func (c *counts) image(of color.NRGBA) image.Image {
	const steps, least = 48, 0.16
	most := 0.0
	for _, n := range c.n {
		most = max(most, n)
	}
	palette := color.Palette{color.NRGBA{}}
	for k := 1; k <= steps; k++ {
		alpha := least + (0.95-least)*float64(k)/steps
		palette = append(palette, color.NRGBA{of.R, of.G, of.B, uint8(255 * alpha)})
	}
	img := image.NewPaletted(image.Rect(0, 0, c.w, c.h), palette)
	for i, n := range c.n {
		if n > 0 {
			img.Pix[i] = uint8(1 + int(math.Round((steps-1)*math.Log1p(n)/math.Log1p(most))))
		}
	}
	return img
}
