package main

import (
	"testing"

	"github.com/bkbtuner/bkb/tuner/autotune"
)

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		best, theory float64
		want         string
	}{
		{0, 0.5, "; its validation rmse is 100% below that of theory's settings"},
		{0.5, 0.504, "; its validation rmse is 0.79% below that of theory's settings"},
		{0.25, 1, "; its validation rmse is 75% below that of theory's settings"},
		{5, 2, "; its validation rmse is 150% above that of theory's settings"},
		{1, 0, ""},
	} {
		r := tuned{Measure: "rmse", Best: &autotune.Fitted{Validation: c.best}, Theory: &autotune.Fitted{Validation: c.theory}}
		if got := r.verdict(); got != c.want {
			t.Errorf("%v, theory %v: %q, want %q", c.best, c.theory, got, c.want)
		}
	}
}

func TestSuccessor(t *testing.T) {
	for name, want := range map[string]string{"a": "a-2", "a-2": "a-3", "a-9": "a-10", "falkon-2024": "falkon-2024-2", "a-b": "a-b-2", "a-1": "a-1-2", "-7": "-7-2"} {
		if got := successor(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
