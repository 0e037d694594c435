package training

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// A fit with the settings from Used equals the original fit, to the bit.
func TestUsedSettingsMakeTheSameModel(t *testing.T) {
	table := open(t, waves(150), dataset.Options{Target: []string{"y"}})
	regression, err := Prepare(t.Context(), table, Split{}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	classes := open(t, labelled(), dataset.Options{})
	classification, err := Prepare(t.Context(), classes, Split{}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		algorithm string
		values    Values
		numbers   []string // no longer auto
	}{
		{"falkon", nil, []string{"length-scale", "lambda", "centers"}},
		{"falkon", Values{"kernel": "matern32", "sampler": "bless"}, []string{"length-scale", "lambda"}},
		{"log-falkon", nil, []string{"length-scale", "lambda", "centers"}},
		{"falkon", Values{"length-scale": "auto"}, []string{"length-scale", "lambda"}},
		{"log-falkon", Values{"length-scale": "auto", "centers": "50"}, []string{"length-scale", "lambda"}},
		{"sgdrf", Values{"relevance": "learned", "kernel": "matern52"}, []string{"length-scale"}},
		{"nystrom", Values{"relevance": "learned", "length-scale": "2"}, []string{"length-scale", "lambda"}},
		{"krr", nil, []string{"length-scale", "lambda"}},
		{"falkon", Values{"loss": "huber"}, []string{"lambda", "centers", "delta"}},
		{"sgdrf", Values{"loss": "quantile"}, []string{"batch-size"}},
		{"nystrom", nil, []string{"lambda", "centers", "iterations"}},
		{"nystrom", Values{"solver": "sgd"}, []string{"lambda", "batch-size", "iterations"}},
		{"nystrom", Values{"solver": "gradient"}, []string{"lambda", "iterations"}},
		{"landweber", nil, []string{"length-scale"}},
		{"sgdrf", nil, []string{"length-scale", "random-features", "batch-size", "step-scale", "features"}},
		{"sgdrf", Values{"batch-size": "10"}, []string{"step-scale"}},
		{"avgsgd", Values{"random-features": "32", "passes": "1"}, []string{"features", "length-scale"}},
		{"doublyonline", nil, []string{"step-size"}},
	} {
		d := regression
		if c.algorithm == "log-falkon" {
			d = classification
		}
		p, err := NewProblem(t.Context(), d, 1)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Find(c.algorithm)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Learn(t.Context(), c.values, d.Train, nil, &p, 1, 0); err != nil {
			t.Fatal(err)
		}
		model := fitted(t, a, c.values, p, d)
		v := a.Used(c.values, p, model)
		for _, name := range c.numbers {
			if v[name] == Auto || v[name] == "" {
				t.Errorf("%s %v: %s is %q", c.algorithm, c.values, name, v[name])
			}
		}
		want, got := outputs(t, model, d), outputs(t, fitted(t, a, v, p, d), d)
		for i := range want {
			if math.Float64bits(want[i]) != math.Float64bits(got[i]) {
				t.Errorf("%s %v: with %v row %d has %v, want %v", c.algorithm, c.values, v, i, got[i], want[i])
				break
			}
		}
	}
}

// waves returns n rows of a smooth function of two inputs.
func waves(n int) string {
	var b strings.Builder
	b.WriteString("x,z,y\n")
	for i := range n {
		x, z := float64(i)/10, math.Sqrt(float64((i*37)%n))
		b.WriteString(num(x) + "," + num(z) + "," + strconv.FormatFloat(math.Sin(x)+z, 'g', -1, 64) + "\n")
	}
	return b.String()
}

func fitted(t *testing.T, a Algorithm, v Values, p Problem, d *Data) learners.Model {
	t.Helper()
	e, err := a.Estimator(v, p)
	if err != nil {
		t.Fatalf("%s %v: %v", a.Name, v, err)
	}
	m, err := e.Fit(t.Context(), d.Train, learners.Options{Seed: 1})
	if err != nil {
		t.Fatalf("%s %v: %v", a.Name, v, err)
	}
	return m
}

func outputs(t *testing.T, m learners.Model, d *Data) []float64 {
	t.Helper()
	out := make([]float64, d.Train.Len()*m.Outputs())
	if err := m.Predict(t.Context(), out, d.Train); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPositiveValuesAreNotZero(t *testing.T) {
	p := Problem{Rows: 100, Dim: 2, Outputs: 1, Task: data.Classification, MedianDistance: 1}
	for _, a := range Algorithms() {
		for _, x := range a.Parameters {
			if x.Kind == Choice {
				continue
			}
			_, err := a.Estimator(Values{x.Name: "0"}, p)
			auto := x.Positive || x.Name == "length-scale"
			if (err != nil) != auto {
				t.Errorf("%s: %s = 0 is %v", a.Name, x.Name, err)
			}
			// A parameter with an automatic value must not take 0 for it, unless 0 is a
			// value.
			if x.Auto != "" && err == nil && x.Name != "lambda" {
				t.Errorf("%s: %s = 0 stands for auto", a.Name, x.Name)
			}
		}
	}
}

func TestMeasuresOfProbabilities(t *testing.T) {
	for _, a := range Algorithms() {
		for _, name := range learners.MeasureNames() {
			probabilities := name == "log-loss" || name == "brier" || name == "calibration-error"
			if err := a.CheckMeasure(name); (err != nil) != (probabilities && a.Name != "log-falkon") {
				t.Errorf("%s, %s: %v", a.Name, name, err)
			}
		}
	}
}
