//go:build cuda && cgo && linux

package falkon_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/gpu/cudatest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
)

// BenchmarkDeviceFit fits FALKON to data of the size of MillionSongs on the device. A smaller
// fit also runs on two cores of the CPU, with the same precision and factorisation, and the
// benchmark reports the ratio of the times and how far the predictions are apart. The stand-in
// gets small sizes.
func BenchmarkDeviceFit(b *testing.B) {
	sizes := []struct {
		n, d, m int
		compare bool
	}{{50_000, 90, 5_000, true}, {463_715, 90, 10_000, false}}
	if !cudatest.Real() {
		sizes[0].n, sizes[0].d, sizes[0].m = 400, 9, 60
		sizes = sizes[:1]
	}
	k, err := kernel.NewGaussian(6)
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range sizes {
		rng := rand.New(rand.NewPCG(1, 0))
		x, y := kernel.NewPoints[float32](size.n, size.d, nil), make([]float64, size.n)
		for i := range size.n {
			for c := range size.d {
				x.Row(i)[c] = float32(rng.NormFloat64())
				y[i] += float64(x.Row(i)[c]) / 10
			}
			y[i] += 0.1 * rng.NormFloat64()
		}
		train, err := data.NewMemory(x, y, 1)
		if err != nil {
			b.Fatal(err)
		}
		few := kernel.FromRows(x.Slice(0, min(size.n, 10_000)))
		for _, c := range []struct {
			name      string
			precision kernel.Precision
			how       falkon.Factorization
		}{{"float32", kernel.Float32, falkon.FactorPivoted}, {"float32/cholesky", kernel.Float32, falkon.FactorCholesky}, {"float64", kernel.Float64, falkon.FactorPivoted}} {
			fit := func(b *testing.B) (out []float64, took time.Duration) {
				p := falkon.Params{Kernel: k, Lambda: 1e-6, Centers: size.m, Iterations: 20, Precision: c.precision, Epsilon: 1e-6, Factorization: c.how}
				began := time.Now()
				model, err := p.Fit(b.Context(), train, learners.Options{Seed: 1, Workers: 2})
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
			b.Run(fmt.Sprintf("n=%d/M=%d/%s", size.n, size.m, c.name), func(b *testing.B) {
				var want []float64
				var cpu time.Duration
				if size.compare {
					want, cpu = fit(b)
				}
				cudatest.Use(b, "cuda:0")
				for range b.N {
					got, took := fit(b)
					b.ReportMetric(took.Seconds(), "device-s")
					if size.compare {
						b.ReportMetric(cpu.Seconds()/took.Seconds(), "cpu/device")
						b.ReportMetric(cudatest.Distance(got, want), "distance")
					}
				}
			})
		}
	}
}
