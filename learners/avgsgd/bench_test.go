package avgsgd

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

// BenchmarkSparseStep measures steps on sparse rows, 50 of 20,000 coordinates.
// "×-eager" compares with the same steps with the average updated in every coordinate.
func BenchmarkSparseStep(b *testing.B) {
	const n, d, stored = 200, 20000, 50
	rng := rand.New(rand.NewPCG(1, 1))
	ptr, col, val := []int{0}, []int32{}, []float64{}
	for range n {
		for k := range stored {
			col = append(col, int32(k*d/stored+rng.IntN(d/stored)))
			val = append(val, rng.NormFloat64())
		}
		ptr = append(ptr, len(col))
	}
	x, err := kernel.NewCSR(n, d, ptr, col, val)
	if err != nil {
		b.Fatal(err)
	}
	y := make([]float64, n)
	for i := range y {
		y[i] = rng.NormFloat64()
	}
	pass := func(p *primal, after func()) time.Duration {
		start := time.Now()
		for i := range n {
			if _, err := p.rows(x.Slice(i, i+1), y[i:i+1]); err != nil {
				b.Fatal(err)
			}
			after()
		}
		return time.Since(start)
	}
	p := newPrimal(d, 1, 1e-3)
	mean := make([]float64, d)
	slow := least(func() time.Duration {
		return pass(p, func() {
			f := 1 / float64(p.t)
			for j, w := range p.w {
				mean[j] += f * (w - mean[j])
			}
		})
	})
	p = newPrimal(d, 1, 1e-3)
	for b.Loop() {
		pass(p, func() {})
	}
	fast := least(func() time.Duration { return pass(p, func() {}) })
	b.ReportMetric(float64(slow)/float64(fast), "×-eager")
}

// BenchmarkDualStep is the same for coefficients of n = 2000 rows, where a step
// multiplies a row of K in any case.
func BenchmarkDualStep(b *testing.B) {
	const n = 2000
	rng := rand.New(rand.NewPCG(1, 1))
	gram := kerneltest.Normals(rng, n*n)
	y := kerneltest.Normals(rng, n)
	pass := func(d *dual, after func()) time.Duration {
		start := time.Now()
		for i := range n {
			d.visit(i, gram[i*n:][:n], y[i:i+1])
			after()
		}
		return time.Since(start)
	}
	d := newDual(n, 1, 1e-6)
	mean := make([]float64, n)
	slow := least(func() time.Duration {
		return pass(d, func() {
			f := 1 / float64(d.t)
			for j, a := range d.a {
				mean[j] += f * (a - mean[j])
			}
		})
	})
	d = newDual(n, 1, 1e-6)
	for b.Loop() {
		pass(d, func() {})
	}
	fast := least(func() time.Duration { return pass(d, func() {}) })
	b.ReportMetric(float64(slow)/float64(fast), "×-eager")
}

// least returns the time of the shortest of seven runs, which was disturbed least.
func least(run func() time.Duration) time.Duration {
	t := run()
	for range 6 {
		t = min(t, run())
	}
	return t
}
