package gp_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

func fixed() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// timed returns the time of f in seconds, the least of a few runs.
func timed(runs int, f func()) float64 {
	best := time.Duration(1 << 62)
	for range runs {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best.Seconds()
}

// BenchmarkArmsStep is one observation among A = 20 000 arms in 5 dimensions, with all
// means and variances brought up to date. The cost grows in proportion to m.
func BenchmarkArmsStep(b *testing.B) {
	const arms = 20000
	for _, m := range []int{50, 100, 250} {
		b.Run(fmt.Sprintf("m=%d", m), func(b *testing.B) {
			rng := fixed()
			k := must(kernel.NewMatern52(0.3))
			x := uniform(rng, arms, 5)
			s := must(gp.NewSparse(k, x.Slice(0, m), gp.Data{}, gp.SparseOptions{NoiseVariance: 0.01}))
			if err := s.SetArms(x, false); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := s.ObserveArm(rng.IntN(200), 0.5); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkResparsify(b *testing.B) {
	const arms = 20000
	rng := fixed()
	k := must(kernel.NewMatern52(0.3))
	x := uniform(rng, arms, 5)
	s := must(gp.NewSparse(k, x.Slice(0, 50), gp.Data{X: x.Slice(0, 1000), Y: normals(rng, 1000)}, gp.SparseOptions{NoiseVariance: 0.01}))
	if err := s.SetArms(x, false); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := s.Resparsify(x.Slice(100, 150)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPredictSlope(b *testing.B) {
	rng := fixed()
	k := must(kernel.NewMatern52(0.3))
	x := uniform(rng, 300, 6)
	s := must(gp.NewSparse(k, x.Slice(0, 100), gp.Data{X: x, Y: normals(rng, 300)}, gp.SparseOptions{NoiseVariance: 0.01}))
	for b.Loop() {
		must(s.PredictSlope(x, 3))
	}
}

// BenchmarkFit is MAP on 150 points in 6 dimensions, from four starts.
func BenchmarkFit(b *testing.B) {
	rng := fixed()
	k := must(kernel.NewMatern52(1, 1, 1, 1, 1, 1))
	data := gp.Data{X: uniform(rng, 150, 6), Y: normals(rng, 150)}
	for b.Loop() {
		must(gp.Fit(b.Context(), k, data, gp.DimensionScaled(6)))
	}
}
