package gp

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// TestSharedPredictions checks both sides of worthSharing. There a posterior is built
// and predicts with the same bits as on one processor, for any number of goroutines.
// One more row, from which on they share the work, changes nothing for the others.
func TestSharedPredictions(t *testing.T) {
	const seed, m = 31, 256
	const rows = worthSharing / (m * m) // the fewest that are shared
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	k, err := kernel.NewMixed([]int{0, 2}, []int{1}, []float64{1.2, 0.4, 0.6, 1})
	if err != nil {
		t.Fatal(err)
	}
	points := func(n int) *kernel.Points[float64] {
		x := kernel.NewPoints[float64](n, 3, nil)
		for i := range n {
			copy(x.Row(i), []float64{rng.Float64(), float64(rng.IntN(3)), rng.Float64()})
		}
		return x
	}
	dictionary, data, x := points(m), Data{X: points(rows), Y: make([]float64, rows)}, points(rows)
	for i := range data.Y {
		data.Y[i] = rng.NormFloat64()
	}
	build := func(n int) *Sparse {
		s, err := NewSparse(k, dictionary, Data{X: data.X.Slice(0, n), Y: data.Y[:n]}, SparseOptions{
			NoiseVariance: 1e-6, Mean: 0.1, Growth: Growth{Room: m, Window: 1024},
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	predict := func(s *Sparse, n int) (mean, variance []float64) {
		mean, variance, err := s.Predict(x.Slice(0, n))
		if err != nil {
			t.Fatal(err)
		}
		return mean, variance
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	bits := func(values []float64) []uint64 {
		var out []uint64
		for _, v := range values {
			if math.IsNaN(v) {
				t.Fatal("NaN")
			}
			out = append(out, math.Float64bits(v))
		}
		return out
	}
	type outcome struct{ made, mean, variance []uint64 }
	run := func(processors, n int) outcome {
		runtime.GOMAXPROCS(processors)
		s := build(n)
		if s.Rank() != m {
			t.Fatalf("%d inducing points", s.Rank())
		}
		want := 1
		if n >= rows {
			want = 0 // one for each processor
		}
		if got := s.workers(n); got != want {
			t.Fatalf("%d goroutines for %d rows, want %d", got, n, want)
		}
		mean, variance := predict(s, n)
		var made []float64
		for i := range m {
			made = append(append(made, s.emb.l.row(i)...), s.reg.l.row(i)...)
		}
		return outcome{bits(slices.Concat(made, s.reg.b, s.reg.w)), bits(mean), bits(variance)}
	}
	for _, n := range []int{rows - 1, rows} {
		one := run(1, n)
		for _, processors := range []int{2, 7} {
			many := run(processors, n)
			if !slices.Equal(many.made, one.made) || !slices.Equal(many.mean, one.mean) || !slices.Equal(many.variance, one.variance) {
				t.Errorf("%d rows: on %d processors other bits than on one", n, processors)
			}
		}
	}
	// This is the same posterior at one row less and at all, alone and shared.
	runtime.GOMAXPROCS(2)
	s := build(rows)
	mean, variance := predict(s, rows)
	less, lessVariance := predict(s, rows-1)
	if !slices.Equal(bits(mean[:rows-1]), bits(less)) || !slices.Equal(bits(variance[:rows-1]), bits(lessVariance)) {
		t.Error("a row more, and predictions of the others have other bits")
	}
}
