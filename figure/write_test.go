package figure

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/internal/racetest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample has every kind of cell, of column and of series.
func sample() *Result {
	r := &Result{}
	t := r.Table("scores", "Accuracy of scores", Column{Name: "sampler"}, Column{Name: "λ"}, Column{Name: "M"},
		Column{Name: "time", Unit: "s", Format: "%.2f"}, Column{Name: "R-ACC"})
	t.Add("BLESS", 1e-5, 2205, 0.123456, 1.0/3)
	t.Add("uniform, \"flat\"", 0.001, 1900, math.NaN(), math.Inf(1))
	r.Table("empty", "", Column{Name: "n"})
	r.Note("λ is %s.", "per sample")
	p := r.Plot("growth", "Growth", Axis{Label: "n", Log: true}, Axis{Label: "time [s]", Log: true})
	x := []float64{10, 100, 1000}
	p.Add(Series{Name: "line", X: x, Y: []float64{1, 2, 3}})
	p.Add(Series{Name: "bars", X: x, Y: []float64{2, math.NaN(), 5}, Low: []float64{1, 2, 3}, High: []float64{3, 4, 9}, Style: Points})
	p.Add(Series{Name: "band", X: x, Low: []float64{1, 0, 2}, High: []float64{2, 4, 5}, Style: Band})
	return r
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (−want +got; -update rewrites):\n%s", name, diff)
	}
}

func TestWriters(t *testing.T) {
	r := sample()
	var b bytes.Buffer
	if err := r.WriteText(&b, 0); err != nil {
		t.Fatal(err)
	}
	golden(t, "sample.txt", b.Bytes())
	for _, width := range []int{40, 30} {
		b.Reset()
		if err := r.WriteText(&b, width); err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("sample-%d.txt", width), b.Bytes())
	}
	b.Reset()
	for _, table := range r.Tables {
		b.WriteString("\n")
		if err := table.WriteMarkdown(&b); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "sample.md", b.Bytes())
	b.Reset()
	if err := r.Tables[0].WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "sample.csv", b.Bytes())
	line, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "sample.json", append(line, '\n'))
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
	p := sample().Plots[0]
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
	if got := p.drawable(p.Series[1]); len(got.XYs) != 2 {
		t.Errorf("%d points with a NaN among 3, want 2", len(got.XYs))
	}
	if got := p.drawable(p.Series[2]); len(got.XYs) != 2 {
		t.Errorf("%d points of a band with a 0 on a logarithmic axis, want 2", len(got.XYs))
	}
	one := (&Plot{Name: "one", Names: []string{"a"}}).Add(Series{X: []float64{0}, Y: []float64{3}, Style: Points})
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
		for _, tick := range (logTicks{}).Ticks(c.low, c.high) {
			if tick.Value < c.low*(1-1e-9) || tick.Value > c.high*(1+1e-9) {
				t.Errorf("%g outside %g…%g", tick.Value, c.low, c.high)
			}
			if tick.Label != "" {
				got = append(got, tick.Label)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%g…%g: %s", c.low, c.high, diff)
		}
	}
}

func TestShapesAreChecked(t *testing.T) {
	table := (&Result{}).Table("t", "", Column{Name: "a"}, Column{Name: "b"})
	for name, f := range map[string]func(){
		"short row":       func() { table.Add(1) },
		"strange cell":    func() { table.Add(1, []int{}) },
		"column":          func() { table.Float("c") },
		"series":          func() { (&Plot{}).Add(Series{X: []float64{1}}) },
		"bars":            func() { (&Plot{}).Add(Series{X: []float64{1}, Y: []float64{1}, Low: []float64{1}}) },
		"band of nothing": func() { (&Plot{}).Add(Series{X: []float64{1}, Y: []float64{1}, Style: Band}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestFilesAreWritten(t *testing.T) {
	r, dir := sample(), filepath.Join(t.TempDir(), "new")
	r.Plot("nothing", "", Axis{}, Axis{})
	files, err := r.WriteCSVFiles("fig1", dir)
	if err != nil || len(files) != 2 || files[0] != filepath.Join(dir, "fig1-scores.csv") {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "sample.csv", text)
	if files, err = r.WritePNGFiles("fig1", dir); err != nil || len(files) != 1 {
		t.Errorf("plots: %v, %v", files, err)
	}
	one := filepath.Join(dir, "one.csv")
	if _, err := r.WriteCSVFiles("fig1", one); err == nil {
		t.Error("two tables went into one file")
	}
	r.Tables = r.Tables[:1]
	if files, err = r.WriteCSVFiles("fig1", one); err != nil || len(files) != 1 || files[0] != one {
		t.Errorf("one table: %v, %v", files, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 4 {
		t.Errorf("in the folder are %v, %v", left, err)
	}
}
