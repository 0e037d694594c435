//go:build cuda && cgo && linux

package falkon_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/gpu/cudatest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
)

// BenchmarkDeviceFit fits FALKON to data of the size of MillionSongs on the device, and once on
// the CPU in float64. It reports both times, and how far the predictions are apart. The
// stand-in gets a small size.
func BenchmarkDeviceFit(b *testing.B) {
	n, d, m := 463_715, 90, 10_000
	if !cudatest.Real() {
		n, d, m = 400, 9, 60
	}
	rng := rand.New(rand.NewPCG(1, 0))
	x, y := kernel.NewPoints[float32](n, d, nil), make([]float64, n)
	for i := range n {
		for c := range d {
			x.Row(i)[c] = float32(rng.NormFloat64())
			y[i] += float64(x.Row(i)[c]) / 10
		}
		y[i] += 0.1 * rng.NormFloat64()
	}
	train, err := data.NewMemory(x, y, 1)
	if err != nil {
		b.Fatal(err)
	}
	k, err := kernel.NewGaussian(6)
	if err != nil {
		b.Fatal(err)
	}
	few := kernel.FromRows(x.Slice(0, min(n, 10_000)))
	fit := func(precision kernel.Precision, how falkon.Factorization) (out []float64, took time.Duration) {
		p := falkon.Params{Kernel: k, Lambda: 1e-6, Centers: m, Iterations: 20, Precision: precision, Epsilon: 1e-6, Factorization: how}
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
	want, cpu := fit(kernel.Float64, falkon.FactorPivoted)
	for _, c := range []struct {
		name      string
		precision kernel.Precision
		how       falkon.Factorization
	}{{"float32", kernel.Float32, falkon.FactorPivoted}, {"float32/cholesky", kernel.Float32, falkon.FactorCholesky}, {"float64", kernel.Float64, falkon.FactorPivoted}} {
		b.Run(c.name, func(b *testing.B) {
			cudatest.Use(b, "cuda:0")
			for range b.N {
				got, took := fit(c.precision, c.how)
				b.ReportMetric(took.Seconds(), "device-s")
				b.ReportMetric(cpu.Seconds()/took.Seconds(), "cpu/device")
				b.ReportMetric(cudatest.Distance(got, want), "distance")
			}
		})
	}
}
