package simd

import (
	"fmt"
	"testing"
)

// BenchmarkTile reports multiply-adds of tiles from L2 as a share of the peak, measured in
// the same run. (a − b)² counts as one.
func BenchmarkTile(b *testing.B) {
	benchmarkTile[float32](b)
	benchmarkTile[float64](b)
}

func benchmarkTile[T Float](b *testing.B) {
	k := For[T]()
	nr := Columns[T]()
	for _, d := range []int{6, 18, 90} {
		n := max(1, 8192/(d*nr))
		a, ha, bs, hb := Aligned[T](d*Rows), Aligned[T](Rows), Aligned[T](n*d*nr), Aligned[T](n*nr)
		out := Aligned[T](n * TileSize[T]())
		for s, name := range []string{"dot", "squared", "manhattan", "mismatches"} {
			b.Run(fmt.Sprintf("%s/float%d/d=%d", name, 8*Size[T](), d), func(b *testing.B) {
				for b.Loop() {
					k.Tile[s](d, &a[0], &ha[0], &bs[0], &hb[0], &out[0], TileSize[T](), n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n*TileSize[T]()*d), "ns/term")
			})
		}
	}
}

// BenchmarkFunc reports the time for an element in L1.
func BenchmarkFunc(b *testing.B) {
	benchmarkFunc[float32](b)
	benchmarkFunc[float64](b)
}

func benchmarkFunc[T Float](b *testing.B) {
	x := Aligned[T](8 * TileSize[T]())
	par := &Params[T]{-1, -1}
	for f := range functions {
		b.Run(fmt.Sprintf("%d/float%d", f, 8*Size[T]()), func(b *testing.B) {
			for b.Loop() {
				Apply(f, x, par)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(x)), "ns/element")
		})
	}
}
