package figure

import (
	"image"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// manyPoints and manyLines are the numbers from which on points and lines are drawn as an
// image of their density. Marks would cover each other, and an SVG would have a node for
// each.
const (
	manyPoints = 5000
	manyLines  = 200
)

// rasterScale is the number of pixels a point of length has in an image of a density.
const rasterScale = 2

// density draws points or lines as the density of what covers each pixel.
type density struct {
	points plotter.XYs
	lines  [][]float64 // values at 0, 1, …, NaN for a gap
	color  color.Color
}

// Plot implements [plot.Plotter].
func (d density) Plot(c draw.Canvas, p *plot.Plot) {
	size := c.Size()
	w, h := int(size.X.Points()*rasterScale), int(size.Y.Points()*rasterScale)
	if w < 1 || h < 1 {
		return
	}
	at := counts{w: w, h: h, n: make([]float64, w*h)}
	column := func(x float64) float64 { return p.X.Norm(x) * float64(w-1) }
	row := func(y float64) float64 { return (1 - p.Y.Norm(y)) * float64(h-1) }
	for _, q := range d.points {
		x, y := int(math.Round(column(q.X))), int(math.Round(row(q.Y)))
		for dx := range 2 {
			for dy := range 2 {
				at.add(x+dx, y+dy, 1)
			}
		}
	}
	for _, line := range d.lines {
		for k := range len(line) - 1 {
			x0, x1, y0, y1 := column(float64(k)), column(float64(k+1)), row(line[k]), row(line[k+1])
			if math.IsNaN(y0) || math.IsNaN(y1) {
				continue
			}
			steep := max(math.Abs(y1-y0)/(x1-x0), 1) // a steep line covers several rows of a column
			for x := math.Ceil(x0); x < x1; x++ {
				y := y0 + (y1-y0)*(x-x0)/(x1-x0)
				for dy := -steep / 2; dy < steep/2; dy++ {
					at.add(int(x), int(math.Round(y+dy)), 1)
				}
			}
		}
	}
	c.DrawImage(c.Rectangle, at.image(d.color))
}

// DataRange implements [plot.DataRanger].
func (d density) DataRange() (xmin, xmax, ymin, ymax float64) {
	if d.points != nil {
		return plotter.XYRange(d.points)
	}
	xmin, ymin, ymax = 0, math.Inf(1), math.Inf(-1)
	for _, line := range d.lines {
		xmax = max(xmax, float64(len(line)-1))
		for _, y := range line {
			if !math.IsNaN(y) {
				ymin, ymax = min(ymin, y), max(ymax, y)
			}
		}
	}
	return xmin, xmax, ymin, ymax
}

// Thumbnail implements [plot.Thumbnailer].
func (d density) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(d.color, c.ClipPolygonXY([]vg.Point{{X: c.Min.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Max.Y}, {X: c.Min.X, Y: c.Max.Y}}))
}

// counts say how often each pixel is covered.
type counts struct {
	w, h int
	n    []float64
}

func (c *counts) add(x, y int, n float64) {
	if x >= 0 && x < c.w && y >= 0 && y < c.h {
		c.n[y*c.w+x] += n
	}
}

// image shows the logarithm of the counts as opacity in 48 steps, which compress well.
func (c *counts) image(of color.Color) image.Image {
	const steps, least = 48, 0.16
	most := 0.0
	for _, n := range c.n {
		most = max(most, n)
	}
	r, g, b, _ := of.RGBA()
	palette := color.Palette{color.NRGBA{}}
	for k := 1; k <= steps; k++ {
		alpha := least + (0.95-least)*float64(k)/steps
		palette = append(palette, color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: uint8(255 * alpha)})
	}
	img := image.NewPaletted(image.Rect(0, 0, c.w, c.h), palette)
	for i, n := range c.n {
		if n > 0 {
			img.Pix[i] = uint8(1 + int(math.Round((steps-1)*math.Log1p(n)/math.Log1p(most))))
		}
	}
	return img
}
