package krr_test

import (
	"context"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

// BenchmarkSolve compares with gonum on the same system, kernel matrix included. It
// reports how many times as long gonum takes.
func BenchmarkSolve(b *testing.B) {
	for _, n := range []int{500, 2000} {
		b.Run(map[int]string{500: "n=500", 2000: "n=2000"}[n], func(b *testing.B) {
			ctx := context.Background()
			data := learnerstest.Data(b, n, 1, 1, false)
			k := kerneltest.Gaussian(1.5)
			var ours, theirs time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := krr.Solve(ctx, k, data.Rows(), data.Targets(), nil, 1, 1e-6, 0); err != nil {
					b.Fatal(err)
				}
				ours += time.Since(start)

				start = time.Now()
				gram, err := kernel.Gramian(k, data.Rows())
				if err != nil {
					b.Fatal(err)
				}
				for i := range n {
					gram[i*n+i] += 1e-6 * float64(n)
				}
				var chol mat.Cholesky
				var c mat.VecDense
				if !chol.Factorize(mat.NewSymDense(n, gram)) {
					b.Fatal("not positive definite")
				}
				if err := chol.SolveVecTo(&c, mat.NewVecDense(n, data.Targets())); err != nil {
					b.Fatal(err)
				}
				theirs += time.Since(start)
			}
			b.ReportMetric(float64(theirs)/float64(ours), "gonum/ours")
		})
	}
}
