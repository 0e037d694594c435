package learners_test

import (
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

func TestCopies(t *testing.T) {
	for _, c := range []struct {
		weights []float64
		want    []int
	}{
		{nil, []int{0, 1, 2, 3}},
		{[]float64{2, 0, 1, 3}, []int{0, 0, 2, 3, 3, 3}},
		{[]float64{0, 0, 2, 0}, []int{2, 2}},
		{[]float64{0.5, 0.5, 0, 0.5}, []int{0, 1, 3}},
		{[]float64{0.5, 0, 1, 1.5}, []int{0, 2, 3}},
		{[]float64{1e300, 0, 1e300, 2e300}, []int{0, 2, 3}}, // only ratios count
		{[]float64{0.1, 0.1, 0.1, 3}, []int{3, 3, 3, 3}},
	} {
		copies := data.NewCopies(c.weights, 4)
		got := make([]int, copies.Len())
		for v := range got {
			got[v] = copies.Row(v)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("copies for the weights %v are %v, want %v", c.weights, got, c.want)
		}
	}
}

// Repeated rows of a stream are those in memory, for any size of blocks.
func TestSubsetRepeats(t *testing.T) {
	const n = 3000
	all := learnerstest.Data(t, n, 1, 1, false)
	var rows []int
	for i := range n {
		rows = append(rows, slices.Repeat([]int{i}, i*i%4)...)
	}
	want, err := data.Subset(all, rows)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := data.Subset(learnerstest.Streamed(all), rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 2, 7, 1023, 5000} {
		pairs, err := stream.OpenPairs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var y []float64
		for len(y) < len(rows) {
			b, err := pairs.Next(t.Context(), size, nil)
			if err != nil {
				t.Fatal(err)
			}
			y = append(y, b.Y...)
		}
		if !slices.Equal(y, want.(*data.Memory).Targets()) {
			t.Errorf("blocks of %d rows differ from those in memory", size)
		}
		pairs.Close()
	}
	if _, err := data.Subset(all, []int{1, 1, 0}); err == nil {
		t.Error("rows that decrease are accepted")
	}
}
