package doublyonline

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

// BenchmarkBlock measures the features of 4 rows after 1000 steps, with B = 16, d = 18
// and stored frequencies. "×-drawing-anew" compares with drawing the frequencies again.
func BenchmarkBlock(b *testing.B) {
	const rows, d, m = 4, 18, 16000
	rng := rand.New(rand.NewPCG(1, 1))
	x := kernel.NewPoints[float64](rows, d, nil)
	for i := range x.Data() {
		x.Data()[i] = rng.NormFloat64()
	}
	p := Params{Kernel: kerneltest.Gaussian(4)}
	buf := make([]float64, rows*m)
	apply := func(draw bool) time.Duration {
		phi := must(p.newFeatures(d, m, 1))
		start := time.Now()
		if draw {
			phi = must(p.newFeatures(d, m, 1))
		}
		if err := phi.Apply(buf, x); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	slow := min(apply(true), apply(true), apply(true))
	phi := must(p.newFeatures(d, m, 1))
	for b.Loop() {
		if err := phi.Apply(buf, x); err != nil {
			b.Fatal(err)
		}
	}
	fast := min(apply(false), apply(false), apply(false))
	b.ReportMetric(float64(slow)/float64(fast), "×-drawing-anew")
}
