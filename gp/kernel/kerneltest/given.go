package kerneltest

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Seeded returns a generator for a test, and prints its seed if the test fails.
func Seeded(tb testing.TB, seed uint64) *rand.Rand {
	tb.Helper()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// Gaussian is kernel.NewGaussian of valid length scales.
func Gaussian(lengthScales ...float64) kernel.Kernel {
	k, err := kernel.NewGaussian(lengthScales...)
	if err != nil {
		panic(err)
	}
	return k
}

// Normals returns n independent normal numbers.
func Normals(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// Points returns n points of d normal coordinates.
func Points(rng *rand.Rand, n, d int) *kernel.Points[float64] {
	return kernel.NewPoints(n, d, Normals(rng, n*d))
}

// Gram is K(X, Y), n×m, by one evaluation for each element. It is the oracle for blocks.
func Gram(k kernel.Kernel, x, y kernel.Rows) *mat.Dense {
	g := mat.NewDense(x.Len(), y.Len(), nil)
	for i := range x.Len() {
		for j := range y.Len() {
			g.Set(i, j, k.Eval(x, i, y, j))
		}
	}
	return g
}

// Claim marks a test of a paper's claim, with a size or number of draws at which the
// claim is visible. -short, and with it the race detector, skips them, because they
// repeat the computations of smaller tests in the same package.
func Claim(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("a claim of a paper in full size; -short skips it because smaller tests compute the same")
	}
}
