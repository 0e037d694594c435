//go:build cuda && cgo && linux

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gorgonia.org/cu"

	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/gpu/cudatest"
)

// timed returns the milliseconds of the device between two events around f.
func (d *device) timed(f func() error) (ms float64, err error) {
	err = d.do(func() error {
		from, err := cu.MakeEvent(0)
		if err != nil {
			return err
		}
		defer cu.DestroyEvent(&from)
		to, err := cu.MakeEvent(0)
		if err != nil {
			return err
		}
		defer cu.DestroyEvent(&to)
		if err := from.Record(cu.NoStream); err != nil {
			return err
		}
		if err := f(); err != nil {
			return err
		}
		if err := to.Record(cu.NoStream); err != nil {
			return err
		}
		if err := to.Synchronize(); err != nil {
			return err
		}
		ms, err = from.Elapsed(to)
		return err
	})
	return ms, err
}

// BenchmarkKernels times the kernels by events, without copies, for the size of
// MillionSongs with 10,000 centres. The stand-in gets a small size.
func BenchmarkKernels(b *testing.B) {
	n, d, m := 463_715, 90, 10_000
	if !cudatest.Real() {
		n, d, m = 300, 9, 130
	}
	opened, err := gpu.Registered().Open(0)
	if err != nil {
		b.Fatal(err)
	}
	dev := opened.(*device)
	rng := rand.New(rand.NewPCG(1, 0))
	x := make([]float32, (n+m)*d)
	for i := range x {
		x[i] = float32(rng.NormFloat64() / 10)
	}
	rows := func(from, n int) gpu.Rows {
		return gpu.Rows{N: n, D: d, Row: func(dst []float64, i int) {
			for c, v := range x[(from+i)*d:][:d] {
				dst[c] = float64(v)
			}
		}}
	}
	flops := float64(n) * float64(m) * float64(2*d)
	for _, single := range []bool{true, false} {
		for _, expand := range []bool{true, false} {
			f := gpu.Function{Profile: gpu.Decay, Factor: 1, Expand: expand}
			made, err := dev.NewMatrix(gpu.Problem{Function: f, Single: single, X: rows(0, n), Y: rows(n, m)})
			if err != nil {
				b.Fatal(err)
			}
			mat := made.(*matrix)
			report := func(name string, work, bytes float64, f func() error) {
				b.Run(fmt.Sprintf("single=%t/expand=%t/%s", single, expand, name), func(b *testing.B) {
					least := math.Inf(1)
					for range b.N {
						ms, err := dev.timed(f)
						if err != nil {
							b.Fatal(err)
						}
						least = min(least, ms)
					}
					b.ReportMetric(least, "device-ms")
					b.ReportMetric(work/least/1e6, "Gflop/s")
					b.ReportMetric(bytes/least/1e6, "GB/s")
				})
			}
			if mat.Stored() {
				bytes := float64(mat.rows()*mat.columns()) * float64(mat.size)
				report("fill", flops, bytes, func() error { return mat.fill(0, mat.np) })
				report("stored Kv", 0, bytes, func() error { return mat.product(mat.v, mat.u, 1, false, 0, mat.np) })
				report("stored Kᵀu", 0, bytes, func() error { return mat.product(mat.u, mat.v, 1, true, 0, mat.np) })
			}
			k := mat.k
			mat.k = 0
			report("fused Kv", flops, 0, func() error { return mat.product(mat.v, mat.u, 1, false, 0, mat.np) })
			report("fused Kᵀu", flops, 0, func() error { return mat.product(mat.u, mat.v, 1, true, 0, mat.np) })
			mat.k = k
			if err := mat.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
