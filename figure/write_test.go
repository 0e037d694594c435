package figure

import (
	"bytes"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/internal/racetest"
)

// sample has every kind of series.
func sample() *Plot {
	p := &Plot{Name: "growth", Title: "Growth", X: Axis{Label: "n", Log: true}, Y: Axis{Label: "time [s]", Log: true}}
	x := []float64{10, 100, 1000}
	p.Add(Series{Name: "line", X: x, Y: []float64{1, 2, 3}})
	p.Add(Series{Name: "bars", X: x, Y: []float64{2, math.NaN(), 5}, Low: []float64{1, 2, 3}, High: []float64{3, 4, 9}, Style: Points})
	p.Add(Series{Name: "band", X: x, Low: []float64{1, 0, 2}, High: []float64{2, 4, 5}, Style: Band})
	return p
}

// The drawing depends on the series, and points that cannot be drawn are left out.
func TestPlots(t *testing.T) {
	racetest.Alone(t)
	decode := func(p *Plot) image.Image {
		t.Helper()
		var b bytes.Buffer
		if err := p.WritePNG(&b); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	p := sample()
	whole := decode(p)
	if s := whole.Bounds().Size(); s.X < 400 || s.Y < 300 {
		t.Errorf("size %v", s)
	}
	for i := range p.Series {
		less := *p
		less.Series = append(append([]Series{}, p.Series[:i]...), p.Series[i+1:]...)
		if same(whole, decode(&less)) {
			t.Errorf("without series %s the plot is the same", p.Series[i].Name)
		}
	}
	if got := p.drawable(p.Series[1]); len(got.at) != 2 {
		t.Errorf("%d points with a NaN among 3, want 2", len(got.at))
	}
	if got := p.drawable(p.Series[2]); len(got.at) != 2 {
		t.Errorf("%d points of a band with a 0 on a logarithmic axis, want 2", len(got.at))
	}
	one := (&Plot{Name: "one", X: Axis{Marks: []Mark{{0, "a"}}}}).Add(Series{X: []float64{0}, Y: []float64{3}, Style: Points})
	if same(whole, decode(one)) {
		t.Error("a point alone is drawn like the rest")
	}
	if err := (&Plot{Name: "none"}).WritePNG(&bytes.Buffer{}); err == nil {
		t.Error("an empty plot was drawn")
	}
}

func same(a, b image.Image) bool {
	if a.Bounds() != b.Bounds() {
		return false
	}
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y++ {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x++ {
			if a.At(x, y) != b.At(x, y) {
				return false
			}
		}
	}
	return true
}

func TestLogTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      []string
	}{{1, 100, []string{"1", "2", "5", "10", "20", "50", "100"}}, {1e-3, 1e3, []string{"0.001", "0.01", "0.1", "1", "10", "100", "1000"}}, {3, 4, []string{"3.0", "3.5", "4.0"}}, {0.7, 9, []string{"1", "2", "5"}}} {
		var got []string
		for _, tick := range logTicks(c.low, c.high) {
			if tick.At < c.low*(1-1e-9) || tick.At > c.high*(1+1e-9) {
				t.Errorf("%g outside %g…%g", tick.At, c.low, c.high)
			}
			if tick.Text != "" {
				got = append(got, tick.Text)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%g…%g: %s", c.low, c.high, diff)
		}
	}
}

func TestShapesAreChecked(t *testing.T) {
	for name, s := range map[string]Series{
		"series":          {X: []float64{1}},
		"bars":            {X: []float64{1}, Y: []float64{1}, Low: []float64{1}},
		"band of nothing": {X: []float64{1}, Y: []float64{1}, Style: Band},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			(&Plot{}).Add(s)
		}()
	}
}

func TestFilesAreWritten(t *testing.T) {
	plots, dir := Plots{sample()}, filepath.Join(t.TempDir(), "new")
	plots.Plot("nothing", "", Axis{}, Axis{})
	for _, write := range []func(name, folder string) ([]string, error){plots.WritePNGFiles, plots.WriteSVGFiles} {
		if files, err := write("fig1", dir); err != nil || len(files) != 1 {
			t.Errorf("plots: %v, %v", files, err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != "fig1-growth.png" {
		t.Errorf("in the folder are %v, %v", left, err)
	}
}
