package panel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/internal/simd"
)

// FuzzProducts compares products of any shape with sums of the formulas. Each input tests
// one kernel in one precision, so that there are hundreds of inputs a second.
func FuzzProducts(f *testing.F) {
	f.Add(uint64(1), uint16(1), uint16(1), uint16(0), uint8(1), uint8(0))
	f.Add(uint64(2), uint16(289), uint16(1), uint16(300), uint8(0), uint8(3))
	f.Add(uint64(3), uint16(1), uint16(130), uint16(299), uint8(3), uint8(130))
	f.Add(uint64(4), uint16(97), uint16(95), uint16(7), uint8(2), uint8(9))
	f.Add(uint64(5), uint16(8), uint16(1200), uint16(2), uint8(0), uint8(1)) // more than one piece
	f.Fuzz(func(t *testing.T, seed uint64, n, m, d uint16, cols, which uint8) {
		shape := [4]int{int(n) % 600, int(m) % 1300, int(d) % 301, 1 + int(cols)%4}
		for shape[0]*shape[1]*(shape[2]+10) > 1<<17 { // larger sizes take too long
			large := 0
			if shape[1] > shape[0] {
				large = 1
			}
			shape[large] /= 2
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		all := examples(rng, shape[2], shape[1])
		e := all[int(which>>1)%len(all)]
		t.Logf("%s: n, M, d, columns: %v", e.name, shape)
		if which&1 == 0 {
			checkExample[float64](t, e, newInputs[float32](rng, shape), 2e-14)
		} else {
			checkExample[float32](t, e, newInputs[float64](rng, shape), 4e-6)
		}
	})
}

// TestNonFinite checks that a NaN or infinity of an input reaches all of its row of K, or
// its column, and nothing else.
func TestNonFinite(t *testing.T) {
	testNonFinite[float64](t)
	testNonFinite[float32](t)
}

func testNonFinite[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	const n, m, d = 31, 37, 5
	for _, e := range examples(rng, d, m) {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			x, y := dense[float64](rng, n, d), dense[float64](rng, m, d)
			clean := matrix[T](e.f, x, y)
			x.row(7)[2] = bad
			dirty := matrix[T](e.f, x, y)
			for i := range n * m {
				switch v := dirty[i]; {
				case i/m != 7 && v != clean[i]:
					t.Fatalf("%s: %g in row 7 changes K(%d, %d)", e.name, bad, i/m, i%m)
				case i/m == 7 && math.IsNaN(bad) && v == v && e.f.Statistic != simd.Mismatches:
					t.Fatalf("%s: K(7, %d) = %g of a NaN", e.name, i%m, v)
				case i/m == 7 && math.IsInf(bad, 0) && e.f.Func == simd.ExpScaled && !e.f.Expand && v != 0:
					t.Fatalf("%s: K(7, %d) = %g of %g", e.name, i%m, v, bad)
				}
			}
		}
	}
}

func matrix[T Float](f Function, x, y Rows[float64]) []float64 {
	c := Pack[T](f, y)
	b := NewBlock(c, x.N)
	Evaluate(b, x, 0, x.N, nil, nil)
	k := make([]float64, x.N*y.N)
	b.Copy(k, y.N)
	return k
}

// Without coordinates K is φ(0) everywhere, and without columns nothing is written.
func TestStatisticsOfNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, e := range examples(rng, 0, 3) {
		k := matrix[float64](e.f, dense[float64](rng, 2, 0), dense[float64](rng, 3, 0))
		for i, v := range k {
			if want := e.want(nil, nil, i%3); math.Abs(v-want) > 1e-14 {
				t.Errorf("%s: %g, want %g", e.name, v, want)
			}
		}
	}
	if k := matrix[float32](Function{Statistic: simd.Squared, Func: simd.ExpScaled, P0: -1}, dense[float64](rng, 2, 3), dense[float64](rng, 0, 3)); len(k) != 0 {
		t.Error(fmt.Sprint(k))
	}
}
