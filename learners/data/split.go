package data

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/internal/stream"
)

// Split divides the rows 0 … n−1 at random into parts with the given shares, which are
// positive and sum to 1. The indices of a part increase. Part k has round(n·(shares up to k)) −
// round(n·(shares before)) ≥ 1 rows. If classes is not nil, row i has the class classes[i] ≥ 0,
// and each part has about the same shares of classes. Equal arguments give equal parts.
func Split(n int, classes []int, seed uint64, shares ...float64) ([][]int, error) {
	whole := 0.0
	for _, s := range shares {
		if !(s > 0) {
			return nil, fmt.Errorf("dataset: a share of %v, want > 0", s)
		}
		whole += s
	}
	if math.Abs(whole-1) > 1e-9 {
		return nil, fmt.Errorf("dataset: the shares %v sum to %v, want 1", shares, whole)
	}
	order, err := deal(n, classes, seed)
	if err != nil {
		return nil, err
	}
	parts := make([][]int, len(shares))
	lo, sum := 0, 0.0
	for k, share := range shares {
		sum += share
		hi := min(n, int(math.Round(sum*float64(n))))
		if k == len(shares)-1 {
			hi = n
		}
		if lo >= hi {
			return nil, fmt.Errorf("dataset: of %s a share of %v has none; give more rows, or no share for validation and test", countRows(n), share)
		}
		parts[k] = order.pick(lo, hi)
		lo = hi
	}
	return parts, nil
}

// Fold is one of k ways to hold out part of the rows. The indices increase.
type Fold struct{ Train, Test []int }

// KFold divides the rows 0 … n−1 at random into k test parts, 2 ≤ k ≤ n. Their sizes
// differ by at most one. If classes is not nil, row i has the class classes[i] ≥ 0, and every
// class is spread evenly over the folds. Equal arguments always give equal folds.
func KFold(n int, classes []int, k int, seed uint64) ([]Fold, error) {
	if k < 2 || k > n {
		return nil, fmt.Errorf("dataset: %d folds of %s, want 2 to the number of rows", k, countRows(n))
	}
	order, err := deal(n, classes, seed)
	if err != nil {
		return nil, err
	}
	folds := make([]Fold, k)
	for f := range folds {
		lo, hi := f*n/k, (f+1)*n/k
		folds[f].Test = order.pick(lo, hi)
		folds[f].Train = slices.Sorted(slices.Values(append(order.pick(0, lo), order.pick(hi, n)...)))
	}
	return folds, nil
}

// dealt is an order of rows in which any run is a fair sample.
type dealt []int32

// pick returns the rows at positions lo ≤ p < hi, sorted.
func (d dealt) pick(lo, hi int) []int {
	out := make([]int, 0, hi-lo)
	for _, i := range d[lo:hi] {
		out = append(out, int(i))
	}
	slices.Sort(out)
	return out
}

// deal shuffles the rows. With classes, each class is put in random order, and the k-th
// of its m rows is placed at about (k + ½)/m of the whole. A run of positions then has
// the classes in their shares, up to one row each.
func deal(n int, classes []int, seed uint64) (dealt, error) {
	if n < 1 || n > math.MaxInt32 {
		return nil, fmt.Errorf("dataset: %d rows to split", n)
	}
	perm := stream.NewPermutation(stream.Derive(seed, "split", 0), uint64(n))
	order := make(dealt, n)
	for i := range order {
		order[i] = int32(perm.At(uint64(i)))
	}
	if classes == nil {
		return order, nil
	}
	sizes := map[int]int{}
	for _, c := range classes {
		if c < 0 {
			return nil, fmt.Errorf("dataset: class %d, want ≥ 0", c)
		}
		sizes[c]++
	}
	seen := map[int]int{}
	place := make([]float64, n)
	for _, i := range order {
		c := classes[i]
		place[i] = (float64(seen[c]) + 0.5) / float64(sizes[c])
		seen[c]++
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(place[a], place[b]) })
	return order, nil
}

// countRows returns "1 row", "2 rows".
func countRows(n int) string {
	if n == 1 {
		return "1 row"
	}
	return strconv.Itoa(n) + " rows"
}
