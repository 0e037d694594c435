package nystrom

import (
	"context"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

// BenchmarkDirect reports how many times as long gonum takes to form and factor
// K_nMᵀK_nM + λnK_MM, kernel matrices included. It also compares an iteration of CG
// with a tenth of the direct solution.
func BenchmarkDirect(b *testing.B) {
	const n, m, lambda = 8000, 500, 1e-6
	ctx := context.Background()
	data := learnerstest.Data(b, n, 1, 1, false)
	k := kerneltest.Gaussian(1.5)
	p := Params{Kernel: k, Lambda: lambda, Centers: m}
	var ours, theirs, iteration time.Duration
	for b.Loop() {
		start := time.Now()
		model, err := p.Fit(ctx, data, learners.Options{})
		if err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)

		centers := model.(*learners.Expansion).Centers()
		start = time.Now()
		knm, err := kernel.Matrix(k, data.Rows(), centers)
		if err != nil {
			b.Fatal(err)
		}
		kmm, err := kernel.Gramian(k, centers)
		if err != nil {
			b.Fatal(err)
		}
		r := centers.Len()
		a := mat.NewDense(n, r, knm)
		h := mat.NewSymDense(r, kmm)
		h.ScaleSym(lambda*n, h)
		h.SymRankK(h, 1, a.T())
		var chol mat.Cholesky
		_ = chol.Factorize(h) // which may well fail, so H is never factored
		theirs += time.Since(start)

		start = time.Now()
		cg := p
		cg.Solver, cg.Iterations = CG, 10
		if _, err := cg.Fit(ctx, data, learners.Options{}); err != nil {
			b.Fatal(err)
		}
		iteration += time.Since(start) / 10
	}
	b.ReportMetric(float64(theirs)/float64(ours), "gonum/ours")
	b.ReportMetric(float64(iteration)/float64(ours), "iteration/direct")
}
