package bo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/internal/problems"
)

// within fails unless got is within tol of want.
func within(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s: got %v, want %v ± %v", what, got, want, tol)
	}
}

// The optimum has its value and is within the bounds. No neighbour and none of many points
// is better.
func TestOptimaOfObjectives(t *testing.T) {
	for _, f := range []problems.Objective{hartmann3{}, levy{Dim: 4}, rastrigin{Dim: 3, Shift: 1.3}} {
		best, value, _ := f.Optimum()
		within(t, f.Name()+" at its optimum", f.Value(best), value, 1e-7*(1+math.Abs(value)))
		lo, hi := f.Bounds()
		x := make([]float64, len(best))
		for c, v := range best {
			if v < lo[c] || v > hi[c] {
				t.Errorf("%s: optimum outside", f.Name())
			}
			for _, step := range []float64{-1e-3, 1e-3} {
				copy(x, best)
				x[c] += step
				if f.Value(x) > value {
					t.Errorf("%s: better at %v", f.Name(), x)
				}
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			for c := range x {
				x[c] = lo[c] + (hi[c]-lo[c])*r.Float64()
			}
			if f.Value(x) > value+1e-9 {
				t.Errorf("%s: %v at %v is more than %v", f.Name(), f.Value(x), x, value)
			}
		}
	}
}

// These values are computed by hand. They are Levy's and Rastrigin's terms at whole
// numbers, and the literature's optimum of Hartmann's function.
func TestValuesByHand(t *testing.T) {
	// For w = (2, 0) the sum is sin²2π + 1·(1 + 10·sin²(2π + 1)) + 1·(1 + sin²0).
	within(t, "Levy", levy{Dim: 2}.Value([]float64{5, -3}), -(2 + 10*math.Pow(math.Sin(1), 2)), 1e-12)
	// The distances 3 and ½ from the optimum give 9 + 0, and ¼ + 20.
	within(t, "Rastrigin", rastrigin{Dim: 2, Shift: 1}.Value([]float64{4, 0.5}), -29.25, 1e-12)
	within(t, "Hartmann", hartmann3{}.Value([]float64{0.114614, 0.555649, 0.852547}), 3.86278, 1e-5)
}
