package data

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/gp/kernel"
)

func TestFromSlices(t *testing.T) {
	x := [][]float64{{1, 2}, {3, 4}, {5, 6}}
	m, err := FromSlices(x, []float64{7, 8, 9})
	if err != nil {
		t.Fatal(err)
	}
	p, ok := m.Rows().(*kernel.Points[float64])
	if !ok || m.Dim() != 2 || m.Outputs() != 1 {
		t.Fatalf("%T, d = %d, c = %d", m.Rows(), m.Dim(), m.Outputs())
	}
	for i := range x {
		if diff := cmp.Diff(x[i], p.Row(i)); diff != "" {
			t.Error(diff)
		}
	}
	x[0][0] = 10
	if p.Row(0)[0] != 1 {
		t.Error("the inputs were not copied")
	}
	if m, err := FromSlices(x, nil); err != nil || m.Outputs() != 0 || m.Len() != 3 {
		t.Errorf("without targets: %v", err)
	}
	for name, bad := range map[string]struct {
		x [][]float64
		y []float64
	}{
		"no row":             {nil, nil},
		"no column":          {[][]float64{{}}, []float64{1}},
		"a ragged row":       {[][]float64{{1, 2}, {3}}, []float64{1, 2}},
		"too few targets":    {[][]float64{{1}, {2}}, []float64{1}},
		"an infinite target": {[][]float64{{1}}, []float64{math.Inf(1)}},
	} {
		if _, err := FromSlices(bad.x, bad.y); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
