package autotune_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner/autotune"
)

// refitted runs trials of a new study and fits the best again.
func refitted(t *testing.T, tn *autotune.Tuning, trials int) *autotune.Fitted {
	t.Helper()
	svc := newStudy(t, tn, trials, nil)
	work(t.Context(), t, tn, svc, "w")
	best, ok, err := tn.Best(t.Context(), svc, "s")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	f, err := tn.Refit(t.Context(), best, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Rows with the weight 0 have no effect on errors and fits, however wrong they are.
func TestWeightsOfRows(t *testing.T) {
	var b strings.Builder
	b.WriteString("x,w,y\n")
	rng := stream.New(6)
	for i := range 200 {
		x, w := rng.Float64(), 1.0
		y := math.Sin(5*x) + 0.05*rng.NormFloat64()
		if i%4 == 0 {
			w, y = 0, 50*rng.NormFloat64()
		}
		fmt.Fprintf(&b, "%v,%v,%v\n", x, w, y)
	}
	d := prepared(t, b.String(), dataset.Options{Target: []string{"y"}, Weights: "w"})
	known := knownOf(t, d)
	for _, c := range []struct {
		algorithm string
		folds     int
	}{{"falkon", 1}, {"falkon", 4}, {"falkon", known.Len()}, {"krr", known.Len()}} {
		tn := tuning(t, c.algorithm, d, autotune.Options{Seed: 1, Folds: c.folds})
		f := refitted(t, tn, 6)
		if f.Validation > 0.15 || f.Test[0].Value > 0.15 {
			t.Errorf("%s, %d folds: validation error %v, test error %v with weights", c.algorithm, c.folds, f.Validation, f.Test[0].Value)
		}
	}
}

// A sample without a weight above 0 is refused before any trial, and so are the rows of a
// calibration that lack a class. The errors name the option.
func TestRowsThatDoNotCount(t *testing.T) {
	var b strings.Builder
	b.WriteString("x,w,y\n")
	for i := range 40 {
		fmt.Fprintf(&b, "%v,1,%s\n", float64(i)/40, map[bool]string{true: "rare", false: "usual"}[i == 5])
		fmt.Fprintf(&b, "%v,0,rare\n", float64(i)/40)
	}
	rare := prepared(t, b.String(), dataset.Options{Target: []string{"y"}, Weights: "w"})
	for _, c := range []struct {
		name, algorithm string
		data            *training.Data
		o               autotune.Options
		option, text    string
	}{
		{"class", "krr", rare, autotune.Options{Calibrate: true}, "calibrate", `no validation row of the class "rare"`},
		{"class with folds", "krr", rare, autotune.Options{Calibrate: true, Folds: 3}, "calibrate", `no validation row of the class "rare"`},
		{"class weights", "krr", rare, autotune.Options{ClassWeights: "rare=0,usual=0", Folds: 3}, "weights", "rows outside fold 1"},
		{"class weights of one split", "krr", rare, autotune.Options{ClassWeights: "rare=0,usual=0"}, "weights", "training rows have the weight 0, so no trial could have an error; "},
		{"no copies", "avgsgd", wave(t, 40, true), autotune.Options{ClassWeights: "up=2.5"}, "class-weight", "takes copies of the rows"},
	} {
		a, err := training.Find(c.algorithm)
		if err != nil {
			t.Fatal(err)
		}
		_, err = autotune.New(t.Context(), a, c.data, c.o)
		option := (*autotune.OptionError)(nil)
		if !errors.As(err, &option) || option.Option != c.option || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q with the option %s", c.name, err, c.text, c.option)
		}
	}
}

// A class with a large weight is found more often.
func TestClassWeights(t *testing.T) {
	var b strings.Builder
	b.WriteString("x,y\n")
	rng := stream.New(7)
	for i := range 300 {
		class, x := "usual", rng.NormFloat64()
		if i%10 == 0 {
			class, x = "rare", x+1
		}
		fmt.Fprintf(&b, "%v,%s\n", x, class)
	}
	d := prepared(t, b.String(), dataset.Options{Target: []string{"y"}})
	y, err := learners.Targets(t.Context(), d.Test)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, weights := range []string{"", training.Balanced, "rare=1000"} {
		tn := tuning(t, "falkon", d, autotune.Options{Seed: 1, ClassWeights: weights, Fixed: training.Values{"lambda": "0.01"}})
		f := refitted(t, tn, 2)
		out := make([]float64, len(y))
		if err := f.File.Model.Predict(t.Context(), out, d.Test); err != nil {
			t.Fatal(err)
		}
		rare := data.Classes([]float64{-1}, 1)[0] // classes are in alphabetical order
		for _, k := range data.Classes(out, d.Test.Outputs()) {
			if k == rare {
				found[weights]++
			}
		}
	}
	if n := d.Test.Len(); !(found[""] < found[training.Balanced] && found[training.Balanced] < found["rare=1000"] && found["rare=1000"] > n*9/10) {
		t.Errorf("rows of the rare class found: %v of %d", found, n)
	}
	a, err := training.Find("falkon")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := autotune.New(t.Context(), a, d, autotune.Options{ClassWeights: "never=2"}); err == nil || !strings.Contains(err.Error(), `there is no class "never"`) {
		t.Errorf("an unknown class: %v", err)
	}
}

// A calibrated model has probabilities of low error, and about the same classes.
func TestCalibrate(t *testing.T) {
	d := wave(t, 200, true)
	known := knownOf(t, d)
	for _, c := range []struct {
		algorithm string
		folds     int
	}{{"falkon", 1}, {"falkon", known.Len()}, {"sgdrf", 3}} {
		scores := map[bool]map[string]float64{}
		for _, calibrate := range []bool{false, true} {
			tn := tuning(t, c.algorithm, d, autotune.Options{Seed: 1, Folds: c.folds, Calibrate: calibrate, Scores: !calibrate})
			f := refitted(t, tn, 4)
			if link := learners.LinkOf(f.File.Model); (link == learners.Logistic) != calibrate {
				t.Errorf("%s, %d folds: link %q", c.algorithm, c.folds, link)
			}
			scores[calibrate] = map[string]float64{}
			for _, s := range f.Test {
				scores[calibrate][s.Name] = s.Value
			}
		}
		if x := scores[true]["brier"]; !(x > 0 && x < 0.1) {
			t.Errorf("%s, %d folds: %v", c.algorithm, c.folds, scores)
		}
		if math.Abs(scores[true]["class-error"]-scores[false]["class-error"]) > 0.06 {
			t.Errorf("%s, %d folds: %v", c.algorithm, c.folds, scores)
		}
	}
	a, err := training.Find("log-falkon")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := autotune.New(t.Context(), a, d, autotune.Options{Calibrate: true}); err == nil || !strings.Contains(err.Error(), "log-falkon has probabilities already") {
		t.Errorf("an algorithm with probabilities: %v", err)
	}
	a, err = training.Find("falkon")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := autotune.New(t.Context(), a, wave(t, 50, false), autotune.Options{Calibrate: true}); err == nil || !strings.Contains(err.Error(), "the target is a number") {
		t.Errorf("a number: %v", err)
	}
}
