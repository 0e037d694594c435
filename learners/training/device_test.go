//go:build cuda && cgo && linux

package training

import (
	"testing"

	"github.com/bkbtuner/bkb/internal/gpu/cudatest"
	"github.com/bkbtuner/bkb/learners"
)

func TestMain(m *testing.M) { cudatest.Main(m) }

// A model with a full metric, fitted on a device, predicts what one of the CPU does, on either.
func TestDeviceFitsFullMetric(t *testing.T) {
	d, a := rotated(t, 200, 3, 1), falkonAlgorithm
	p := problemOf(t, d.Train)
	p.Metric = &Metric{L: []float64{1, 0.5, 0, 0.5, 2, 0.3, 0, 0.3, 0.1}}
	e, err := a.Estimator(Values{"metric": "full", "centers": "40", "lambda": "1e-3"}, p)
	if err != nil {
		t.Fatal(err)
	}
	fit := func() learners.Model {
		m, err := e.Fit(t.Context(), d.Train, learners.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	outputs := func(m learners.Model) []float64 {
		out := make([]float64, d.Test.Len())
		if err := m.Predict(t.Context(), out, d.Test); err != nil {
			t.Fatal(err)
		}
		return out
	}
	there := fit()
	want := outputs(there)
	cudatest.Use(t, "cuda:0")
	here := fit()
	for name, got := range map[string][]float64{"a fit on the device": outputs(here), "a model of the CPU": outputs(there)} {
		if e := cudatest.Distance(got, want); !(e > 0 && e <= 1e-5) {
			t.Errorf("%s: a distance of %g, want at most 1e-5, and not the bits of the CPU", name, e)
		}
	}
}
