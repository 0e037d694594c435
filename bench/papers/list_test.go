package papers

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/bench/experiment"
)

// Every experiment has a unique name and a description, and fits a terminal.
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
	q := experiment.Quantiles([]float64{4, 1, 3, 2, 5}, 0, 0.05, 0.5, 1)
	for i, want := range []float64{1, 1.2, 3, 5} {
		near("quantile", q[i], want, 1e-15)
	}
	near("median of two", median([]float64{1, 2}), 1.5, 0)
	if !math.IsNaN(median(nil)) || !math.IsNaN(mean(nil)) || !math.IsNaN(slope([]float64{1}, []float64{1})) || deviation([]float64{3}) != 0 {
		t.Error("of nothing something was made")
	}
	x := []float64{1, 10, 50}
	near("slope", slope(x, []float64{3, 3 * math.Pow(10, 1.5), 3 * math.Pow(50, 1.5)}), 1.5, 1e-12)

	// The interval of a mean of n normal numbers is about ±1.96 σ/√n.
	env := &experiment.Env{Seed: 7}
	rng, v := env.Rand("statistics test", 0), make([]float64, 400)
	for i := range v {
		v[i] = 2 + rng.NormFloat64()
	}
	low, high := experiment.Bootstrap([][]float64{v}, 2000, rng, func(g [][]float64) float64 { return mean(g[0]) })
	near("interval", high-low, 2*1.96*deviation(v)/20, 0.02)
	near("its middle", (low+high)/2, mean(v), 0.01)
}
