package figure

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// cloud is a plot of many points with a best one.
func cloud(n int) *Plot {
	rng := rand.New(rand.NewPCG(3, 1))
	p := &Plot{Name: "cloud", Title: "Cloud", X: Axis{Label: "x", Marks: []Mark{{0, "low"}, {1, "high"}}}, Y: Axis{Label: "y"}}
	s := Series{Name: "all", Style: Points, Color: Accent}
	for range n {
		s.X, s.Y = append(s.X, rng.Float64()), append(s.Y, rng.NormFloat64())
	}
	return p.Add(s).Add(Series{Name: "best", Style: Points, Color: Best, X: []float64{0.5}, Y: []float64{0}})
}

func svgOf(t *testing.T, p *Plot) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestManyPoints checks that 100,000 points are an image of bounded size, and that few are
// marks of their own. The best point is drawn last and in its color.
func TestManyPoints(t *testing.T) {
	few, many := svgOf(t, cloud(manyPoints)), svgOf(t, cloud(100_000))
	if strings.Contains(few, "<image") || strings.Count(few, "<circle") < manyPoints {
		t.Errorf("%d points: %d circles", manyPoints, strings.Count(few, "<circle"))
	}
	if strings.Count(many, "<image") != 1 || len(many) > 1<<20 {
		t.Errorf("100,000 points: %d bytes, %d images", len(many), strings.Count(many, "<image"))
	}
	if strings.LastIndex(many, "B3261E") < strings.LastIndex(many, "<image") || !strings.Contains(many, ">low<") || !strings.Contains(many, "sans-serif") {
		t.Error("the best point is under the others, or a tick or the typeface is missing")
	}
	var b bytes.Buffer
	if err := cloud(100_000).WritePNG(&b); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if w := img.Bounds().Dx(); w != 1209 {
		t.Errorf("%d pixels wide, want 16 cm at %d for an inch", w, resolution)
	}
	red := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, g, bl, _ := img.At(x, y).RGBA(); r>>8 == 0xb3 && g>>8 == 0x26 && bl>>8 == 0x1e {
				red++
			}
		}
	}
	if red < 200 {
		t.Errorf("the best point and its legend have %d pixels", red)
	}
}

// TestBundle draws lines, few and many, with gaps.
func TestBundle(t *testing.T) {
	lines := func(n int) *Plot {
		p := &Plot{Name: "lines", X: Axis{Marks: []Mark{{0, "a"}, {1, "b"}, {2, "c"}}}, Texts: []Text{{0, 0, "bottom"}, {2, 1, "top"}}}
		var s Series
		s.Name, s.Style, s.Color = "all", Bundle, Accent
		for k := range n {
			u := float64(k) / float64(n)
			s.Lines = append(s.Lines, []float64{u, math.NaN(), 1 - u}, []float64{u, u, u})
		}
		return p.Add(s).Add(Series{Name: "best", Style: Bundle, Lines: s.Lines[:3]})
	}
	if few := svgOf(t, lines(20)); strings.Contains(few, "<image") || !strings.Contains(few, ">bottom<") {
		t.Error("few lines are an image, or a tick is missing")
	}
	if many := svgOf(t, lines(20_000)); strings.Count(many, "<image") != 1 || len(many) > 1<<20 {
		t.Errorf("many lines: %d bytes", len(many))
	}
}

// TestGaps checks that no line bridges a gap.
func TestGaps(t *testing.T) {
	nan := math.NaN()
	got := unbroken([]float64{nan, 0.1, 0.2, nan, nan, 0.5, nan})
	if want := "[[{1 0.1} {2 0.2}] [{5 0.5}]]"; fmt.Sprint(got) != want {
		t.Errorf("pieces %v, want %s", got, want)
	}
}

// TestLineOfOnePoint checks that a line of one point has a mark.
func TestLineOfOnePoint(t *testing.T) {
	draw := func(style Style) string {
		p := &Plot{Name: "one"}
		return svgOf(t, p.Add(Series{Style: style, X: []float64{1}, Y: []float64{1}}))
	}
	if line, mark := strings.Count(draw(Line), "<circle"), strings.Count(draw(Points), "<circle"); line < mark {
		t.Errorf("a line of one point has %d discs, and a mark %d", line, mark)
	}
}

// TestAxisEnds checks that points beyond the ends of an axis lie at its edge.
func TestAxisEnds(t *testing.T) {
	p := &Plot{Name: "far", X: Axis{Min: 0, Max: 2}, Y: Axis{Min: 1, Max: 2}}
	p.Add(Series{Style: Points, X: []float64{-1, 1, 5}, Y: []float64{1.5, 1e9, -7}}).
		Add(Series{Style: Band, X: []float64{1}, Low: []float64{-3}, High: []float64{1.5}})
	if got := fmt.Sprint(p.drawable(p.Series[0]).at); got != "[{0 1.5} {1 2} {2 1}]" {
		t.Errorf("the points lie at %s", got)
	}
	if got := fmt.Sprint(p.drawable(p.Series[1]).outline()); got != "[{1 1.5} {1 1}]" {
		t.Errorf("the band is %s", got)
	}
	drawn, err := p.layOut(new(svg))
	if err != nil {
		t.Fatal(err)
	}
	if drawn.y.low < 0.9 || drawn.y.high > 2.1 {
		t.Errorf("the axis is from %g to %g", drawn.y.low, drawn.y.high)
	}
}

// TestLegendBelow checks that the legend lies below the axes, in rows that fit, and that
// the margins are empty.
func TestLegendBelow(t *testing.T) {
	p := &Plot{Name: "legend", Title: "A title", X: Axis{Label: "x"}, Y: Axis{Label: "y"}}
	for i := range 12 {
		p.Add(Series{Name: fmt.Sprintf("a series with the number %d", i), Style: Line, X: []float64{0, 1}, Y: []float64{0, 1e4}})
	}
	text := svgOf(t, p)
	y := func(of string) (y float64) {
		m := regexp.MustCompile(`<text x="([-\d.]+)" y="([-\d.]+)"[^>]*>` + of + `<`).FindStringSubmatch(strings.ReplaceAll(text, "\n", " "))
		if m == nil {
			t.Fatalf("there is no text %q", of)
		}
		y, _ = strconv.ParseFloat(m[2], 64)
		return y
	}
	if axis, first, last := y("x"), y("a series with the number 0"), y("a series with the number 11"); axis >= first || first >= last {
		t.Errorf("the axis has its name at %g, and the legend is from %g to %g", axis, first, last)
	}
	var b bytes.Buffer
	if err := p.WritePNG(&b); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	const edge = 6 * resolution / 72
	size := img.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			if r, g, bl, _ := img.At(x, y).RGBA(); (x < edge || x >= size.Dx()-edge || y < edge || y >= size.Dy()-edge) && r+g+bl != 3*0xffff {
				t.Fatalf("pixel %d, %d of the margin is not white", x, y)
			}
		}
	}
}

// TestBars draws bars, each beside its name.
func TestBars(t *testing.T) {
	p := &Plot{Name: "bars", Y: Axis{Marks: []Mark{{0, "first"}, {1, "second"}}}}
	p.Add(Series{Style: Bar, X: []float64{0, 0.75}, Y: []float64{0, 0}}).Add(Series{Style: Bar, X: []float64{0, 0.25}, Y: []float64{1, 1}})
	if text := svgOf(t, p); !strings.Contains(text, ">first<") || !strings.Contains(text, ">second<") || strings.Count(text, `stroke-width="12"`) != 2 {
		t.Error("a name or a bar is missing")
	}
}

// TestLongNames checks that the whole subtitle is written, and that names of an axis do not
// cover each other and keep their ends.
func TestLongNames(t *testing.T) {
	name := strings.Repeat("a-long-name-", 10) + "the-end"
	p := &Plot{Name: "names", Title: "Best so far", Subtitle: name, Y: Axis{Marks: []Mark{}}}
	for i := range 9 {
		p.X.Marks = append(p.X.Marks, Mark{float64(i), fmt.Sprintf("model.encoder.layers.%d", i)})
	}
	text := svgOf(t, p.Add(Series{Style: Line, X: []float64{0, 8}, Y: []float64{0, 1}}))
	if !strings.Contains(text, ">"+name+"<") {
		t.Error("the subtitle is cut")
	}
	letter, err := face(100, 72)
	if err != nil {
		t.Fatal(err)
	}
	s := &sheet{letter: letter}
	ends := map[string]float64{} // by height
	for i := range 9 {
		m := regexp.MustCompile(fmt.Sprintf(`<text x="([-\d.]+)" y="([-\d.]+)"[^>]*>([^<]*%d)<`, i)).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("the name of mark %d is missing", i)
		}
		x, err := strconv.ParseFloat(m[1], 64)
		half := s.width(m[3], tickSize) / 2
		if last, ok := ends[m[2]]; err != nil || ok && x-half < last || x-half < 0 || x+half > paperWidth {
			t.Errorf("%q at %g covers the one before, or the margin", m[3], x)
		}
		ends[m[2]] = x + half
	}
}
