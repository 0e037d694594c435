package learnerstest

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/learners"
)

// Weights tests that a fit with integer weights is the fit of rows that occur as often, up to
// tolerance relative to the largest output. A weight may be 0. The estimator must use all rows in
// every step, and the centres must span them. signs says that the targets must be ±1.
func Weights(t *testing.T, e learners.Estimator, signs bool, tolerance float64) {
	t.Helper()
	train, test := Data(t, rows, 2, trainSeed, signs), Data(t, 50, 2, testSeed, signs)
	weights := make([]float64, rows)
	var often []int
	for i := range weights {
		weights[i] = float64((i * 7) % 4)
		often = append(often, slices.Repeat([]int{i}, int(weights[i]))...)
	}
	y := make([]float64, 0, 2*len(often))
	for _, i := range often {
		y = append(y, train.Targets()[2*i:][:2]...)
	}
	repeated := Memory(t, train.Rows().Select(often), y, 2)
	want := predict(t, fit(t, e, repeated, learners.Options{Seed: 5}), test)
	plain := predict(t, fit(t, e, train, learners.Options{Seed: 5}), test)
	largest := 0.0
	for _, v := range want {
		largest = max(largest, math.Abs(v))
	}
	apart := func(got []float64) float64 {
		most := 0.0
		for i, v := range got {
			most = max(most, math.Abs(v-want[i])/largest)
		}
		return most
	}
	for _, factor := range []float64{1, 0.125, 1e300} { // only ratios matter
		scaled := make([]float64, rows)
		for i, w := range weights {
			scaled[i] = factor * w
		}
		got := predict(t, fit(t, e, train, learners.Options{Seed: 5, Weights: scaled}), test)
		if d := apart(got); !(d <= tolerance) {
			t.Errorf("weights times %g: outputs differ from those of repeated rows by %g of the largest", factor, d)
		}
		streamed := predict(t, fit(t, e, Streamed(train), learners.Options{Seed: 5, Weights: scaled}), test)
		same(t, "a stream with weights", streamed, got)
	}
	if d := apart(plain); !(d > 100*tolerance) {
		t.Errorf("without weights the outputs differ by %g only, so the test shows nothing", d)
	}
	wrongWeights(t, e, signs)
}

// wrongWeights tests the errors of weights.
func wrongWeights(t *testing.T, e learners.Estimator, signs bool) {
	t.Helper()
	for name, w := range map[string][]float64{
		"too few": {1, 2}, "all 0": make([]float64, rows),
		"negative": append(make([]float64, rows-1), -1), "not a number": append(make([]float64, rows-1), math.NaN()),
	} {
		var bad *learners.ParameterError
		if m, err := e.Fit(t.Context(), Data(t, rows, 2, trainSeed, signs), learners.Options{Weights: w}); m != nil || !errors.As(err, &bad) {
			t.Errorf("weights, %s: %v, %v", name, m, err)
		}
	}
}

// Copies tests that whole weights are copies of the rows, to the bit, and that an estimator
// refuses other weights.
func Copies(t *testing.T, e learners.Estimator) {
	t.Helper()
	train, test := Data(t, rows, 1, trainSeed, false), Data(t, 50, 1, testSeed, false)
	weights, often, y := make([]float64, rows), []int{}, []float64{}
	for i := range weights {
		weights[i] = float64(i % 3)
		for range i % 3 {
			often, y = append(often, i), append(y, train.Targets()[i])
		}
	}
	o := learners.Options{Seed: 5}
	want := predict(t, fit(t, e, Memory(t, train.Rows().Select(often), y, 1), o), test)
	o.Weights = weights
	same(t, "weights", predict(t, fit(t, e, train, o), test), want)
	same(t, "a stream with weights", predict(t, fit(t, e, Streamed(train), o), test), want)
	weights[1] = 0.5
	var bad *learners.ParameterError
	if m, err := e.Fit(t.Context(), train, o); m != nil || !errors.As(err, &bad) {
		t.Errorf("a weight of 0.5: %v, %v, want a *ParameterError", m, err)
	}
	wrongWeights(t, e, false)
}
