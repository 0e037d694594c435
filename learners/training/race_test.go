package training

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// The winner of a race has the least error within 1 %, and that of falkon is the lesser one of two
// fits made here. Classes have the logarithmic loss of all learners.
func TestRace(t *testing.T) {
	d := rotated(t, 150, 3, 1)
	ranked, measure, err := Race(t.Context(), d, Run{Options: learners.Options{Seed: 1}}, Racers())
	if err != nil || measure != "rmse" || len(ranked) != 3 {
		t.Fatalf("%v by %q: %v", ranked, measure, err)
	}
	p, err := NewProblem(t.Context(), d, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := math.Inf(1)
	for _, v := range []Values{{}, {"kernel": raceKernel, "length-scale": Auto}} {
		a := falkonAlgorithm
		if err := a.Learn(t.Context(), v, d.Train, nil, &p, 1, 0); err != nil {
			t.Fatal(err)
		}
		e, err := a.Estimator(v, p)
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.Fit(t.Context(), d.Train, learners.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		scores, err := Evaluate(t.Context(), m, d.Encoding, d.Validation, learners.Scoring{})
		if err != nil {
			t.Fatal(err)
		}
		want = min(want, scores[0].Value)
	}
	for _, c := range ranked {
		if c.Error < leastGain*ranked[0].Error {
			t.Errorf("%v has less error than the winner, %v", c, ranked[0])
		}
		if c.Name == "falkon" && math.Abs(c.Error-want) > 1e-9*want {
			t.Errorf("falkon has %g, want %g", c.Error, want)
		}
	}
	d, err = Prepare(t.Context(), open(t, labelled(), dataset.Options{}), Split{Validation: 0.3, Seed: 1}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]struct {
		measure string
		n       int
	}{"": {"log-loss", 4}, "class-error": {"class-error", 4}, "brier": {"brier", 1}} {
		ranked, measure, err := Race(t.Context(), d, Run{Measure: given, Options: learners.Options{Seed: 1}}, Racers())
		if err != nil || measure != want.measure || len(ranked) != want.n {
			t.Errorf("%q: %v by %q: %v", given, ranked, measure, err)
		}
		for _, c := range ranked {
			if !(c.Error >= 0 && c.Error < 2) {
				t.Errorf("%q: %v", given, c)
			}
		}
	}
}

// Given settings that need learning are learned for each learner that takes them.
func TestRaceOfGivenSettings(t *testing.T) {
	d := rotated(t, 150, 3, 1)
	for name, v := range map[string]Values{"metric": {"metric": "full", "kernel": "gaussian"}, "relevance": {"relevance": "learned"}} {
		for _, a := range []Algorithm{falkonAlgorithm, ridgeRegression} {
			ranked, _, err := Race(t.Context(), d, Run{Values: v, Options: learners.Options{Seed: 1}}, []Algorithm{a})
			if err != nil || len(ranked) != 1 {
				t.Errorf("%s, %s: %v, %v", name, a.Name, ranked, err)
			}
		}
	}
	if ranked, _, err := Race(t.Context(), d, Run{}, []Algorithm{logFalkon}); err == nil || len(ranked) > 0 {
		t.Errorf("no learner suits: %v, %v", ranked, err)
	}
}
