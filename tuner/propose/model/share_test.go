package model

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// TestSharedPredictions: on both sides of worthSharing a posterior is made, and predicts,
// to the bit what it does on one processor, whatever the number of goroutines; and a row
// more, from which on they share the work, changes nothing for the others.
func TestSharedPredictions(t *testing.T) {
	const seed, m = 31, 256
	const rows = worthSharing / (m * m) // the fewest that are shared
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	k := randomCovariance(t, rng)
	var inducing [][]float64
	for range m {
		inducing = append(inducing, []float64{rng.Float64(), float64(rng.IntN(3)), rng.Float64()})
	}
	samples := randomSamples(rng, rows)
	x := kernel.NewPoints[float64](rows, 3, nil)
	for i := range rows {
		copy(x.Row(i), randomPoint(rng))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	bits := func(values []float64) []uint64 {
		var out []uint64
		for _, v := range values {
			if math.IsNaN(v) {
				t.Fatal("NaN")
			}
			out = append(out, math.Float64bits(v))
		}
		return out
	}
	type outcome struct{ made, mean, variance []uint64 }
	run := func(processors, n int) outcome {
		runtime.GOMAXPROCS(processors)
		p := rebuilt(k, 1e-6, 0.1, m, false, inducing, samples[:n])
		if p.rank() != m {
			t.Fatalf("%d inducing points", p.rank())
		}
		want := 1
		if n >= rows {
			want = processors
		}
		if got := p.workers(n); got != want {
			t.Fatalf("%d goroutines for %d rows on %d processors, want %d", got, n, processors, want)
		}
		mean, variance := p.predict(x.Slice(0, n).(*kernel.Points[float64]))
		return outcome{bits(slices.Concat(p.ld, p.lv, p.b, p.w)), bits(mean), bits(variance)}
	}
	for _, n := range []int{rows - 1, rows} {
		one := run(1, n)
		for _, processors := range []int{2, 7} {
			many := run(processors, n)
			if !slices.Equal(many.made, one.made) || !slices.Equal(many.mean, one.mean) || !slices.Equal(many.variance, one.variance) {
				t.Errorf("%d rows: on %d processors other bits than on one", n, processors)
			}
		}
	}
	// The same posterior at one row less and at all, alone and shared.
	runtime.GOMAXPROCS(2)
	p := rebuilt(k, 1e-6, 0.1, m, false, inducing, samples)
	mean, variance := p.predict(x)
	less, lessVariance := p.predict(x.Slice(0, rows-1).(*kernel.Points[float64]))
	if !slices.Equal(bits(mean[:rows-1]), bits(less)) || !slices.Equal(bits(variance[:rows-1]), bits(lessVariance)) {
		t.Error("a row more, and predictions of the others have other bits")
	}
}
