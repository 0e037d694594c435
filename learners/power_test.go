package learners_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/learners"
)

// TestLargestEigenvalue compares with all eigenvalues of random matrices BBᵀ, and of
// the zero matrix.
func TestLargestEigenvalue(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	for seed := range uint64(20) {
		n := 1 + rng.IntN(40)
		b := mat.NewDense(n, n+3, normals(n*(n+3), rng))
		var a mat.Dense
		a.Mul(b, b.T())
		var eig mat.EigenSym
		if !eig.Factorize(mat.NewSymDense(n, a.RawMatrix().Data), false) {
			t.Fatal("no eigenvalues")
		}
		want := eig.Values(nil)[n-1]
		got, err := learners.LargestEigenvalue(context.Background(), n, 20, seed, func(_ context.Context, dst, v []float64) error {
			mat.NewVecDense(n, dst).MulVec(&a, mat.NewVecDense(n, v))
			return nil
		})
		if err != nil || got > want*(1+1e-12) || got < 0.8*want {
			t.Errorf("seed %d, n = %d: %v, %v, want %v", seed, n, got, err, want)
		}
	}
	zero, err := learners.LargestEigenvalue(context.Background(), 5, 20, 1, func(_ context.Context, dst, _ []float64) error {
		clear(dst)
		return nil
	})
	if zero != 0 || err != nil {
		t.Errorf("A = 0: %v, %v", zero, err)
	}
	boom := errors.New("boom")
	if v, err := learners.LargestEigenvalue(context.Background(), 5, 20, 1, func(context.Context, []float64, []float64) error { return boom }); !errors.Is(err, boom) || math.IsNaN(v) {
		t.Errorf("an apply that fails: %v, %v", v, err)
	}
}
