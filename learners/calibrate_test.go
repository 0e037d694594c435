package learners_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

// identity is f(x) = x for c coordinates.
func identity(t *testing.T, c int) *learners.Linear {
	t.Helper()
	w := make([]float64, c*c)
	for j := range c {
		w[j*c+j] = 1
	}
	m, err := learners.NewLinear(nil, c, w, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// scores returns n scores with classes by logistic functions of them.
func scores(t *testing.T, n int, slope, offset []float64, seed uint64) *data.Memory {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	c := len(slope)
	x, y := make([]float64, n*c), make([]float64, n*c)
	for i := range x {
		x[i], y[i] = rng.NormFloat64(), -1
		if rng.Float64() < 1/(1+math.Exp(-slope[i%c]*x[i]-offset[i%c])) {
			y[i] = 1
		}
	}
	return learnerstest.Memory(t, kernel.NewPoints(n, c, x), y, c)
}

func logits(t *testing.T, m learners.Model, x ...float64) []float64 {
	t.Helper()
	out := make([]float64, len(x))
	if err := m.Predict(context.Background(), out, kernel.FromRows(kernel.NewPoints(len(x)/m.Dim(), m.Dim(), x))); err != nil {
		t.Fatal(err)
	}
	return out
}

// Platt scaling recovers the logistic functions of the classes.
func TestCalibrateRecoversProbabilities(t *testing.T) {
	slope, offset := []float64{2, 0.5, -1}, []float64{-1, 0.3, 2}
	m, err := learners.Calibrate(t.Context(), identity(t, 3), identity(t, 3), scores(t, 40_000, slope, offset, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if learners.LinkOf(m) != learners.Logistic {
		t.Errorf("the link is %q", learners.LinkOf(m))
	}
	at0, at1 := logits(t, m, 0, 0, 0), logits(t, m, 1, 1, 1)
	for j := range slope {
		if math.Abs(at0[j]-offset[j]) > 0.06 || math.Abs(at1[j]-at0[j]-slope[j]) > 0.06 {
			t.Errorf("output %d: slope %.3f and offset %.3f, want %g and %g", j, at1[j]-at0[j], at0[j], slope[j], offset[j])
		}
	}
}

// The fit is a stationary point of the loss with Platt's targets, weights are repeated
// rows, and classes that scores separate give finite logits.
func TestCalibrateIsStationary(t *testing.T) {
	const n = 60
	held := scores(t, n, []float64{1}, []float64{0.5}, 2)
	x := held.Rows().(*kernel.Points[float64])
	weights := make([]float64, n)
	var often []int
	var y []float64
	for i := range weights {
		weights[i] = float64(i % 4)
		for range i % 4 {
			often, y = append(often, i), append(y, held.Targets()[i])
		}
	}
	repeated := learnerstest.Memory(t, x.Select(often), y, 1)
	one, err := learners.Calibrate(t.Context(), identity(t, 1), identity(t, 1), held, weights)
	if err != nil {
		t.Fatal(err)
	}
	two, err := learners.Calibrate(t.Context(), identity(t, 1), identity(t, 1), repeated, nil)
	if err != nil {
		t.Fatal(err)
	}
	learnerstest.RequireClose(t, "weights", logits(t, one, -1, 0, 3), logits(t, two, -1, 0, 3), 1e-9)
	positive := 0.0
	for _, v := range y {
		positive += (v + 1) / 2
	}
	ga, gb := 0.0, 0.0
	for i, v := range logits(t, two, repeated.Rows().(*kernel.Points[float64]).Data()...) {
		target := 1 / (float64(len(y)) - positive + 2)
		if y[i] > 0 {
			target = (positive + 1) / (positive + 2)
		}
		e := 1/(1+math.Exp(-v)) - target
		ga, gb = ga+e*x.Row(often[i])[0], gb+e
	}
	if math.Abs(ga)+math.Abs(gb) > 1e-3 {
		t.Errorf("the gradient is %g, %g", ga, gb)
	}
	apart := learnerstest.Memory(t, kernel.NewPoints(4, 1, []float64{-2, -1, 1, 2}), []float64{-1, -1, 1, 1}, 1)
	sure, err := learners.Calibrate(t.Context(), identity(t, 1), identity(t, 1), apart, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := logits(t, sure, -2, 2); !(v[0] < -0.5 && v[0] > -20 && v[1] > 0.5 && v[1] < 20) {
		t.Errorf("logits of separate classes: %v", v)
	}
	equal := learnerstest.Memory(t, kernel.NewPoints(4, 1, []float64{1, 1, 1, 1}), []float64{-1, 1, 1, 1}, 1)
	same, err := learners.Calibrate(t.Context(), identity(t, 1), identity(t, 1), equal, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := logits(t, same, 1)[0]; math.Abs(v-math.Log(41.0/19)) > 1e-3 { // the mean target is (3·4/5 + 1/3)/4
		t.Errorf("logit of equal scores: %v", v)
	}
}

func TestCalibrateRefuses(t *testing.T) {
	held := scores(t, 50, []float64{1}, []float64{0}, 3)
	var bad *learners.DataError
	if _, err := learners.Calibrate(t.Context(), identity(t, 1).WithLink(learners.Logistic), identity(t, 1).WithLink(learners.Logistic), held, nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), "already") {
		t.Errorf("probabilities: %v", err)
	}
	one := learnerstest.Memory(t, held.Rows(), slices.Repeat([]float64{1}, 50), 1)
	if _, err := learners.Calibrate(t.Context(), identity(t, 1), identity(t, 1), one, nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), "one class only") {
		t.Errorf("one class: %v", err)
	}
}

// A file keeps the calibration.
func TestCalibratedFile(t *testing.T) {
	m, err := learners.Calibrate(t.Context(), identity(t, 2), identity(t, 2), scores(t, 100, []float64{2, 1}, []float64{-1, 1}, 4), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := (&learners.File{Model: m}).Write(&b); err != nil {
		t.Fatal(err)
	}
	text := bytes.Clone(b.Bytes())
	f, err := learners.Read(&b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if learners.LinkOf(f.Model) != learners.Logistic || !slices.Equal(logits(t, f.Model, 0.3, -0.7), logits(t, m, 0.3, -0.7)) {
		t.Errorf("the model that is read has link %q and logits %v, want %v", learners.LinkOf(f.Model), logits(t, f.Model, 0.3, -0.7), logits(t, m, 0.3, -0.7))
	}
	if !bytes.Contains(text, []byte(`"link":"calibrated"`)) {
		t.Error("a program without calibration would read the file")
	}
}
