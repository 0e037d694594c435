package gp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
)

// TestPanelsHaveBitsOfRows compares predictions in panels with those by rows, which
// programs had before and old studies replay, for every number of inducing points modulo
// the sizes of panels.
func TestPanelsHaveBitsOfRows(t *testing.T) {
	const seed = 12
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	points := func(n int) *kernel.Points[float64] {
		x := kernel.NewPoints[float64](n, 3, nil)
		for i := range x.Data() {
			x.Data()[i] = rng.Float64()
		}
		return x
	}
	values := func(n int) []float64 {
		y := make([]float64, n)
		for i := range y {
			y[i] = rng.NormFloat64()
		}
		return y
	}
	k, err := kernel.NewMatern52(0.4)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []int{0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 30, 101, 200, 319, 320} {
		x := points(m + 5)
		s, err := NewSparse(k, x.Slice(0, m), Data{X: x, Y: values(m + 5)}, SparseOptions{NoiseVariance: 0.1, Mean: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 5, 8, 9, 33, 400} {
			for range 2 { // the second time after a change
				u := points(n)
				if n > 5 {
					copy(u.Row(5), u.Row(0)) // and one at an inducing point
					if m > 0 {
						copy(u.Row(4), x.Row(0))
					}
				}
				var mean, variance [2][]float64
				for i, predict := range []func(mean, variance []float64) error{
					func(mean, variance []float64) error { return s.predictPanels(mean, variance, u, true) },
					func(mean, variance []float64) error { return s.predictRows(mean, variance, u) },
				} {
					mean[i], variance[i] = make([]float64, n), make([]float64, n)
					if err := predict(mean[i], variance[i]); err != nil {
						t.Fatal(err)
					}
				}
				if !slices.Equal(mean[0], mean[1]) || !slices.Equal(variance[0], variance[1]) {
					t.Fatalf("m=%d n=%d: %v and %v, by rows %v and %v", m, n, mean[0], variance[0], mean[1], variance[1])
				}
				if err := s.Observe(Data{X: points(1), Y: values(1)}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestPanelsAfterChange compares the triangle that a factor keeps with one packed afresh.
func TestPanelsAfterChange(t *testing.T) {
	const seed, n = 13, 20
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	a, z := make([]float64, n*n), make([]float64, n)
	for i := range n {
		a[i*n+i], z[i] = 1+rng.Float64(), rng.NormFloat64()
	}
	c, _, err := newCholesky("a", a, n, new(workspace))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // from the second change on in the memory of an earlier triangle
		before := slices.Clone(c.panels().data)
		c.rankOne(z, 0.5, make([]float64, n), make([]float64, n))
		if after := c.panels().data; !slices.Equal(after, blocked.PackTriangle(c.matrix())) || slices.Equal(after, before) {
			t.Error("the packed triangle is not that of the factor after an update")
		}
	}
}
