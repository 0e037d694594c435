package sgdrf

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
)

// wide returns n rows of d coordinates, of which five are not 0, and targets that
// depend on the first of these.
func wide(rng *rand.Rand, n, d int) (x *kernel.Points[float64], y []float64) {
	x, y = kernel.NewPoints(n, d, make([]float64, n*d)), make([]float64, n)
	for i := range n {
		for range 5 {
			x.Row(i)[rng.IntN(d)] = rng.NormFloat64()
		}
		x.Row(i)[0] = rng.NormFloat64()
		y[i] = x.Row(i)[0]
	}
	return x, y
}

// Rows with many coordinates take memory and time in proportion to M·d, dense or
// sparse. This holds also for orthogonal features, which are not the default there.
func TestWideRows(t *testing.T) {
	rng := kerneltest.Seeded(t, 21)
	for _, c := range []struct {
		n, d, m int
		family  sketch.Family
		sparse  bool
		want    sketch.Family
	}{
		{n: 60, d: 3000, m: 0, want: sketch.Fourier},
		{n: 60, d: 50_000, m: 32, sparse: true, want: sketch.Fourier},
		{n: 60, d: 50_000, m: 32, sparse: true, family: sketch.Orthogonal, want: sketch.Orthogonal},
		{n: 60, d: 40, m: 32, sparse: true, want: sketch.Orthogonal},
	} {
		x, y := wide(rng, c.n, c.d)
		var rows kernel.Rows = x
		if c.sparse {
			rows = kernel.Sparse(x)
		}
		train := must(data.NewMemory(rows, y, 1))
		m := c.m
		if m == 0 {
			m = DefaultFeatures(c.n)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l := fit(t, Params{Kernel: kerneltest.Gaussian(3), Features: c.m, Family: c.family}, train, learners.Options{Workers: 1})
		runtime.ReadMemStats(&after)
		if got := l.Spec().Family; got != c.want {
			t.Errorf("d = %d: family %s, want %s", c.d, got, c.want)
		}
		allocated := float64(after.TotalAlloc - before.TotalAlloc)
		if most := 20*8*float64(m)*float64(c.d) + 64<<20; allocated > most {
			t.Errorf("d = %d, %s: allocates %.3g bytes, more than %.3g", c.d, c.want, allocated, most)
		}
	}
}
