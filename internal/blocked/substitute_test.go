package blocked

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats"
)

// byRows solves with products of one row at a time.
func byRows(trans bool, l Matrix[float64], b []float64) {
	if !trans {
		for i := range b {
			row := l.row(i)
			b[i] = (b[i] - floats.Dot(row[:i], b[:i])) / row[i]
		}
		return
	}
	for i := len(b) - 1; i >= 0; i-- {
		row := l.row(i)
		b[i] /= row[i]
		floats.AddScaled(b[:i], -b[i], row[:i])
	}
}

func substitute(trans bool, l Matrix[float64], b []float64) {
	if trans {
		Backward(l, b)
	} else {
		Forward(l, b)
	}
}

// lowerOf returns a lower triangle with a stride, and NaN above its diagonal.
func lowerOf(rng *rand.Rand, n, stride int) Matrix[float64] {
	l := Matrix[float64]{n, n, stride, make([]float64, n*stride)}
	for i := range l.Data {
		l.Data[i] = math.NaN()
	}
	for i := range n {
		row := l.row(i)
		for j := range i {
			row[j] = rng.NormFloat64()
		}
		row[i] = 1 + math.Sqrt(float64(i)) + rng.Float64()
	}
	return l
}

// TestSubstitution compares the bits with gonum's, and L·x with b.
func TestSubstitution(t *testing.T) {
	const seed = 3
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 31, 32, 33, 100, 255, 256} {
		for _, more := range []int{0, 1, 7} {
			for _, trans := range []bool{false, true} {
				what := fmt.Sprintf("n=%d stride=%d trans=%v", n, n+more, trans)
				l, b := lowerOf(rng, n, n+more), random[float64](rng, n, 1, 0).Data
				x, want := append([]float64{}, b...), append([]float64{}, b...)
				substitute(trans, l, x)
				byRows(trans, l, want)
				for i, v := range x {
					if math.Float64bits(v) != math.Float64bits(want[i]) {
						t.Fatalf("%s: element %d is %v, with gonum %v", what, i, v, want[i])
					}
				}
				for i := range n {
					sum, size := 0.0, 0.0
					for j := range n {
						a, c := i, j
						if trans {
							a, c = j, i
						}
						if c <= a {
							sum += l.row(a)[c] * x[j]
							size += math.Abs(l.row(a)[c] * x[j])
						}
					}
					if math.Abs(sum-b[i]) > 1e-14*float64(n+1)*(size+math.Abs(b[i])) {
						t.Fatalf("%s: row %d of the product is %g, want %g", what, i, sum, b[i])
					}
				}
			}
		}
	}
}

// TestSubstitutionOfPart checks that a shorter vector takes the leading triangle, and that
// NaN and a zero pivot spread to the elements that depend on them and no others.
func TestSubstitutionOfPart(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	l := lowerOf(rng, 20, 20)
	for _, trans := range []bool{false, true} {
		for n := range 20 {
			x := random[float64](rng, n, 1, 0).Data
			want := append([]float64{}, x...)
			substitute(trans, l, x)
			byRows(trans, l, want)
			if !floats.Equal(x, want) {
				t.Errorf("trans %v, %d of 20: %v, want %v", trans, n, x, want)
			}
		}
	}
	l.row(9)[9] = 0
	for _, trans := range []bool{false, true} {
		x := make([]float64, 20)
		for i := range x {
			x[i] = 1
		}
		substitute(trans, l, x)
		for i, v := range x {
			finite := !math.IsInf(v, 0) && v == v
			if depends := i >= 9 && !trans || i <= 9 && trans; finite == depends {
				t.Errorf("trans %v: element %d is %g", trans, i, v)
			}
		}
	}
}

// BenchmarkSubstitution reports the ratio of the time of one row at a time to ours.
func BenchmarkSubstitution(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{32, 256} {
		l, x := lowerOf(rng, n, n), random[float64](rng, n, 1, 0).Data
		y := make([]float64, n)
		for name, trans := range map[string]bool{"forward": false, "backward": true} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				const each = 100
				var rows time.Duration
				run := func(solve func(bool, Matrix[float64], []float64)) time.Duration {
					begin := time.Now()
					for range each {
						copy(y, x)
						solve(trans, l, y)
					}
					return time.Since(begin)
				}
				var ours time.Duration
				for b.Loop() {
					ours += run(substitute)
					rows += run(byRows)
				}
				b.ReportMetric(ours.Seconds()*1e9/each/float64(b.N), "ns/solve")
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(rows)/float64(ours), "rows/ours")
			})
		}
	}
}
