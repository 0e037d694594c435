package blocked

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas/blas64"
)

// TestGemv compares products with sums written as in the definition.
func TestGemv(t *testing.T) { both(t, testGemv[float32], testGemv[float64]) }

func testGemv[T Float](t *testing.T) {
	const seed = 12
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	shapes := [][2]int{{1, 1}, {1, 9}, {9, 1}, {6, 512}, {7, 513}, {5, 4100}, {4100, 5}, {13, 1024}, {500, 700}, {2, 0}, {0, 2}}
	for range 20 {
		shapes = append(shapes, [2]int{1 + rng.IntN(80), 1 + rng.IntN(80)})
	}
	for _, s := range shapes {
		m, k := s[0], s[1]
		for mode := range 6 {
			trans := mode&1 == 1
			alpha, beta := T(1.5), []T{0, -2, 1}[mode/2]
			a, x, y := random[T](rng, m, k, mode), random[T](rng, k, 1, 0), random[T](rng, m, 1, 0)
			if trans {
				a = random[T](rng, k, m, mode)
			}
			want := make([]float64, m)
			for i := range m {
				sum := 0.0
				for l := range k {
					at := i*a.Stride + l
					if trans {
						at = l*a.Stride + i
					}
					sum += float64(a.Data[at]) * float64(x.Data[l])
				}
				want[i] = float64(alpha)*sum + float64(beta)*float64(y.Data[i])
			}
			what, before := fmt.Sprint("gemv ", s, mode), y.clone()
			Gemv(1, trans, a, x.Data, alpha, beta, y.Data)
			near(t, what, y, want, 4*epsilon[T]()*float64(k+2))
			for _, workers := range []int{2, 5} {
				again := before.clone()
				Gemv(workers, trans, a, x.Data, alpha, beta, again.Data)
				equal(t, what, again, y)
			}
		}
	}
}

// TestGemvNonFinite checks that NaN and Inf reach the elements that they belong to, and no
// others.
func TestGemvNonFinite(t *testing.T) {
	for _, trans := range []bool{false, true} {
		a, x, y := New[float64](20, 20, nil), make([]float64, 20), make([]float64, 20)
		for i := range a.Data {
			a.Data[i] = 1
		}
		for i := range x {
			x[i] = 1
		}
		a.Data[19*20+19], a.Data[3*20+3] = math.Inf(1), math.NaN()
		y[5] = math.NaN() // not read
		Gemv(1, trans, a, x, 1, 0, y)
		for i, v := range y {
			switch {
			case i == 19 && !math.IsInf(v, 1), i == 3 && v == v, i != 19 && i != 3 && v != 20:
				t.Errorf("transposed %v: element %d is %g", trans, i, v)
			}
		}
	}
}

// BenchmarkGemv reports the ratio of gonum's time to ours for the same product, with a
// matrix that stays in L2 and with one that does not.
func BenchmarkGemv(b *testing.B) {
	for _, s := range [][2]int{{32, 1024}, {4, 8192}, {2000, 2000}} {
		for _, trans := range []bool{false, true} {
			b.Run(fmt.Sprint(s[0], "x", s[1], " ", trans), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 1))
				m, k := s[0], s[1]
				if trans {
					m, k = k, m
				}
				a, x, y := random[float64](rng, s[0], s[1], 0), random[float64](rng, k, 1, 0), random[float64](rng, m, 1, 0)
				rounds := max(1, (1<<17)/(m*k))
				ours, theirs := time.Hour, time.Hour // the best of all
				for b.Loop() {
					start := time.Now()
					for range rounds {
						Gemv(1, trans, a, x.Data, 1, 0, y.Data)
					}
					ours = min(ours, time.Since(start))
					start = time.Now()
					for range rounds {
						blas64.Gemv(transposition(trans), 1, wide64(a), blas64.Vector{N: k, Inc: 1, Data: x.Data}, 0, blas64.Vector{N: m, Inc: 1, Data: y.Data})
					}
					theirs = min(theirs, time.Since(start))
				}
				b.ReportMetric(float64(theirs)/float64(ours), "gonum/ours")
				b.ReportMetric(float64(ours.Nanoseconds())/float64(rounds*m*k), "ns/element")
			})
		}
	}
}

// wide64 is a for gonum, without a copy.
func wide64(a Matrix[float64]) blas64.General {
	return blas64.General{Rows: a.Rows, Cols: a.Cols, Stride: a.Stride, Data: a.Data}
}
