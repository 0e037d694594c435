package figure

import (
	"bytes"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// cloud is a plot of many points with a best one.
func cloud(n int) *Plot {
	rng := rand.New(rand.NewPCG(3, 1))
	p := &Plot{Name: "cloud", Title: "Cloud", X: Axis{Label: "x", Marks: []Mark{{0, "low"}, {1, "high"}}}, Y: Axis{Label: "y"}}
	s := Series{Name: "all", Style: Points, Color: 3}
	for range n {
		s.X, s.Y = append(s.X, rng.Float64()), append(s.Y, rng.NormFloat64())
	}
	return p.Add(Series{Name: "best", Style: Best, X: []float64{0.5}, Y: []float64{0}}).Add(s)
}

func svg(t *testing.T, p *Plot) string {
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
	few, many := svg(t, cloud(manyPoints)), svg(t, cloud(100_000))
	if strings.Contains(few, "<image") || strings.Count(few, "<path") < manyPoints {
		t.Errorf("%d points: %d paths", manyPoints, strings.Count(few, "<path"))
	}
	if strings.Count(many, "<image") != 1 || len(many) > 1<<20 {
		t.Errorf("100,000 points: %d bytes, %d images", len(many), strings.Count(many, "<image"))
	}
	if strings.LastIndex(many, "C81E2D") < strings.LastIndex(many, "<image") || !strings.Contains(many, ">low<") || !strings.Contains(many, "Liberation Sans") && !strings.Contains(many, "LiberationSans") {
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
			if r, g, bl, _ := img.At(x, y).RGBA(); r>>8 == 200 && g>>8 == 30 && bl>>8 == 45 {
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
		p := &Plot{Name: "lines", Names: []string{"a", "b", "c"}, Ticks: []Tick{{0, 0, "bottom"}, {2, 1, "top"}}}
		var s Series
		s.Name, s.Style = "all", Bundle
		for k := range n {
			u := float64(k) / float64(n)
			s.Lines = append(s.Lines, []float64{u, math.NaN(), 1 - u}, []float64{u, u, u})
		}
		return p.Add(s).Add(Series{Name: "best", Style: Bundle, Lines: s.Lines[:3]})
	}
	if few := svg(t, lines(20)); strings.Contains(few, "<image") || !strings.Contains(few, ">bottom<") {
		t.Error("few lines are an image, or a tick is missing")
	}
	if many := svg(t, lines(20_000)); strings.Count(many, "<image") != 1 || len(many) > 1<<20 {
		t.Errorf("many lines: %d bytes", len(many))
	}
}

// TestBars draws bars with errors.
func TestBars(t *testing.T) {
	p := &Plot{Name: "bars", Bars: []Bar{{"first", 0.75, 0.125}, {"second", 0.25, 0}}}
	if text := svg(t, p); !strings.Contains(text, ">first<") || !strings.Contains(text, ">second<") {
		t.Error("a name is missing")
	}
	if !(&Plot{Bars: []Bar{{"none", math.NaN(), 0}}}).Empty() {
		t.Error("a bar of no length is drawn")
	}
}
