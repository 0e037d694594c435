package gp

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// TestDetach checks that a detached posterior keeps its predictions while its origin
// changes, and that it may be read meanwhile. Means are those of Predict.
func TestDetach(t *testing.T) {
	const seed = 17
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
	data := func(n int) Data {
		d := Data{X: points(n), Y: make([]float64, n)}
		for i := range d.Y {
			d.Y[i] = rng.NormFloat64()
		}
		return d
	}
	for _, growth := range []Growth{{}, {Room: 40, Window: 64}} {
		s, err := NewSparse(k, points(20), data(60), SparseOptions{NoiseVariance: 0.01, Mean: 0.3, Growth: growth})
		if err != nil {
			t.Fatal(err)
		}
		x := points(300)
		mean, variance, err := s.Predict(x)
		if err != nil {
			t.Fatal(err)
		}
		d := s.Detach()
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				for range 5 {
					gotMean, gotVariance, err := d.Predict(x)
					if err != nil || !slices.Equal(gotMean, mean) || !slices.Equal(gotVariance, variance) {
						t.Errorf("growth %+v: the predictions changed, %v", growth, err)
					}
					means, err := d.Means(x)
					if err != nil {
						t.Error(err)
					}
					for i := range means {
						if math.Abs(means[i]-mean[i]) > 1e-9 {
							t.Errorf("growth %+v: the mean of row %d is %v, by Predict %v", growth, i, means[i], mean[i])
							return
						}
					}
				}
			})
		}
		for range 40 {
			if err := s.Observe(data(3)); err != nil {
				t.Fatal(err)
			}
		}
		readers.Wait()
		if after, _, err := s.Predict(x); err != nil || slices.Equal(after, mean) {
			t.Errorf("the origin did not change: %v", err)
		}
		if err := d.Observe(data(1)); !errors.Is(err, ErrFrozen) {
			t.Errorf("an observation of a detached posterior: %v", err)
		}
	}
	bad := points(5)
	bad.Row(3)[0] = math.NaN()
	s, err := NewSparse(k, points(4), data(4), SparseOptions{NoiseVariance: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Means(bad); err == nil {
		t.Error("NaN passed")
	}
}
