package kernel_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// expandable returns the kernels that can expand distances, of one length scale or
// several, with φ(r²).
func expandable(scales ...float64) map[string]struct {
	k   kernel.Kernel
	phi func(s float64) float64
} {
	return map[string]struct {
		k   kernel.Kernel
		phi func(s float64) float64
	}{
		"gaussian": {must(kernel.NewGaussian(scales...)), func(s float64) float64 { return math.Exp(-s / 2) }},
		"matern32": {must(kernel.NewMatern32(scales...)), func(s float64) float64 {
			a := math.Sqrt(3 * s)
			return (1 + a) * math.Exp(-a)
		}},
		"matern52": {must(kernel.NewMatern52(scales...)), func(s float64) float64 {
			a := math.Sqrt(5 * s)
			return (1 + a + a*a/3) * math.Exp(-a)
		}},
		"rational quadratic": {must(kernel.NewRationalQuadratic(1.5, scales...)), func(s float64) float64 {
			return math.Pow(1+s/3, -1.5)
		}},
	}
}

// elements returns K(X, C), column by column of the identity.
func elements(t *testing.T, k kernel.Kernel, x, c kernel.Rows, opts kernel.Options) []float64 {
	t.Helper()
	op, err := kernel.NewOperator(k, kernel.FromRows(x), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	n, m := x.Len(), c.Len()
	v, out := make([]float64, m*m), make([]float64, n*m)
	for j := range m {
		v[j*m+j] = 1
	}
	if err := op.Apply(background, out, v); err != nil {
		t.Fatal(err)
	}
	return out
}

// exactDistance is Σ (x − y)²/ℓ², rounded only at the end.
func exactDistance(x, y []float64, scale float64) float64 {
	const digits = 300
	sum, l := new(big.Float).SetPrec(digits), new(big.Float).SetPrec(digits).SetFloat64(scale)
	for c, v := range x {
		d := new(big.Float).SetPrec(digits).SetFloat64(v)
		d.Sub(d, new(big.Float).SetFloat64(y[c]))
		d.Quo(d, l)
		sum.Add(sum, d.Mul(d, d))
	}
	s, _ := sum.Float64()
	return s
}

// pushOut moves every other of some points from inBall to its surface.
func pushOut(x *kernel.Points[float64]) *kernel.Points[float64] {
	for i := 0; i < x.Len(); i += 2 {
		row, square := x.Row(i), 0.0
		for _, v := range row {
			square += (v - 1000) * (v - 1000)
		}
		for c, v := range row {
			row[c] = 1000 + (v-1000)/math.Sqrt(square)
		}
	}
	return x
}

// TestExpandedError checks the error of expanded distances that the documentation of
// Distances states. It takes inputs far from the origin and equal to centres, and
// compares with distances in exact arithmetic. It also checks that k(x, x) never
// exceeds κ².
func TestExpandedError(t *testing.T) {
	racetest.Alone(t)
	const n, m = 24, 16
	for _, d := range []int{1, 6, 90, 300} {
		for _, radius := range []float64{1, 5} {
			rng := rand.New(rand.NewPCG(7, uint64(d)))
			x, c := pushOut(inBall(rng, n, d)), pushOut(inBall(rng, m, d))
			for j := range m / 2 {
				copy(c.Row(j), x.Row(j))
			}
			distance := make([]float64, n*m)
			for i := range distance {
				distance[i] = exactDistance(x.Row(i/m), c.Row(i%m), 1/radius)
			}
			for name, e := range expandable(1 / radius) {
				got := elements(t, e.k, x, c, kernel.Options{Distances: kernel.ExpandedDistances})
				worst := 0.0
				for i := range n {
					for j := range m {
						worst = max(worst, math.Abs(got[i*m+j]-e.phi(distance[i*m+j])))
						if i == j && got[i*m+j] > 1 {
							t.Errorf("%s: k(x, x) = %v", name, got[i*m+j])
						}
					}
				}
				limit := 3e-15 * (1 + radius*radius)
				t.Logf("%s, d = %d, R = %g: error %.2g, allowed %.2g", name, d, radius, worst, limit)
				if !(worst <= limit) {
					t.Errorf("%s, d = %d, R = %g: error %g, want at most %g", name, d, radius, worst, limit)
				}
			}
		}
	}
}

// TestAutoDistances checks where AutoDistances is expanded and where direct, for each
// row by itself, to the bit, and for centres.
func TestAutoDistances(t *testing.T) {
	racetest.Alone(t)
	const n, m, d = 100, 70, 5
	for _, p := range []kernel.Precision{kernel.Float64, kernel.Float32} {
		reach := map[kernel.Precision]float64{kernel.Float64: 5, kernel.Float32: 3}[p]
		for _, scales := range [][]float64{{2}, {2, 3, 2, 1, 1}} {
			for name, e := range expandable(scales...) {
				t.Run(fmt.Sprintf("%s/%v/%d scales", name, p, len(scales)), func(t *testing.T) {
					rng := kerneltest.Seeded(t, 12)
					c := kerneltest.Points(rng, m, d)
					x := kerneltest.Points(rng, n, d)
					out := make([]bool, n)
					for i := range n {
						for q := range d { // exactly in reach, up to the mean, which is small
							l := scales[q%len(scales)]
							c.Row(i % m)[q] *= l / 2
							x.Row(i)[q] *= l / 2
						}
						if i%7 == 3 || i >= 60 && i < 72 {
							x.Row(i)[1] = 2 * reach * scales[1%len(scales)]
							out[i] = true
						}
					}
					clear(c.Row(0))
					with := func(w kernel.Distances, x, c kernel.Rows) []float64 {
						return elements(t, e.k, x, c, kernel.Options{Precision: p, Distances: w})
					}
					auto, near, far := with(kernel.AutoDistances, x, c), with(kernel.ExpandedDistances, x, c), with(kernel.DirectDistances, x, c)
					if slices.Equal(near, far) {
						t.Fatal("expanded and direct distances do not differ")
					}
					for i := range n {
						want := near
						if out[i] {
							want = far
						}
						if !slices.Equal(auto[i*m:(i+1)*m], want[i*m:(i+1)*m]) {
							t.Fatalf("row %d, out of reach: %v", i, out[i])
						}
						if one := with(kernel.AutoDistances, x.Slice(i, i+1), c); !slices.Equal(one, auto[i*m:(i+1)*m]) {
							t.Fatalf("row %d depends on other rows", i)
						}
					}
					lone := c.Select(indices(m)).(*kernel.Points[float64])
					lone.Row(5)[0] = 2 * reach * scales[0]
					if got, far := with(kernel.AutoDistances, x, lone), with(kernel.DirectDistances, x, lone); got[5] != far[5] || slices.Equal(got, far) {
						t.Error("a centre out of reach is not direct, or all are")
					}
					for j := 0; j < m; j += 4 {
						lone.Row(j)[0] = 4 * reach * scales[0] * float64(1-j%8/2)
					}
					if !slices.Equal(with(kernel.AutoDistances, x, lone), with(kernel.DirectDistances, x, lone)) {
						t.Error("with many centres out of reach not all is direct")
					}
				})
			}
		}
	}
}

// TestDistancesThatStayDirect checks which kernels cannot expand, because their k(x, x)
// is exact.
func TestDistancesThatStayDirect(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 13), 30, 7)
	for name, k := range map[string]kernel.Kernel{
		"matern12": must(kernel.NewMatern12(1)), "laplace": must(kernel.NewLaplace(1)), "hamming": must(kernel.NewHamming(1)),
	} {
		got := elements(t, k, x, x, kernel.Options{Distances: kernel.ExpandedDistances})
		for i := range x.Len() {
			if v := got[i*x.Len()+i]; v != 1 {
				t.Errorf("%s: k(x, x) = %v", name, v)
			}
		}
	}
}

// TestExpandedIsSymmetric checks that K(X, X) is symmetric to the bit.
func TestExpandedIsSymmetric(t *testing.T) {
	const n = 61
	x := kerneltest.Points(kerneltest.Seeded(t, 14), n, 11)
	for name, e := range expandable(3) {
		k := elements(t, e.k, x, x, kernel.Options{Distances: kernel.ExpandedDistances})
		for i := range n {
			for j := range i {
				if k[i*n+j] != k[j*n+i] {
					t.Fatalf("%s: elements (%d, %d) are %v and %v", name, i, j, k[i*n+j], k[j*n+i])
				}
			}
		}
	}
}

// TestFarInputs checks that inputs whose squares overflow are out of reach.
func TestFarInputs(t *testing.T) {
	x := kernel.NewPoints(3, 2, []float64{1e200, 1e200, 1e200, 0, -1e308, 1})
	for name, e := range expandable(1) {
		for _, p := range []kernel.Precision{kernel.Float64, kernel.Float32} {
			got := elements(t, e.k, x, kernel.NewPoints(2, 2, []float64{0, 0, 1, 1}), kernel.Options{Precision: p})
			if want := make([]float64, 6); !slices.Equal(got, want) {
				t.Errorf("%s, %v: %v", name, p, got)
			}
		}
	}
}

func TestDistancesThatDoNotExist(t *testing.T) {
	x := kernel.NewPoints(1, 1, []float64{1})
	_, err := kernel.NewOperator(must(kernel.NewGaussian(1)), kernel.FromRows(x), x, kernel.Options{Distances: 3})
	var bad *kernel.ParameterError
	if !errors.As(err, &bad) || bad.Parameter != "Distances" || bad.Value != 3 {
		t.Errorf("error %v", err)
	}
}
