package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
)

// Where intervals of suggestions have been too wide, a frozen model still shows the standard
// deviation of the mean that the model has. Outcomes of suggestions say little about places
// far from them.
func TestFrozenIsNotNarrowed(t *testing.T) {
	_, e := worked(t, nil, 1, 30, labtest.Wavy)
	for _, x := range [][]float64{{0.5, 0.5}, {0, 1}, {1, 0}} {
		for _, size := range []float64{1e-3, 10} {
			e.Calibration = &Calibration{low: -1, high: 1, errors: slices.Repeat([]float64{size}, poorFrom)}
			got := e.Freeze().At(at(x...))[0]
			want, _ := e.Past().Explain(x, nil)
			if got.StdDev[0] != want.StdDev[0] {
				t.Errorf("errors of %v: at %v ±%v is shown, want ±%v", size, x, got.StdDev[0], want.StdDev[0])
			}
			if outcome := e.Past().Outcome(x); (got.Noise[0] > 0) != (outcome > got.StdDev[0]) {
				t.Errorf("errors of %v: at %v the noise is %v, where outcomes have ±%v and the mean ±%v", size, x, got.Noise[0], outcome, got.StdDev[0])
			}
		}
	}
}

// Constant outcomes leave the mean uncertain elsewhere, and have no noise.
func TestConstantOutcomesAreUncertain(t *testing.T) {
	_, e := worked(t, nil, 1, 12, func([]float64, *rand.Rand) []float64 { return []float64{3} })
	got := e.Freeze().At(at(0.01, 0.99))[0]
	if math.Abs(got.Mean[0]-3) > 1e-6 || !(got.StdDev[0] > 0) || got.Noise[0] != 0 {
		t.Errorf("a mean of %v ± %v with noise %v", got.Mean, got.StdDev, got.Noise)
	}
}
