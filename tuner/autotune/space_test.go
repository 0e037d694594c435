package autotune

import (
	"fmt"
	"testing"

	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/learners/training"
)

// Spaces are valid for n = 1 … 10⁷ and for scales of any unit; starts are in them;
// the starts, the corners and the middle make valid estimators.
func TestSpaces(t *testing.T) {
	for _, a := range training.Algorithms() {
		for _, n := range []int{1, 2, 3, 10, 47, 100, 1000, 20_000, 1_000_000, 10_000_000} {
			for _, median := range []float64{1e-9, 1, 3.14159265, 1e9} {
				p := training.Problem{Rows: n, Dim: 4, Outputs: 1, Task: dataset.Regression, MedianDistance: median}
				if a.Name == "log-falkon" {
					p.Task = dataset.Classification
				}
				checkSpace(t, &Tuning{algorithm: a, problem: p})
			}
		}
	}
}

func checkSpace(t *testing.T, tn *Tuning) {
	t.Helper()
	p := tn.problem
	where := fmt.Sprintf("%s, n = %d, median %g", tn.algorithm.Name, p.Rows, p.MedianDistance)
	dims, err := theory.Space(tn.algorithm.Name, theory.Data{Rows: p.Rows, MedianDistance: p.MedianDistance})
	if err == nil {
		err = tn.build(dims)
	}
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	configs := tn.Starts()
	for _, u := range []float64{0, 0.5, 1} {
		at := make([]float64, tn.space.Dim())
		for i := range at {
			at[i] = u
		}
		c, err := tn.space.Decode(at)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		configs = append(configs, c)
	}
	for _, c := range configs {
		if err := tn.space.Validate(c); err != nil {
			t.Errorf("%s: %s: %v", where, c, err)
		}
		if _, err := tn.algorithm.Estimator(Values(c), p); err != nil {
			t.Errorf("%s: %s: %v", where, c, err)
		}
	}
	if len(configs) != 5 || configs[0].Equal(configs[1]) {
		t.Errorf("%s: starts %v", where, configs[:2])
	}
}

// What is fixed is not searched, and stands in every configuration.
func TestFixed(t *testing.T) {
	a, err := training.Find("sgdrf")
	if err != nil {
		t.Fatal(err)
	}
	p := training.Problem{Rows: 1000, Dim: 4, Outputs: 1, Task: dataset.Regression, MedianDistance: 2}
	all, some := &Tuning{algorithm: a, problem: p}, &Tuning{algorithm: a, problem: p}
	some.options.Fixed = training.Values{"length-scale": "auto", "passes": "3", "lambda": "1e-06", "kernel": "matern12"}
	checkSpace(t, all)
	dims, err := theory.Space("sgdrf", theory.Data{Rows: 1000, MedianDistance: 2})
	if err == nil {
		err = some.build(dims)
	}
	if err != nil {
		t.Fatal(err)
	}
	if all.steps != 20 || some.steps != 3 || some.Searched() != all.Searched()-2 || len(some.starts) != 1 {
		t.Errorf("steps %d, %d; searched %d, %d; starts %v", all.steps, some.steps, all.Searched(), some.Searched(), some.starts)
	}
	v := Values(some.starts[0])
	for name, want := range some.options.Fixed {
		if v[name] != want {
			t.Errorf("%s = %q, want %q", name, v[name], want)
		}
	}
}
