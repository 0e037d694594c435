package learnerstest

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

// LeaveOneOut tests that every output of e is that of the solution without its row, up to
// tolerance, for equal rows and for weights of which one is 0. without computes the outputs
// at row i of that solution in another way. The weights s have the mean 1.
func LeaveOneOut(t *testing.T, e interface {
	LeaveOneOut(context.Context, data.Source, learners.Options) ([]float64, error)
}, train *data.Memory, tolerance float64, without func(s []float64, i int) []float64,
) {
	t.Helper()
	n, c := train.Len(), train.Outputs()
	equal, weights, sum := slices.Repeat([]float64{1}, n), make([]float64, n), 0.0
	for i := range weights {
		weights[i] = float64((i*7)%5) / 2
		sum += weights[i]
	}
	for i := range weights {
		weights[i] *= float64(n) / sum
	}
	for name, s := range map[string][]float64{"equal rows": equal, "weights": weights} {
		o := learners.Options{Seed: 1}
		if name == "weights" {
			o.Weights = s
		}
		got, err := e.LeaveOneOut(t.Context(), train, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for j, want := range without(s, i) {
				if g := got[c*i+j]; !(math.Abs(g-want) <= tolerance) {
					t.Errorf("%s, row %d: %.12g, a solution without it %.12g", name, i, g, want)
				}
			}
		}
	}
}
