package model

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The best results are those of a stable sort, also where values are equal or infinite.
func TestBestAreThoseOfAStableSort(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var list []Result
		var all []member
		n := rng.IntN(120)
		for i := range n {
			r := Result{Trial: 3*n - i, Feasible: rng.IntN(6) > 0}
			if rng.IntN(4) > 0 {
				v := math.Floor(rng.NormFloat64() * 4)
				switch rng.IntN(20) {
				case 0:
					v = math.Inf(1)
				case 1:
					v = math.Inf(-1)
				}
				r.Y = []Measure{{Value: v}}
			}
			list = append(list, r)
			for row := range rng.IntN(3) { // none for results that teach nothing
				all = append(all, member{i, row, len(all)})
			}
		}
		var want []member
		for _, m := range all {
			if r := list[m.of]; r.Y != nil && r.Feasible && m.row == 0 {
				want = append(want, m)
			}
		}
		slices.SortStableFunc(want, func(a, c member) int {
			return cmp.Compare(list[c.of].Y[0].Value, list[a.of].Y[0].Value)
		})
		want = want[:min(len(want), bestAlways)]
		if got := (&history{members: all}).best(list, 0); !slices.Equal(got, want) {
			t.Fatalf("seed %d: best are %v, want %v", seed, got, want)
		}
	}
}
