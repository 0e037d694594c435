package falkon

import (
	"math"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

func benchmarkData(n int) *data.Memory {
	return must(data.Load(background, must(data.Generate[float64](data.SUSYLike{Seed: 1}, 0, n))))
}

// seconds returns the least of three times of a fit with exactly t iterations, in CPU
// seconds, because the machine may do other work.
func seconds(train data.Source, m, t int) float64 {
	p := Params{Kernel: kerneltest.Gaussian(4), Lambda: 1e-6, Centers: m, Iterations: t, Tolerance: 1e-300}
	best := math.Inf(1)
	for range 3 {
		start := cpuSeconds()
		must(p.Fit(background, train, learners.Options{Workers: 1}))
		best = min(best, cpuSeconds()-start)
	}
	return best
}

// slope is the slope of log y over log x, by least squares.
func slope(x, y []float64) float64 {
	var mx, my, xy, xx float64
	for i := range x {
		mx += math.Log(x[i]) / float64(len(x))
		my += math.Log(y[i]) / float64(len(x))
	}
	for i := range x {
		xy += (math.Log(x[i]) - mx) * (math.Log(y[i]) - my)
		xx += (math.Log(x[i]) - mx) * (math.Log(x[i]) - mx)
	}
	return xy / xx
}

// BenchmarkCost checks O(nMt + M³). It reports the slopes of log time over log n, log M
// and log t, and for the preconditioner alone over log M. In theory they are 1, 1,
// about 1 (t + 1 passes) and 3.
func BenchmarkCost(b *testing.B) {
	for b.Loop() {
		var ns, ms, ts, ps [2][]float64
		for _, n := range []int{8_000, 16_000, 32_000} {
			ns[0], ns[1] = append(ns[0], float64(n)), append(ns[1], seconds(benchmarkData(n), 256, 5))
		}
		train := benchmarkData(16_000)
		for _, m := range []int{128, 256, 512} {
			ms[0], ms[1] = append(ms[0], float64(m)), append(ms[1], seconds(train, m, 5))
		}
		for _, t := range []int{4, 9, 19} {
			ts[0], ts[1] = append(ts[0], float64(t+1)), append(ts[1], seconds(train, 256, t))
		}
		for _, m := range []int{500, 1000, 2000} {
			ps[0], ps[1] = append(ps[0], float64(m)), append(ps[1], preconditionerSeconds(train, m))
		}
		b.ReportMetric(slope(ns[0], ns[1]), "slope-n")
		b.ReportMetric(slope(ms[0], ms[1]), "slope-M")
		b.ReportMetric(slope(ts[0], ts[1]), "slope-t+1")
		b.ReportMetric(slope(ps[0], ps[1]), "slope-M-preconditioner")
	}
}

func preconditionerSeconds(train *data.Memory, m int) float64 {
	gram := must(kernel.Gramian(kerneltest.Gaussian(4), train.Rows().Slice(0, m)))
	perRow := make([]float64, m)
	for j := range perRow {
		perRow[j] = 1 / float64(m)
	}
	best := math.Inf(1)
	for range 3 {
		start := cpuSeconds()
		f, _ := newFactor(FactorPivoted, 1, append([]float64(nil), gram...), m, 1e-13)
		newPreconditioner(f, 1).set(perRow, 1e-6)
		best = min(best, cpuSeconds()-start)
	}
	return best
}

// BenchmarkAgainstDirect compares FALKON with 10 iterations and the direct solution of
// (4.5) in O(nM²), with the same kernel evaluations and package blocked.
func BenchmarkAgainstDirect(b *testing.B) {
	train, k, lambda := benchmarkData(10_000), kerneltest.Gaussian(4), 1e-6
	const m = 1000
	var falkon, direct float64
	for b.Loop() {
		start := time.Now()
		must(Params{Kernel: k, Lambda: lambda, Centers: m, Iterations: 10, Tolerance: 1e-300}.Fit(background, train, learners.Options{Workers: 1}))
		falkon += time.Since(start).Seconds()

		start = time.Now()
		c := must(learners.ChooseCenters(background, k, train, learners.Sampling{Most: m}, 0))
		f, _ := newFactor(FactorPivoted, 1, must(kernel.Gramian(k, c.Points)), m, 1e-13)
		used := c.Points.Select(f.used())
		q := used.Len()
		h := blocked.New[float64](q, q, nil)
		for i := range q {
			h.Data[i*q+i] = lambda * 10_000
		}
		z := make([]float64, q)
		for i := 0; i < 10_000; i += 500 { // Z = K_nM L⁻ᵀ by rows, H = ZᵀZ + λnI
			rows := must(kernel.Matrix(k, train.Rows().Slice(i, i+500), used))
			block := blocked.New(500, q, rows)
			blocked.SolveLowerRight(1, true, f.(*pivoted).l, block)
			blocked.Syrk(1, true, block, 1, 1, h)
			blocked.Gemm(1, true, block, false, blocked.New(500, 1, train.Targets()[i:i+500]), 1, 1, blocked.New(q, 1, z))
		}
		blocked.Cholesky(1, h)
		blocked.SolveLower(1, false, h, blocked.New(q, 1, z))
		blocked.SolveLower(1, true, h, blocked.New(q, 1, z))
		direct += time.Since(start).Seconds()
	}
	b.ReportMetric(direct/falkon, "direct/falkon")
}

// BenchmarkFactorizations times the factorisations relative to the default.
func BenchmarkFactorizations(b *testing.B) {
	const m = 600
	gram := must(kernel.Gramian(kerneltest.Gaussian(4), benchmarkData(m).Rows()))
	elapsed := map[Factorization]float64{}
	for b.Loop() {
		for _, how := range factorizations {
			start := time.Now()
			newFactor(how, 1, append([]float64(nil), gram...), m, 1e-13)
			elapsed[how] += time.Since(start).Seconds()
		}
	}
	for _, how := range factorizations[1:] {
		b.ReportMetric(elapsed[how]/elapsed[FactorPivoted], string(how)+"/pivoted")
	}
}

// BenchmarkLogistic times Newton's method for the logistic loss relative to the squared
// loss.
func BenchmarkLogistic(b *testing.B) {
	train, k := benchmarkData(10_000), kerneltest.Gaussian(4)
	var logistic, squared float64
	for b.Loop() {
		start := time.Now()
		must(LogisticParams{Params: Params{Kernel: k, Lambda: 1e-6, Centers: 200}}.Fit(background, train, learners.Options{}))
		logistic += time.Since(start).Seconds()
		start = time.Now()
		must(Params{Kernel: k, Lambda: 1e-6, Centers: 200}.Fit(background, train, learners.Options{}))
		squared += time.Since(start).Seconds()
	}
	b.ReportMetric(logistic/squared, "logistic/squared")
}
