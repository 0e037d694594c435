package figure

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// The size of plots in points, and the resolution of PNG, twice that of a plain screen.
const (
	paperWidth, paperHeight = 16 / 2.54 * 72, 11 / 2.54 * 72
	resolution              = 192
)

// point is a place on paper in points from its upper left corner, or in a plot.
type point struct{ X, Y float64 }

// paper is what plots are drawn on.
type paper interface {
	fill(area []point, of color.NRGBA)
	disc(at point, radius float64, of color.NRGBA)
	line(through []point, width, dash float64, of color.NRGBA) // dash 0 is solid
	// text has its middle at a height. Its start is at the point, or its middle or end for
	// an anchor of 0.5 or 1.
	text(at point, s string, size, anchor float64)
	image(upperLeft point, img image.Image)
	// scale is how many pixels of an image make a point.
	scale() float64
}

// typeface reads the typeface of all texts.
var typeface = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(goregular.TTF) })

// face is the typeface in a size. It is for one goroutine.
func face(size, dpi float64) (font.Face, error) {
	f, err := typeface()
	if err != nil {
		return nil, err
	}
	return opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: dpi})
}

// svg is paper that is written as text.
type svg struct{ bytes.Buffer }

// WriteSVG draws the plot. It fails if there is nothing to draw. Dense parts are an image in
// it, so that its size does not grow with the number of points.
func (p *Plot) WriteSVG(out io.Writer) error {
	s := new(svg)
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" width="%.6gpt" height="%.6gpt" viewBox="0 0 %[1]g %[2]g" font-family="Go, Arial, Helvetica, sans-serif">`+"\n", paperWidth, paperHeight)
	if err := p.draw(s); err != nil {
		return err
	}
	s.WriteString("</svg>\n")
	_, err := s.WriteTo(out)
	return err
}

// path writes the data of a path.
func (s *svg) path(through []point, end string) {
	s.WriteString(`<path d="`)
	for i, at := range through {
		fmt.Fprintf(s, "%c%.6g,%.6g", "ML"[min(i, 1)], at.X, at.Y)
	}
	s.WriteString(end + `" `)
}

// paint writes a color as an attribute.
func (s *svg) paint(attribute string, of color.NRGBA) {
	fmt.Fprintf(s, `%s="#%02X%02X%02X"`, attribute, of.R, of.G, of.B)
	if of.A < 255 {
		fmt.Fprintf(s, ` %s-opacity="%.3g"`, attribute, float64(of.A)/255)
	}
}

func (s *svg) fill(area []point, of color.NRGBA) {
	s.path(area, "Z")
	s.paint("fill", of)
	s.WriteString("/>\n")
}

func (s *svg) disc(at point, radius float64, of color.NRGBA) {
	fmt.Fprintf(s, `<circle cx="%.6g" cy="%.6g" r="%g" `, at.X, at.Y, radius)
	s.paint("fill", of)
	s.WriteString("/>\n")
}

func (s *svg) line(through []point, width, dash float64, of color.NRGBA) {
	s.path(through, "")
	s.paint("stroke", of)
	fmt.Fprintf(s, ` fill="none" stroke-width="%g"`, width)
	if dash > 0 {
		fmt.Fprintf(s, ` stroke-dasharray="%g"`, dash)
	}
	s.WriteString("/>\n")
}

func (s *svg) text(at point, text string, size, anchor float64) {
	fmt.Fprintf(s, `<text x="%.6g" y="%.6g" font-size="%g" text-anchor="%s">%s</text>`+"\n", at.X, at.Y+capHeight*size/2, size, []string{"start", "middle", "end"}[int(2*anchor)], html.EscapeString(text))
}

func (s *svg) image(upperLeft point, img image.Image) {
	var data bytes.Buffer
	_ = png.Encode(&data, img) // a buffer takes all
	size := img.Bounds().Size()
	fmt.Fprintf(s, `<image x="%.6g" y="%.6g" width="%.6g" height="%.6g" preserveAspectRatio="none" href="data:image/png;base64,%s"/>`+"\n",
		upperLeft.X, upperLeft.Y, float64(size.X)/s.scale(), float64(size.Y)/s.scale(), base64.StdEncoding.EncodeToString(data.Bytes()))
}

func (s *svg) scale() float64 { return 2 }

// capHeight is the height of capital letters as a share of the size.
const capHeight = 0.72

// picture is paper of pixels.
type picture struct {
	*image.RGBA
	raster vector.Rasterizer
	faces  map[float64]font.Face
}

// WritePNG draws the plot. It fails if there is nothing to draw.
func (p *Plot) WritePNG(out io.Writer) error {
	of := &picture{faces: make(map[float64]font.Face)}
	of.RGBA = image.NewRGBA(image.Rect(0, 0, int(paperWidth*of.scale()), int(paperHeight*of.scale())))
	if err := p.draw(of); err != nil {
		return err
	}
	return png.Encode(out, of.RGBA)
}

func (p *picture) scale() float64 { return resolution / 72.0 }

// cover paints polygons that go the same way around.
func (p *picture) cover(polygons [][]point, of color.NRGBA) {
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	for _, polygon := range polygons {
		for _, at := range polygon {
			low = point{min(low.X, at.X), min(low.Y, at.Y)}
			high = point{max(high.X, at.X), max(high.Y, at.Y)}
		}
	}
	k := p.scale()
	whole := func(v float64) int { return int(min(max(v*k, -1), 1e5)) }
	box := image.Rect(whole(low.X)-1, whole(low.Y)-1, whole(high.X)+2, whole(high.Y)+2).Intersect(p.Rect)
	if box.Empty() {
		return
	}
	p.raster.Reset(box.Dx(), box.Dy())
	for _, polygon := range polygons {
		for i, at := range polygon {
			x, y := float32(at.X*k-float64(box.Min.X)), float32(at.Y*k-float64(box.Min.Y))
			if i == 0 {
				p.raster.MoveTo(x, y)
			} else {
				p.raster.LineTo(x, y)
			}
		}
		p.raster.ClosePath()
	}
	p.raster.Draw(p.RGBA, box, image.NewUniform(of), image.Point{})
}

func (p *picture) fill(area []point, of color.NRGBA) { p.cover([][]point{area}, of) }

func (p *picture) disc(at point, radius float64, of color.NRGBA) {
	p.fill(regular(at, radius, 24, 0), of)
}

// line covers each piece of a line, and the joints between them.
func (p *picture) line(through []point, width, dash float64, of color.NRGBA) {
	var polygons [][]point
	for _, part := range dashes(through, dash) {
		for i, a := range part[:len(part)-1] {
			b := part[i+1]
			length := math.Hypot(b.X-a.X, b.Y-a.Y)
			if length == 0 {
				continue
			}
			x, y := (a.Y-b.Y)/length*width/2, (b.X-a.X)/length*width/2
			polygons = append(polygons, []point{{a.X + x, a.Y + y}, {a.X - x, a.Y - y}, {b.X - x, b.Y - y}, {b.X + x, b.Y + y}})
			if i > 0 {
				polygons = append(polygons, regular(a, width/2, 8, 0))
			}
		}
	}
	p.cover(polygons, of)
}

// dashes cuts a line into dashes with gaps of the same length, if that is not 0.
func dashes(line []point, dash float64) (out [][]point) {
	if dash == 0 {
		return [][]point{line}
	}
	left, drawn := dash, true
	part := line[:1:1]
	for i := 1; i < len(line); {
		a, b := part[len(part)-1], line[i]
		length := math.Hypot(b.X-a.X, b.Y-a.Y)
		if length < left {
			left -= length
			part = append(part, b)
			i++
			continue
		}
		at := point{a.X + (b.X-a.X)*left/length, a.Y + (b.Y-a.Y)*left/length}
		if drawn {
			out = append(out, append(part, at))
		}
		left, drawn, part = dash, !drawn, []point{at}
	}
	if drawn && len(part) > 1 {
		out = append(out, part)
	}
	return out
}

// regular is a polygon with n corners on a circle, of which the first is turned from the right.
func regular(at point, radius float64, n int, turn float64) []point {
	out := make([]point, n)
	for i := range out {
		sin, cos := math.Sincos(turn + 2*math.Pi*float64(i)/float64(n))
		out[i] = point{at.X + radius*cos, at.Y + radius*sin}
	}
	return out
}

func (p *picture) text(at point, s string, size, anchor float64) {
	if p.faces[size] == nil {
		f, err := face(size, resolution)
		if err != nil {
			return // draw has measured texts with it
		}
		p.faces[size] = f
	}
	pen, k := font.Drawer{Dst: p.RGBA, Src: image.Black, Face: p.faces[size]}, p.scale()
	pen.Dot.X = fixed.Int26_6(64*at.X*k - anchor*float64(pen.MeasureString(s)))
	pen.Dot.Y = fixed.Int26_6(64 * k * (at.Y + capHeight*size/2))
	pen.DrawString(s)
}

func (p *picture) image(upperLeft point, img image.Image) {
	at := image.Pt(int(math.Round(upperLeft.X*p.scale())), int(math.Round(upperLeft.Y*p.scale())))
	draw.Draw(p.RGBA, img.Bounds().Add(at), img, image.Point{}, draw.Over)
}
