//go:build cuda && cgo && linux

package falkon_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/gpu/cudatest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
)

// BenchmarkDeviceFit fits FALKON on the device, to data of the size of MillionSongs and to 10⁷
// rows of 28 inputs, whose K is computed again in each product. Where compare is set, it fits on
// all cores of the CPU too, in the same precision, and reports the ratio of the times and how far
// the predictions are apart. The stand-in gets small sizes.
func BenchmarkDeviceFit(b *testing.B) {
	sizes := []struct {
		n, d, m   int
		precision kernel.Precision
		how       falkon.Factorization
		compare   bool
	}{
		{463_715, 90, 10_000, kernel.Float32, falkon.FactorPivoted, false},
		{463_715, 90, 10_000, kernel.Float32, falkon.FactorCholesky, false},
		{10_000_000, 28, 10_000, kernel.Float32, falkon.FactorPivoted, false},
		{463_715, 90, 10_000, kernel.Float64, falkon.FactorPivoted, false},
		{463_715, 90, 10_000, kernel.Float32, falkon.FactorPivoted, true},
	}
	if !cudatest.Real() {
		for i := range sizes {
			sizes[i].n, sizes[i].d, sizes[i].m = 400, 9, 60
		}
	}
	for _, size := range sizes {
		name := fmt.Sprintf("n=%d,d=%d,M=%d,float32=%t,%s,compare=%t", size.n, size.d, size.m, size.precision == kernel.Float32, cmp.Or(string(size.how), "pivoted"), size.compare)
		b.Run(name, func(b *testing.B) {
			k, err := kernel.NewGaussian(0.63 * math.Sqrt(float64(size.d)))
			if err != nil {
				b.Fatal(err)
			}
			x, y := linear(size.n, size.d)
			train, err := data.NewMemory(x, y, 1)
			if err != nil {
				b.Fatal(err)
			}
			few := kernel.FromRows(x.Slice(0, min(size.n, 10_000)))
			fit := func() (out []float64, took time.Duration) {
				p := falkon.Params{Kernel: k, Lambda: 1e-6, Centers: size.m, Iterations: 20, Tolerance: 1e-300, Precision: size.precision, Epsilon: 1e-6, Factorization: size.how}
				began := time.Now()
				model, err := p.Fit(b.Context(), train, learners.Options{Seed: 1})
				if err != nil {
					b.Fatal(err)
				}
				took = time.Since(began)
				out = make([]float64, few.Len())
				if err := model.Predict(b.Context(), out, few); err != nil {
					b.Fatal(err)
				}
				return out, took
			}
			var want []float64
			var cpu time.Duration
			if size.compare {
				want, cpu = fit()
				b.ReportMetric(cpu.Seconds(), "cpu-s")
			}
			cudatest.Use(b, "cuda:0")
			least := math.Inf(1)
			for range b.N {
				got, took := fit()
				least = min(least, took.Seconds())
				if size.compare {
					b.ReportMetric(cudatest.Distance(got, want), "distance")
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(least, "device-s")
			if size.compare {
				b.ReportMetric(cpu.Seconds()/least, "cpu/device")
			}
		})
	}
}

// linear are n rows of d normal numbers with a linear target and noise.
func linear(n, d int) (*kernel.Points[float32], []float64) {
	x, y := kernel.NewPoints[float32](n, d, nil), make([]float64, n)
	var group sync.WaitGroup
	const piece = 1 << 16
	for i0 := 0; i0 < n; i0 += piece {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i0)))
			for i := i0; i < min(i0+piece, n); i++ {
				for c := range d {
					x.Row(i)[c] = float32(rng.NormFloat64())
					y[i] += float64(x.Row(i)[c]) / 10
				}
				y[i] += 0.1 * rng.NormFloat64()
			}
		})
	}
	group.Wait()
	return x, y
}
