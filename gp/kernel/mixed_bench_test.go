package kernel_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

// BenchmarkMixed fills blocks of the kernel of a mixed space, a product of Matérn-5/2
// on four numbers and Hamming on three categories. It reports how many times faster
// that is than one Eval of each part for every pair, in the same run.
func BenchmarkMixed(b *testing.B) {
	const n, m = 1000, 200
	rng := rand.New(rand.NewPCG(1, 0))
	x, y := kerneltest.Points(rng, n, 7), kerneltest.Points(rng, m, 7)
	for _, p := range []*kernel.Points[float64]{x, y} {
		for i := range p.Len() {
			for c := 4; c < 7; c++ {
				p.Row(i)[c] = float64(rng.IntN(5))
			}
		}
	}
	numbers, categories := must(kernel.NewMatern52(1, 2, 3, 2)), must(kernel.NewHamming(1, 2, 1.5))
	k := must(kernel.NewMixed([]int{0, 1, 2, 3}, []int{4, 5, 6}, []float64{1.5, 1, 2, 3, 2, 1, 2, 1.5}))
	var s kernel.Scratch
	prepared, dst := kernel.Prepare(k, y), make([]float64, n*m)
	lx, ly := columnsOf(x, 0, 4), columnsOf(y, 0, 4)
	rx, ry := columnsOf(x, 4, 7), columnsOf(y, 4, 7)
	var slow, quick time.Duration
	for b.Loop() {
		start := time.Now()
		for i := range n {
			for j := range m {
				dst[i*m+j] = 1.5 * numbers.Eval(lx, i, ly, j) * categories.Eval(rx, i, ry, j)
			}
		}
		middle := time.Now()
		prepared.Fill(dst, m, x, 0, n, &s)
		slow, quick = slow+middle.Sub(start), quick+time.Since(middle)
	}
	b.ReportMetric(float64(slow)/float64(quick), "Eval/Fill")
	b.ReportMetric(float64(quick.Nanoseconds())/float64(b.N*n*m), "ns/pair")
}

// columnsOf copies some coordinates.
func columnsOf(x *kernel.Points[float64], from, to int) *kernel.Points[float64] {
	out := kernel.NewPoints[float64](x.Len(), to-from, nil)
	for i := range x.Len() {
		copy(out.Row(i), x.Row(i)[from:to])
	}
	return out
}
