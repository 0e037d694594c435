package prune

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The ranking agrees with a sorted slice. Few different numbers make ties, and a long run
// of them makes blocks split and empty.
func TestRankingAgreesWithASortedSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ranking
		var sorted []float64
		different := rapid.SampledFrom([]int{3, 50, 100_000}).Draw(t, "different")
		numbers := rapid.SliceOfN(rapid.IntRange(-different, different), 0, 200).Draw(t, "numbers")
		for len(numbers) > 0 && len(numbers) < 6000 && rapid.Bool().Draw(t, "double") {
			for _, x := range numbers {
				numbers = append(numbers, (x*7919+13)%(different+1))
			}
		}
		for _, x := range numbers {
			v := float64(x)
			if x == different {
				v = math.Inf(1)
			}
			r.add(v)
			sorted = append(sorted, v)
		}
		slices.Sort(sorted)
		for len(sorted) > 0 && rapid.IntRange(0, 9).Draw(t, "more") > 0 {
			for range len(sorted)/3 + 1 {
				at := len(sorted) / 2
				r.remove(sorted[at])
				sorted = slices.Delete(sorted, at, at+1)
			}
			x := float64(rapid.IntRange(-different, different).Draw(t, "x"))
			want, _ := slices.BinarySearch(sorted, x)
			if got := r.below(x); got != want || r.len() != len(sorted) {
				t.Fatalf("%d of %d numbers are below %g, want %d of %d", got, r.len(), x, want, len(sorted))
			}
		}
		r.remove(math.Pi) // not there
		if r.len() != len(sorted) {
			t.Fatalf("%d numbers, want %d", r.len(), len(sorted))
		}
	})
}

func TestQuantileAgreesWithSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := quantile{part: rapid.Float64Range(0.001, 0.999).Draw(t, "part")}
		var all []float64
		for _, x := range rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-2, 2), rapid.SampledFrom([]float64{0, 1, math.Inf(1), math.MaxFloat64, -math.MaxFloat64})), 1, 300).Draw(t, "numbers") {
			q.add(x)
			all = append(all, x)
			slices.Sort(all)
			at := q.part * float64(len(all)-1)
			k := int(at)
			want := all[k]
			if f := at - float64(k); f > 0 && all[k] != all[k+1] {
				want = all[k]*(1-f) + all[k+1]*f
			}
			if got := q.value(); got != want || q.len() != len(all) {
				t.Fatalf("got %g of %d numbers, want %g of %d", got, q.len(), want, len(all))
			}
		}
	})
}
