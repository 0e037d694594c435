package bo

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/internal/bench"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/space"
)

// dataFolder returns the folder of real data: BKB_DATA, or shared/data beside the
// module; "" where there is none.
func dataFolder() string {
	dir := os.Getenv("BKB_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "MANIFEST.md")); err != nil {
		return ""
	}
	return dir
}

// open opens a problem; it skips the test where data are missing.
func open(t testing.TB, l Listed) Problem {
	t.Helper()
	p, err := l.Open(dataFolder())
	var missing *bench.DataError
	if errors.As(err, &missing) {
		t.Skipf("no real data: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// random is a configuration that is uniform in the unit cube.
func random(t testing.TB, s *space.Space, float func() float64) space.Config {
	t.Helper()
	u := make([]float64, s.Dim())
	for i := range u {
		u[i] = float()
	}
	c, err := s.Decode(u)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every problem keeps the contract: names, valid spaces, nothing below the best,
// half of all configurations below the median, noise by rng alone, failures alike
// in Evaluate and True. Those of the full tier too where BKB_SUITES is set.
func TestProblemsKeepTheContract(t *testing.T) {
	names := map[string]bool{}
	for _, suite := range Suites() {
		for _, l := range suite.Problems {
			if names[l.Name] {
				t.Errorf("%s stands there twice", l.Name)
			}
			names[l.Name] = true
			if l.Tier == Full && os.Getenv("BKB_SUITES") == "" {
				continue
			}
			t.Run(l.Name, func(t *testing.T) {
				p := open(t, l)
				if p.Name() != l.Name || p.Suite() != suite.Name {
					t.Errorf("is %q of %q", p.Name(), p.Suite())
				}
				keepsContract(t, p)
			})
		}
	}
}

func keepsContract(t *testing.T, p Problem) {
	rng := stream.New(stream.Derive(1, p.Name(), 0))
	below, worked, n := 0, 0, 300
	for range n {
		c := random(t, p.Space(), rng.Float64)
		v := p.True(c)
		if math.IsNaN(v) || math.IsInf(v, -1) || v < p.Best()-1e-9*math.Abs(p.Best()) {
			t.Fatalf("True(%v) = %v, best %v", c, v, p.Best())
		}
		seed := rng.Uint64()
		y, ok := p.Evaluate(c, stream.New(seed))
		again, okAgain := p.Evaluate(c, stream.New(seed))
		if y != again || ok != okAgain || ok == math.IsInf(v, 1) || ok && (math.IsNaN(y) || math.IsInf(y, 0)) {
			t.Fatalf("Evaluate(%v) = %v, %v, then %v, %v; True %v", c, y, ok, again, okAgain, v)
		}
		if ok {
			worked++
			if v < p.Median() {
				below++
			}
		}
	}
	if !(p.Median() > p.Best()) || worked < n/10 {
		t.Errorf("median %v, best %v, %d of %d worked", p.Median(), p.Best(), worked, n)
	}
	// Five standard deviations of a fair coin; many equal values lie on the median.
	if spread := 2.5 * math.Sqrt(float64(worked)); float64(below) > float64(worked)/2+spread {
		t.Errorf("%d of %d are below the median", below, worked)
	}
}
