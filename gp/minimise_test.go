package gp

import (
	"context"
	"math"
	"testing"
)

// A quadratic whose minimum is outside the box has a closed form. With x_0 held at its
// limit, the other coordinates solve the remaining system.
func TestMinimiseOnABox(t *testing.T) {
	f := func(x, g []float64) float64 {
		a, b, c := x[0]-3, x[1]+1, x[2]
		g[0], g[1], g[2] = 2*a+b, a+20*b, 2e3*c
		return a*a + a*b + 10*b*b + 1e3*c*c
	}
	lo, hi := []float64{-1, -5, -5}, []float64{1, 5, 5}
	for _, x0 := range [][]float64{{0, 0, 1}, {1, 5, 5}, {-1, -5, -5}, {9, 9, 9}} {
		r := minimise(context.Background(), f, x0, lo, hi, 100, 0)
		want := []float64{1, -0.9, 0}
		for i, w := range want {
			if math.Abs(r.End[i]-w) > 1e-4 {
				t.Errorf("from %v: %v, want %v", x0, r.End, want)
				break
			}
		}
		if !r.Converged || r.Evaluations > 60 {
			t.Errorf("from %v: %+v", x0, r)
		}
	}
}

// Where the function is not finite the step was too long. A start there is reported by
// an infinite value.
func TestMinimiseAvoidsWhatIsNotFinite(t *testing.T) {
	f := func(x, g []float64) float64 {
		g[0] = 1 - 1/x[0]
		return x[0] - math.Log(x[0])
	}
	lo, hi := []float64{-10}, []float64{10}
	r := minimise(context.Background(), f, []float64{9}, lo, hi, 100, 0)
	if math.Abs(r.End[0]-1) > 1e-3 || !r.Converged {
		t.Errorf("%+v", r)
	}
	if r := minimise(context.Background(), f, []float64{-1}, lo, hi, 100, 0); !math.IsInf(r.Value, 1) {
		t.Errorf("%+v", r)
	}
	nan := func(x, g []float64) float64 { g[0] = math.NaN(); return 0 }
	if r := minimise(context.Background(), nan, []float64{0}, lo, hi, 100, 0); !math.IsInf(r.Value, 1) {
		t.Errorf("%+v", r)
	}
}
