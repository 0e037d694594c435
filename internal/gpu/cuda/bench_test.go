//go:build cuda && cgo && linux

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"gorgonia.org/cu"

	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/gpu/cudatest"
)

// timed returns the milliseconds of the device between two events around f.
func (d *device) timed(f func()) (ms float64, err error) {
	err = d.do(func() {
		from, err := cu.MakeEvent(0)
		d.check("cuEventCreate", err)
		defer cu.DestroyEvent(&from)
		to, err := cu.MakeEvent(0)
		d.check("cuEventCreate", err)
		defer cu.DestroyEvent(&to)
		d.check("cuEventRecord", from.Record(cu.NoStream))
		f()
		d.check("cuEventRecord", to.Record(cu.NoStream))
		d.check("cuEventSynchronize", to.Synchronize())
		ms, err = from.Elapsed(to)
		d.check("cuEventElapsedTime", err)
	})
	return ms, err
}

// peaks returns operations and bytes a millisecond that the clocks and units of a device allow.
// A multiprocessor has 128 lanes for float32 from capability 8.6 on, and before 64.
func (d *device) peaks(b *testing.B) (flops, bytes float64) {
	b.Helper()
	if !cudatest.Real() {
		return 1, 1
	}
	dev, err := cu.GetDevice(0)
	if err != nil {
		b.Fatal(err)
	}
	read := func(a cu.DeviceAttribute) float64 {
		v, err := dev.Attribute(a)
		if err != nil {
			b.Fatal(err)
		}
		return float64(v)
	}
	lanes := 128.0
	if c := d.info.Capability; c == "7.5" || c == "8.0" {
		lanes = 64
	}
	flops = read(cu.MultiprocessorCount) * lanes * 2 * read(cu.ClockRate)
	bytes = 2 * read(cu.MemoryClockRate) * read(cu.GlobalMemoryBusWidth) / 8
	b.Logf("%s: peaks %.4g Tflop/s in float32, %.4g GB/s", d.info.Model, flops/1e9, bytes/1e6)
	return flops, bytes
}

// BenchmarkKernels times the kernels by events, without copies, and reports the shares of the
// peaks of the device. The stand-in gets a small size.
func BenchmarkKernels(b *testing.B) {
	sizes := []struct{ n, d, m int }{
		{100_000, 18, 2000},
		{100_000, 18, 10_000},
		{100_000, 90, 2000},
		{100_000, 90, 10_000},
		{1_000_000, 18, 2000},
		{1_000_000, 18, 10_000},
		{1_000_000, 90, 2000},
		{1_000_000, 90, 10_000},
		{463_715, 90, 10_000},
	}
	if !cudatest.Real() {
		sizes = []struct{ n, d, m int }{{300, 9, 130}}
	}
	opened, err := gpu.Registered().Open(0)
	if err != nil {
		b.Fatal(err)
	}
	dev := opened.(*device)
	peak, bandwidth := dev.peaks(b)
	largest := 0
	for _, s := range sizes {
		largest = max(largest, (s.n+s.m)*s.d)
	}
	x := make([]float32, largest)
	var group sync.WaitGroup
	const piece = 1 << 20
	for i := 0; i < len(x); i += piece {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for j := range x[i:min(i+piece, len(x))] {
				x[i+j] = float32(rng.NormFloat64() / 10)
			}
		})
	}
	group.Wait()
	for _, size := range sizes {
		n, d, m := size.n, size.d, size.m
		rows := func(from, n int) gpu.Rows {
			return gpu.Rows{N: n, D: d, Row: func(dst []float64, i int) {
				for c, v := range x[(from+i)*d:][:d] {
					dst[c] = float64(v)
				}
			}}
		}
		for _, single := range []bool{true, false} {
			peak := peak
			if !single {
				peak /= float64(max(1, dev.info.SlowerFloat64))
			}
			for _, expand := range []bool{true, false} {
				if !expand && n != 463_715 && cudatest.Real() {
					continue
				}
				f := gpu.Function{Profile: gpu.Decay, Factor: 1, Expand: expand}
				made, err := dev.NewMatrix(gpu.Problem{Function: f, Single: single, X: rows(0, n), Y: rows(n, m)})
				if err != nil {
					b.Fatal(err)
				}
				mat := made.(*matrix)
				flops := float64(n) * float64(m) * float64(2*d)
				report := func(name string, work, bytes float64, f func()) {
					b.Run(fmt.Sprintf("n=%d/d=%d/M=%d/single=%t/expand=%t/%s", n, d, m, single, expand, name), func(b *testing.B) {
						least := math.Inf(1)
						for range b.N {
							ms, err := dev.timed(f)
							if err != nil {
								b.Fatal(err)
							}
							least = min(least, ms)
						}
						b.ReportMetric(0, "ns/op")
						b.ReportMetric(least, "device-ms")
						if work > 0 {
							b.ReportMetric(work/least/1e9, "Tflop/s")
							b.ReportMetric(100*work/least/peak, "%flops")
						}
						if bytes > 0 {
							b.ReportMetric(bytes/least/1e6, "GB/s")
							b.ReportMetric(100*bytes/least/bandwidth, "%memory")
						}
					})
				}
				if mat.Stored() {
					bytes := float64(mat.rows()*mat.columns()) * float64(mat.size)
					report("fill", flops, bytes, func() { mat.fill(0, mat.np) })
					report("stored Kv", 0, bytes, func() { mat.product(mat.v, mat.u, 1, false, 0, mat.np) })
					report("stored Kᵀu", 0, bytes, func() { mat.product(mat.u, mat.v, 1, true, 0, mat.np) })
				}
				k := mat.k
				mat.k = 0
				report("fused Kv", flops, 0, func() { mat.product(mat.v, mat.u, 1, false, 0, mat.np) })
				report("fused Kᵀu", flops, 0, func() { mat.product(mat.u, mat.v, 1, true, 0, mat.np) })
				mat.k = k
				if err := mat.Close(); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
