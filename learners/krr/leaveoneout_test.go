package krr_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

// Every output is that of a fit in which its row has the weight 0.
func TestLeaveOneOutIsAFitWithoutTheRow(t *testing.T) {
	const n, c = 30, 2
	train := learnerstest.Data(t, n, c, 3, false)
	k, err := kernel.NewMatern52(1.5)
	if err != nil {
		t.Fatal(err)
	}
	p := krr.Params{Kernel: k, Lambda: 1e-3}
	learnerstest.LeaveOneOut(t, p, train, 1e-8, func(s []float64, i int) []float64 {
		without, q := slices.Clone(s), p
		without[i] = 0
		q.Lambda *= n / (n - s[i]) // weights are divided by their mean
		m, err := q.Fit(t.Context(), train, learners.Options{Weights: without})
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float64, n*c)
		if err := m.Predict(t.Context(), out, train); err != nil {
			t.Fatal(err)
		}
		return out[c*i:][:c]
	})
	size := (*krr.SizeError)(nil)
	if _, err := (krr.Params{Kernel: k, MaxRows: n - 1}).LeaveOneOut(t.Context(), train, learners.Options{}); !errors.As(err, &size) {
		t.Errorf("too many rows: %v", err)
	}
}
