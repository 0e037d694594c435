package bench

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEnvironmentsAreChecked(t *testing.T) {
	ran := false
	e := Experiment{Name: "x", Parts: []string{"a", "b"}, Measure: func(context.Context, *Env) (*Result, error) {
		ran = true
		return nil, nil
	}}
	var part *PartError
	var value *ValueError
	if _, err := e.Run(context.Background(), &Env{Only: []string{"a", "c"}}); !errors.As(err, &part) || part.Part != "c" || !strings.Contains(err.Error(), "it has a, b") {
		t.Errorf("part c: %v", err)
	}
	for _, env := range []Env{{Repeats: -1}, {Workers: -1}, {Scale: 2}, {Scale: -2}} {
		if _, err := e.Run(context.Background(), &env); !errors.As(err, &value) {
			t.Errorf("%+v: %v", env, err)
		}
	}
	over, end := context.WithCancel(context.Background())
	end()
	if _, err := e.Run(over, &Env{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if ran {
		t.Error("it was measured all the same")
	}
}

func TestRepeats(t *testing.T) {
	for _, c := range []struct {
		own, asked int
		scale      Scale
		want       int
	}{{10, 0, Standard, 10}, {10, 0, Quick, 2}, {10, 3, Quick, 3}, {0, 0, Full, 1}, {1, 0, Quick, 1}} {
		got := 0
		e := Experiment{Repeats: c.own, Measure: func(_ context.Context, env *Env) (*Result, error) {
			got = env.Repeats
			return nil, nil
		}}
		env := &Env{Scale: c.scale, Repeats: c.asked}
		if _, err := e.Run(context.Background(), env); err != nil || got != c.want || env.Repeats != c.asked {
			t.Errorf("%+v: %d repeats, %v; the caller's are %d", c, got, err, env.Repeats)
		}
	}
}

func TestFiles(t *testing.T) {
	var missing *DataError
	if _, err := (&Env{}).File("a/b.csv"); !errors.As(err, &missing) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("no folder: %v", err)
	}
	dir := t.TempDir()
	env := &Env{Data: dir}
	if _, err := env.File("b.csv"); !errors.As(err, &missing) || missing.Folder != dir {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.csv"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if path, err := env.File("b.csv"); err != nil || path != filepath.Join(dir, "b.csv") {
		t.Errorf("%s, %v", path, err)
	}
}

// Every experiment has a name of its own, says what it is, and fits a terminal.
func TestList(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		if seen[e.Name] || e.Name == "" || e.Title == "" || e.Source == "" || e.About == "" || e.Measure == nil {
			t.Errorf("%q is there twice, or lacks something", e.Name)
		}
		seen[e.Name] = true
		if found, err := Find(e.Name); err != nil || found.Title != e.Title {
			t.Errorf("%s is not found: %v", e.Name, err)
		}
		for line := range strings.Lines(e.About) {
			if n := utf8.RuneCountInString(line); n > 89 {
				t.Errorf("%s: a line of %d characters: %s", e.Name, n, line)
			}
		}
	}
	var name *NameError
	if _, err := Find("fig9.9"); !errors.As(err, &name) {
		t.Errorf("fig9.9: %v", err)
	}
}

func TestStatistics(t *testing.T) {
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	q := Quantiles([]float64{4, 1, 3, 2, 5}, 0, 0.05, 0.5, 1)
	for i, want := range []float64{1, 1.2, 3, 5} {
		near("quantile", q[i], want, 1e-15)
	}
	near("median of two", median([]float64{1, 2}), 1.5, 0)
	if !math.IsNaN(median(nil)) || !math.IsNaN(mean(nil)) || !math.IsNaN(slope([]float64{1}, []float64{1})) || deviation([]float64{3}) != 0 {
		t.Error("of nothing something was made")
	}
	x := []float64{1, 10, 50}
	near("slope", slope(x, []float64{3, 3 * math.Pow(10, 1.5), 3 * math.Pow(50, 1.5)}), 1.5, 1e-12)

	// The interval of a mean of n normal numbers is ±1.96 σ/√n, nearly.
	env := &Env{Seed: 7}
	rng, v := env.Rand("statistics test", 0), make([]float64, 400)
	for i := range v {
		v[i] = 2 + rng.NormFloat64()
	}
	low, high := Bootstrap([][]float64{v}, 2000, rng, func(g [][]float64) float64 { return mean(g[0]) })
	near("interval", high-low, 2*1.96*deviation(v)/20, 0.02)
	near("its middle", (low+high)/2, mean(v), 0.01)
}

func TestStopwatch(t *testing.T) {
	w := StartWatch()
	sum := 0.0
	for w.Wall() < 0.03 {
		for i := range 1000 {
			sum += math.Sqrt(float64(i))
		}
	}
	if cpu := w.CPU(); sum == 0 || cpu <= 0 || cpu > 60 {
		t.Errorf("CPU time %v s in %v s", cpu, w.Wall())
	}
}
