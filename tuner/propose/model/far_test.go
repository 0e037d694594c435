package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
)

// A result is among the thinned ones if no better thinned one is close to it. The best is
// always among them, and results crowd nowhere.
func TestThinByDefinition(t *testing.T) {
	sp := labtest.Parse(t, labtest.Spaces["mixed"])
	a := builder{space: sp, seed: 3}
	rng := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{1, 30, 150} {
		var list []Result
		for i := range n {
			x := []float64{0.5 + 0.03*rng.NormFloat64(), 0.5 + 0.03*rng.NormFloat64(), float64(rng.IntN(3)) / 3}
			if i%3 == 0 {
				x[0], x[1] = rng.Float64(), rng.Float64()
			}
			r := Result{Trial: i, X: x, Feasible: true}
			if i%7 != 3 {
				r.Y = []Measure{{Value: rng.NormFloat64(), Count: 1}}
			}
			list = append(list, r)
		}
		kept := a.thin(list)
		if !slices.IsSorted(kept) || len(kept) == 0 {
			t.Fatalf("kept %v of %d", kept, n)
		}
		for i, r := range list {
			near := slices.ContainsFunc(kept, func(k int) bool {
				return k != i && r.Y != nil && list[k].Y[0].Value >= r.Y[0].Value && a.close(r.X, list[k].X)
			})
			if in := slices.Contains(kept, i); in != (r.Y != nil && !near) {
				t.Errorf("result %d of %d is kept: %t, a better one is close: %t", i, n, in, near)
			}
		}
	}
	many := make([]Result, 5000)
	best := 0
	for i := range many {
		many[i] = Result{Trial: i, X: []float64{rng.Float64(), rng.Float64(), 0}, Y: []Measure{{Value: rng.NormFloat64()}}}
		if many[i].Y[0].Value > many[best].Y[0].Value {
			best = i
		}
	}
	kept := a.thin(many)
	if len(kept) > farPoints || !slices.Contains(kept, best) || !slices.Equal(kept, a.thin(many)) {
		t.Errorf("%d of 5000 are kept, the best %t", len(kept), slices.Contains(kept, best))
	}
}

// Points are close within farApart, as root mean square over ordered coordinates, and never
// if a category differs.
func TestCloseByDefinition(t *testing.T) {
	a := builder{space: labtest.Parse(t, labtest.Spaces["mixed"])}
	x := []float64{0.5, 0.5, 0.1}
	for _, c := range []struct {
		y    []float64
		want bool
	}{
		{[]float64{0.5 + 0.049, 0.5 + 0.049, 0.1}, true},
		{[]float64{0.5 + 0.051, 0.5 - 0.051, 0.1}, false},
		{[]float64{0.5 + 0.07, 0.5, 0.1}, true},
		{[]float64{0.5 + 0.072, 0.5, 0.1}, false},
		{[]float64{0.5, 0.5, 0.5}, false},
	} {
		if got := a.close(x, c.y); got != c.want {
			t.Errorf("%v and %v: %t", x, c.y, got)
		}
	}
}
