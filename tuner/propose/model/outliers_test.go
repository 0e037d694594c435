package model

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
)

// Single extreme values among good ones are outliers. A region of extreme values is none, and
// a smooth slope is none.
func TestOutliers(t *testing.T) {
	a := builder{space: labtest.Parse(t, labtest.Square), seed: 3, objectives: 1}
	rng := rand.New(rand.NewPCG(5, 5))
	bowl := func(x []float64) float64 { return -(x[0]-0.4)*(x[0]-0.4) - (x[1]-0.6)*(x[1]-0.6) }
	results := func(value func(i int, x []float64) float64) []Result {
		var list []Result
		for i := range 120 {
			x := []float64{rng.Float64(), rng.Float64()}
			if i >= 30 { // around the incumbent
				x = []float64{0.4 + 1e-4*rng.NormFloat64(), 0.6 + 1e-4*rng.NormFloat64()}
			}
			list = append(list, Result{Trial: i, X: x, Feasible: true, Y: []Measure{{Value: value(i, x), Count: 1}}})
		}
		return list
	}
	var lost []int
	list := results(func(i int, x []float64) float64 {
		if i%17 == 5 {
			lost = append(lost, i)
			return -1e30
		}
		return bowl(x)
	})
	o := a.outliers(list)
	if !slices.Equal(o.Results, lost) {
		t.Errorf("outliers %v, want %v", o.Results, lost)
	}
	if regular := o.regular(list); len(regular) != len(list)-len(lost) {
		t.Errorf("%d regular results of %d", len(regular), len(list))
	}
	if o := a.outliers(results(func(_ int, x []float64) float64 { return bowl(x) })); o == nil || len(o.Results) > 0 {
		t.Errorf("a bowl has outliers: %v", o)
	}
	o = a.outliers(results(func(_ int, x []float64) float64 {
		if x[0] > 0.7 {
			return -1e30
		}
		return bowl(x)
	}))
	if len(o.Results) > 0 {
		t.Errorf("a region of bad values has outliers: %v", o.Results)
	}
	if a.outliers(list[:4]) != nil {
		t.Error("four results have outliers")
	}
}

// The neighbours of a suspect are the nearest results, and of equally near ones the first. On
// a lattice many are equally near.
func TestNeighboursByDefinition(t *testing.T) {
	a := builder{space: labtest.Parse(t, labtest.Square), objectives: 1}
	rng, both := rand.New(rand.NewPCG(8, 5)), map[bool]int{}
	for range 300 {
		list := make([]Result, outlierNear+rng.IntN(30))
		for i := range list {
			list[i] = Result{X: []float64{float64(rng.IntN(4)), float64(rng.IntN(4))}, Y: []Measure{{Value: -float64(rng.IntN(4) / 3)}}}
		}
		list[0].Y = []Measure{{Value: -1}}
		var order []int
		for i := 1; i < len(list); i++ {
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(i, k int) int {
			return cmp.Compare(a.distance(list[0].X, list[i].X), a.distance(list[0].X, list[k].X))
		})
		bad := 0
		for _, i := range order[:min(outlierNear, len(order))] {
			bad += int(-list[i].Y[0].Value)
		}
		want := len(order) >= outlierNear && bad <= aliens
		o := &Outliers{Limit: -0.5}
		if got := o.includes(&a, list, 0); got != want {
			t.Fatalf("%d of the nearest are bad, outlier: %t", bad, got)
		}
		both[want]++
	}
	if both[true] < 20 || both[false] < 20 {
		t.Errorf("%d outliers and %d others are too few", both[true], both[false])
	}
}

// A steep slope has few outliers. A lost measurement on it is one.
func TestSlopesAreNoOutliers(t *testing.T) {
	for _, c := range []struct {
		name  string
		value func(x []float64) float64
	}{
		{"exponential", func(x []float64) float64 { return math.Exp(10*x[0] + 6*x[1]) }},
		{"logarithmic scale", func(x []float64) float64 { return math.Pow(10, 6*math.Hypot(x[0]-0.3, x[1]-0.4)) }},
		{"pole", func(x []float64) float64 { return 1 / (0.01 + apart(x, []float64{0.9, 0.9})) }},
	} {
		a := builder{space: labtest.Parse(t, labtest.Square), seed: 3, objectives: 1}
		found := 0
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, 8))
			var list []Result
			for i := range 40 {
				x := []float64{rng.Float64(), rng.Float64()}
				list = append(list, Result{Trial: i, X: x, Feasible: true, Y: []Measure{{Value: -c.value(x), Count: 1}}})
			}
			found += len(a.outliers(list).Results)
			best := 0 // others may be among bad ones
			for i := range list {
				if list[i].Y[0].Value > list[best].Y[0].Value {
					best = i
				}
			}
			list[best].Y[0].Value = -1e30
			if o := a.outliers(list); !slices.Contains(o.Results, best) {
				t.Errorf("%s: a lost measurement is no outlier of %v", c.name, o)
			}
		}
		if found > 4 {
			t.Errorf("%s: a slope has %d outliers of 800", c.name, found)
		}
	}
}

func apart(x, y []float64) float64 { return (x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1]) }
