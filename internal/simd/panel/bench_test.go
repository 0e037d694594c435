package panel

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/simd"
)

// BenchmarkGram reports Kᵀ(Kv) as a share of the peak of multiply-adds, measured
// in the same run; functions count for nothing.
func BenchmarkGram(b *testing.B) {
	benchmarkGram[float32](b)
	benchmarkGram[float64](b)
}

func benchmarkGram[T Float](b *testing.B) {
	const n, m = 5000, 2000
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range []int{18, 90} {
		x, y := dense[T](rng, n, d), dense[T](rng, m, d)
		v, w := normals[float64](rng, m), make([]float64, m)
		for name, f := range map[string]Function{
			"gaussian":          {Statistic: simd.Squared, Func: simd.ExpScaled, P0: -1 / (2 * float64(d))},
			"gaussian expanded": {Statistic: simd.Squared, Func: simd.ExpScaled, P0: -1 / (2 * float64(d)), Expand: true},
			"matern52":          {Statistic: simd.Squared, Func: simd.Matern52, P0: 5 / float64(d)},
		} {
			p := NewProduct(Pack[T](f, y), 1)
			b.Run(fmt.Sprintf("%s/float%d/d=%d", name, 8*simd.Size[T](), d), func(b *testing.B) {
				const rounds = 100000
				peak, best := time.Hour, time.Hour
				for b.Loop() {
					start := time.Now()
					simd.Peak[T](rounds)
					middle := time.Now()
					Gram(p, w, x, v, 1, nil)
					peak, best = min(peak, middle.Sub(start)), min(best, time.Since(middle))
				}
				flops := float64(n) * float64(m) * float64(2*d+4)
				most := rounds * 24 * 32 / float64(simd.Size[T]())
				b.ReportMetric(100*flops/best.Seconds()/(most/peak.Seconds()), "%peak")
			})
		}
	}
}
