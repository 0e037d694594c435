package data

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Splits and folds are partitions, increasing and reproducible.
func TestSplitsArePartitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(20, 500).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		var classes []int
		if rapid.Bool().Draw(t, "stratified") {
			for range n {
				classes = append(classes, rapid.IntRange(0, 3).Draw(t, "class"))
			}
		}
		shares := []float64{0.6, 0.25, 0.15}
		parts, err := Split(n, classes, seed, shares...)
		again, _ := Split(n, classes, seed, shares...)
		if err != nil || !cmp.Equal(parts, again) {
			t.Fatalf("%v, %v, %v", err, parts, again)
		}
		partition(t, n, parts...)
		for k, part := range parts {
			if d := float64(len(part)) - shares[k]*float64(n); math.Abs(d) > 1 {
				t.Fatalf("part %d has %d of %d", k, len(part), n)
			}
			balanced(t, classes, part, shares[k])
		}
		k := rapid.IntRange(2, 10).Draw(t, "k")
		folds, err := KFold(n, classes, k, seed)
		if err != nil {
			t.Fatal(err)
		}
		var tests [][]int
		for _, f := range folds {
			partition(t, n, f.Train, f.Test)
			tests = append(tests, f.Test)
			balanced(t, classes, f.Test, 1/float64(k))
		}
		partition(t, n, tests...)
	})
}

func partition(t *rapid.T, n int, parts ...[]int) {
	var all []int
	for _, p := range parts {
		if !slices.IsSorted(p) || len(p) == 0 {
			t.Fatalf("part %v", p)
		}
		all = append(all, p...)
	}
	slices.Sort(all)
	for i, r := range all {
		if i != r || len(all) != n {
			t.Fatalf("%v is no partition of %d rows", parts, n)
		}
	}
}

// balanced checks that a part has its share of every class, up to the deviation that
// interleaving four classes can cause.
func balanced(t *rapid.T, classes, part []int, share float64) {
	have, all := map[int]float64{}, map[int]float64{}
	for _, c := range classes {
		all[c]++
	}
	if classes != nil {
		for _, i := range part {
			have[classes[i]]++
		}
	}
	for c, n := range all {
		if math.Abs(have[c]-share*n) > 4 {
			t.Fatalf("class %d: %v of %v in a share of %v", c, have[c], n, share)
		}
	}
}

func TestSplitErrors(t *testing.T) {
	for _, shares := range [][]float64{{0.5}, {0.5, 0.6}, {1.5, -0.5}, {math.NaN(), 1}, nil} {
		if _, err := Split(10, nil, 1, shares...); err == nil {
			t.Errorf("%v: no error", shares)
		}
	}
	if _, err := Split(3, nil, 1, 0.99, 0.01); err == nil {
		t.Error("empty part: no error")
	}
	if _, err := KFold(3, nil, 4, 1); err == nil {
		t.Error("4 folds of 3: no error")
	}
	if _, err := Split(2, []int{0, -1}, 1, 0.5, 0.5); err == nil {
		t.Error("class −1: no error")
	}
}

// Logs record only the seed of a split, so splits must never change.
func TestSplitGolden(t *testing.T) {
	parts, err := Split(12, nil, 42, 0.5, 0.25, 0.25)
	if got := fmt.Sprint(parts, err); got != splitGolden {
		t.Errorf("got  %s\nwant %s", got, splitGolden)
	}
}
