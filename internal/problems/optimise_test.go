package problems

import (
	"math"
	"math/rand/v2"
	"testing"
)

// within fails unless got is within tol of want.
func within(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s: got %v, want %v ± %v", what, got, want, tol)
	}
}

var objectives = []Objective{Branin{}, Hartmann6{}, Ackley{Dim: 5, Shift: 1.3}, Forrester{}, NewDraw(2, 0.2, 1)}

// The known optimum has its value and is within the bounds. No neighbour and none of many
// points is better.
func TestOptima(t *testing.T) {
	for _, f := range objectives {
		best, value, known := f.Optimum()
		if !known {
			continue
		}
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

// These are Branin's other maximisers, from the literature.
func TestBraninHasThree(t *testing.T) {
	_, value, _ := Branin{}.Optimum()
	within(t, "value", value, -0.397887, 1e-6)
	within(t, "second", Branin{}.Value([]float64{-math.Pi, 12.275}), value, 1e-9)
	within(t, "third", Branin{}.Value([]float64{3 * math.Pi, 2.475}), value, 1e-9)
}

func TestEnvironment(t *testing.T) {
	for _, f := range objectives {
		e := NewEnvironment(f, 512, 0.1, 3)
		sum, square := 0.0, 0.0
		for _, v := range e.Values {
			sum, square = sum+v, square+v*v
		}
		within(t, f.Name()+" mean", sum/512, 0, 1e-12)
		within(t, f.Name()+" variance", square/512, 1, 1e-12)
		if e.Of(e.Best) != 0 || e.Reward(3, 7) != e.Reward(3, 7) || e.Reward(3, 7)-e.Values[3] == e.Reward(3, 8)-e.Values[3] {
			t.Errorf("%s: regret of the best arm %v, or noise not by step", f.Name(), e.Of(e.Best))
		}
		r := e.Account()
		for a := range 512 {
			r.Pull(a)
		}
		within(t, f.Name()+" relative regret of all arms", r.Relative(), 1, 1e-9)
		if r.Simple != 0 || r.Pulls != 512 {
			t.Errorf("%s: %+v", f.Name(), r)
		}
	}
}

// A draw has about the variance of its process.
func TestDraw(t *testing.T) {
	square := 0.0
	for seed := range uint64(40) {
		v := NewDraw(3, 0.2, seed).Value([]float64{0.3, 0.6, 0.9})
		square += v * v / 40
	}
	within(t, "variance", square, 1, 0.9)
}
