package bo

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/bkbtuner/bkb/bench/bbob"
	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/space"
)

// dataFolder returns the data directory. It is BKB_DATA, or shared/data beside the module,
// or "" if there is none.
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

// open opens a problem. It skips the test if data are missing.
func open(t testing.TB, l Listed) Problem {
	t.Helper()
	p, err := l.Open(dataFolder())
	var missing *experiment.DataError
	if errors.As(err, &missing) {
		t.Skipf("no real data: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// random returns a configuration that is uniform in the unit cube.
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

// Every problem keeps the contract. This covers names, valid spaces, no value below the
// best, half of all configurations below the median, noise by rng alone, and equal failures
// in Evaluate and True. The full tier is included if BKB_SUITES is set.
func TestProblemsKeepTheContract(t *testing.T) {
	racetest.Alone(t)
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
	least := n / 10
	if _, ok := p.(Limited); ok {
		n, least = 3000, 3
	}
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
	if !(p.Median() > p.Best()) || worked < least {
		t.Errorf("median %v, best %v, %d of %d worked", p.Median(), p.Best(), worked, n)
	}
	// five standard deviations of a fair coin, where many equal values lie on the median
	if spread := 2.5 * math.Sqrt(float64(worked)); float64(below) > float64(worked)/2+spread {
		t.Errorf("%d of %d are below the median", below, worked)
	}
}

// The suite's inputs are the function's, in order.
func TestBBOBIsBBOB(t *testing.T) {
	racetest.Alone(t)
	rng := stream.New(2)
	for name, function := range map[string]int{"bbob/f10-d05-i1": 10, "bbob/f21-d05-i1": 21} {
		p := problem(t, name)
		f, err := bbob.New(function, 5, 1)
		if err != nil {
			t.Fatal(err)
		}
		x, text := make([]float64, 5), make([]string, 5)
		for i := range x {
			x[i] = 10*rng.Float64() - 5
			text[i] = strconv.FormatFloat(x[i], 'g', -1, 64)
		}
		if got, want := p.True(configOf(t, p.Space(), text)), f.Value(x); got != want || p.Best() != f.Minimum() {
			t.Errorf("%s: %v at %v, want %v", name, got, x, want)
		}
	}
}

// A space that is no box has its least value where the formula says, and its neighbours do
// not have less.
func TestOptimaOfMixedProblems(t *testing.T) {
	racetest.Alone(t)
	for name, best := range map[string]string{
		"classic/mixed": `{"lr": 0.001, "layers": 3, "opt": "adam", "beta": 0.93, "width": 128, "drop": 0.3}`,
		// This is just inside both constraints.
		"classic/pressure-vessel": `{"shell": 0.8125, "head": 0.4375, "radius": 42.0984455, "length": 176.6366}`,
	} {
		p := problem(t, name)
		c, err := p.Space().ParseConfig([]byte(best))
		if err != nil {
			t.Fatal(err)
		}
		if v := p.True(c); v < p.Best()*(1-1e-12) || v > p.Best()*(1+1e-6) {
			t.Errorf("%s: %v at the optimum, want %v", name, v, p.Best())
		}
		u := make([]float64, p.Space().Dim())
		if err := p.Space().Encode(c, u); err != nil {
			t.Fatal(err)
		}
		rng, near := stream.New(4), make([]float64, len(u))
		for range 3000 {
			size := math.Pow(10, -4*rng.Float64())
			for i, v := range u {
				near[i] = v + size*(2*rng.Float64()-1)
			}
			at, err := p.Space().Decode(near)
			if err != nil {
				t.Fatal(err)
			}
			if v := p.True(at); v < p.Best()*(1-1e-9) {
				t.Fatalf("%s: %v at %v, best %v", name, v, at, p.Best())
			}
		}
	}
	if p := problem(t, "classic/pressure-vessel"); math.Abs(p.Best()-6059.714335) > 1e-6 {
		t.Errorf("the vessel costs %v", p.Best())
	}
}

// Noise is around the noiseless value. Where it multiplies, as many measurements are above
// as below. Where it is added, the mean is the value. The spread is that of the suite.
func TestNoiseOfBBOB(t *testing.T) {
	racetest.Alone(t)
	for _, name := range []string{"f08-d05-i1", "f21-d02-i1"} {
		quiet := problem(t, "bbob/"+name)
		gauss, add := problem(t, "bbob-noisy/"+name+"-gauss"), problem(t, "bbob-noisy/"+name+"-add")
		rng, n := stream.New(9), 4000
		c := random(t, quiet.Space(), rng.Float64)
		v, f0 := quiet.True(c), quiet.Best()
		if gauss.True(c) != v || add.True(c) != v || gauss.Best() != f0 || add.Best() != f0 {
			t.Fatalf("%s: noise changes the truth", name)
		}
		above, logs, sum, square := 0.0, 0.0, 0.0, 0.0
		for range n {
			y, _ := gauss.Evaluate(c, rng)
			if y > v {
				above++
			}
			l := math.Log((y - f0) / (v - f0))
			logs += l * l / float64(n)
			z, _ := add.Evaluate(c, rng)
			e := (z - v) / (0.05 * (add.Median() - add.Best()))
			sum, square = sum+e/float64(n), square+e*e/float64(n)
		}
		// Five standard deviations each.
		spread := 5 / math.Sqrt(float64(n))
		if math.Abs(above/float64(n)-0.5) > spread/2 || math.Abs(logs-1) > spread*math.Sqrt2 {
			t.Errorf("%s: %v of measurements are above, mean squared logarithm %v", name, above/float64(n), logs)
		}
		if math.Abs(sum) > spread || math.Abs(square-1) > spread*math.Sqrt2 {
			t.Errorf("%s: added noise has mean %v and mean square %v", name, sum, square)
		}
	}
}
