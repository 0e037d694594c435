package krr_test

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/krr"
)

// TestPath checks that the error on the training rows grows with λ while the norm of f
// falls. The objective at its own λ is the least. Rows may be repeated and targets
// constant.
func TestPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 25).Draw(t, "n")
		values := rapid.SliceOfN(rapid.Float64Range(-3, 3), 2*n, 2*n).Draw(t, "x")
		copies := rapid.SliceOfN(rapid.IntRange(0, n-1), n, n).Draw(t, "copies")
		y := rapid.SliceOfN(rapid.Float64Range(-10, 10), n, n).Draw(t, "y")
		x := kernel.NewPoints(n, 2, values).Select(copies)
		k, err := kernel.NewMatern32(rapid.Float64Range(0.2, 5).Draw(t, "length scale"))
		if err != nil {
			t.Fatal(err)
		}
		gram, err := kernel.Gramian(k, x)
		if err != nil {
			t.Fatal(err)
		}
		measure := func(c []float64) (fit, norm float64) {
			for i := range n {
				f := 0.0
				for j, v := range gram[i*n : (i+1)*n] {
					f += v * c[j]
				}
				fit += (f - y[i]) * (f - y[i]) / float64(n)
				norm += c[i] * f
			}
			return fit, norm
		}
		size := 1.0
		for _, v := range y {
			size += v * v
		}
		lastFit, lastNorm := -1.0, math.Inf(1)
		var before []float64
		for e := -6; e <= 2; e += 2 {
			lambda := math.Pow(10, float64(e))
			s, err := krr.Solve(context.Background(), k, x, y, nil, 1, lambda, 1)
			if err != nil {
				t.Fatal(err)
			}
			fit, norm := measure(s.Coefficients)
			const tol = 1e-8
			if fit < lastFit-tol*size || norm > lastNorm*(1+tol)+tol {
				t.Fatalf("λ = %g: error %v after %v, ‖f‖² %v after %v", lambda, fit, lastFit, norm, lastNorm)
			}
			if before != nil {
				if otherFit, otherNorm := measure(before); fit+lambda*norm > (otherFit+lambda*otherNorm)*(1+tol)+tol*size {
					t.Fatalf("λ = %g: objective %v, that of the λ before %v", lambda, fit+lambda*norm, otherFit+lambda*otherNorm)
				}
			}
			if math.Abs(s.Objective-fit-lambda*norm) > 1e-6*size {
				t.Fatalf("λ = %g: objective %v of Solve, %v by its definition", lambda, s.Objective, fit+lambda*norm)
			}
			lastFit, lastNorm, before = fit, norm, s.Coefficients
		}
	})
}
