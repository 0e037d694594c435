package kernel_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// circle is n equally spaced points on [0, 1).
func circle(n int) *kernel.Points[float64] {
	x := kernel.NewPoints[float64](n, 1, nil)
	for i := range n {
		x.Row(i)[0] = float64(i) / float64(n)
	}
	return x
}

// The Bernoulli polynomial is the series, summed here term by term.
func TestSplineClosedFormAgainstSeries(t *testing.T) {
	racetest.Alone(t)
	x := circle(37)
	zero := kernel.NewPoints[float64](1, 1, nil)
	const terms = 20_000
	for _, q := range []float64{2, 4, 6, 8, 10} {
		k := must(kernel.NewSpline(q, 0))
		for i := range x.Len() {
			// The terms left out are at most 2K^{1−q}/(q−1) in sum, and by
			// Abel summation at most 2K^{−q}/sin(πt).
			tol := 1e-12 + 2*math.Pow(terms, 1-q)/(q-1)
			if sin := math.Sin(math.Pi * x.Row(i)[0]); i > 0 {
				tol = 1e-12 + 2*math.Pow(terms, -q)/sin
			}
			want := 0.0
			for n := terms; n >= 1; n-- {
				want += 2 * math.Cos(2*math.Pi*math.Mod(float64(n)*x.Row(i)[0], 1)) * math.Pow(float64(n), -q)
			}
			if got := k.Eval(x, i, zero, 0); math.Abs(got-want) > tol {
				t.Errorf("Λ_%v(%v, 0) = %v, the series is %v", q, x.Row(i)[0], got, want)
			}
		}
	}
	for q, zeta := range map[float64]float64{ // R² = κ² = 2ζ(q)
		2: math.Pi * math.Pi / 6, 4: math.Pow(math.Pi, 4) / 90, 6: math.Pow(math.Pi, 6) / 945,
	} {
		if got := must(kernel.NewSpline(q, 0)).Bound(); math.Abs(got-2*zeta) > 1e-13 {
			t.Errorf("κ² of Λ_%v is %v, want 2ζ(%v) = %v", q, got, q, 2*zeta)
		}
	}
}

// ⟨Λ_q(x, ·), Λ_q'(z, ·)⟩ = Λ_{q+q'}(x, z) in L²[0, 1]. Pillaud-Vivien, Rudi and Bach
// (2018) chose this kernel for that identity. Between x, z, 0 and 1 the closed forms
// are polynomials of degree q + q' ≤ 10, on which Gauss–Legendre with 8 nodes is exact.
// The truncated series are trigonometric polynomials of degree 500, on which a sum over
// 2048 equal steps is exact.
func TestSplineInnerProducts(t *testing.T) {
	racetest.Alone(t)
	at := kernel.NewPoints(3, 1, []float64{0, 0.3, 0.85})
	for _, c := range []struct {
		q, p  float64
		terms int
	}{
		{2, 2, 0}, {4, 2, 0}, {4, 4, 0}, {4, 6, 0}, {1.5, 2.5, 500}, {2.5, 3.5, 500}, {2, 3, 500},
	} {
		a, b := must(kernel.NewSpline(c.q, c.terms)), must(kernel.NewSpline(c.p, c.terms))
		both := must(kernel.NewSpline(c.q+c.p, c.terms))
		for i := range at.Len() {
			for j := range at.Len() {
				product := func(x float64) float64 {
					p := kernel.NewPoints(1, 1, []float64{x})
					return a.Eval(at, i, p, 0) * b.Eval(at, j, p, 0)
				}
				got := 0.0
				if c.terms == 0 {
					for _, piece := range [][2]float64{{0, 0.3}, {0.3, 0.85}, {0.85, 1}} {
						got += quad.Fixed(product, piece[0], piece[1], 8, quad.Legendre{}, 0)
					}
				} else {
					for g := range 2048 {
						got += product(float64(g)/2048) / 2048
					}
				}
				if want := both.Eval(at, i, at, j); math.Abs(got-want) > 1e-11 {
					t.Errorf("⟨Λ_%v, Λ_%v⟩ at (%d, %d) = %v, Λ_%v = %v", c.q, c.p, i, j, got, c.q+c.p, want)
				}
			}
		}
	}
}

// Without k = 0 the kernel integrates to 0, and it has period 1.
func TestSplineMeanAndPeriod(t *testing.T) {
	grid := circle(1024)
	at := kernel.NewPoints(2, 1, []float64{0.3, -5.7})
	for _, q := range []float64{2, 3, 4, 5.5} {
		k := must(kernel.NewSpline(q, 0))
		sum := 0.0
		for g := range grid.Len() {
			v := k.Eval(at, 0, grid, g)
			if w := k.Eval(at, 1, grid, g); math.Abs(v-w) > 1e-12 {
				t.Fatalf("Λ_%v has no period 1: %v, %v", q, v, w)
			}
			sum += v
		}
		if mean := sum / 1024; math.Abs(mean) > 1e-5 {
			t.Errorf("mean of Λ_%v is %v", q, mean)
		}
	}
}
