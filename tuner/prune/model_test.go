package prune

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/study"
)

func oneObjective(d study.Direction) study.Spec {
	spec := testSpec()
	spec.Objectives = []study.Objective{{Name: "loss", Direction: d}}
	return spec
}

func guided(t *testing.T, options string, d study.Direction) Guided {
	t.Helper()
	p, err := New(study.Component{Name: Model, Options: options}, oneObjective(d))
	if err != nil {
		t.Fatal(err)
	}
	return p.(Guided)
}

// A trial can be judged once it has reported the objective at or after the warm-up and
// enough trials have completed. The order of these updates does not matter.
func TestModelWants(t *testing.T) {
	report := func(step int64, v float64) study.Report {
		return study.Report{Epoch: 1, Step: step, Values: []study.NamedValue{{Name: "loss", Value: v}}}
	}
	trials := []study.Trial{
		{Number: 0, State: study.Completed, Epoch: 1},
		{Number: 1, State: study.Running, Epoch: 1, Reports: []study.Report{report(2, 1), report(3, 1)}},
		{Number: 2, State: study.Running, Epoch: 1, Reports: []study.Report{report(2, 1)}},
		{Number: 3, State: study.Running, Epoch: 1, Reports: []study.Report{report(9, math.NaN())}},
		{Number: 4, State: study.Completed, Epoch: 1},
		{Number: 5, State: study.Pruned, Epoch: 1, Reports: []study.Report{report(5, 1)}},
		{Number: 6, State: study.Running, Epoch: 2, Reports: []study.Report{report(5, 1)}}, // before its lease expired
	}
	for _, backwards := range []bool{false, true} {
		p := guided(t, `{"width": 3, "warmup_steps": 3, "min_trials": 2}`, study.Minimize)
		if backwards {
			slices.Reverse(trials)
		}
		for i, trial := range trials {
			if width, ok := p.Wants(1); ok && i < 5 || width != 3 {
				t.Errorf("after %d trials: %v, %v", i, width, ok)
			}
			p.Update(trial)
			p.Update(trial)
		}
		for n := range 8 {
			if _, ok := p.Wants(n); ok != (n == 1) {
				t.Errorf("trial %d can be judged: %t", n, ok)
			}
			if v := p.Decide(n); v.Stop {
				t.Errorf("trial %d is stopped without a forecast: %s", n, v.Reason)
			}
		}
	}
}

// A trial that cannot become better than the incumbent is stopped. A trial that is as good,
// or whose forecast is not known, is not.
func TestModelJudges(t *testing.T) {
	for _, test := range []struct {
		d    study.Direction
		f    Forecast
		stop bool
	}{
		{study.Minimize, Forecast{Mean: 1, StdDev: 0.1, Bound: 0.8, Incumbent: 0.7}, true},
		{study.Minimize, Forecast{Mean: 1, StdDev: 0.2, Bound: 0.6, Incumbent: 0.7}, false},
		{study.Minimize, Forecast{Mean: 1, StdDev: 0.2, Bound: 0.7, Incumbent: 0.7}, false},
		{study.Maximize, Forecast{Mean: 1, StdDev: 0.1, Bound: 1.2, Incumbent: 1.3}, true},
		{study.Maximize, Forecast{Mean: 1, StdDev: 0.2, Bound: 1.4, Incumbent: 1.3}, false},
		{study.Maximize, Forecast{Mean: 1, StdDev: 0.2, Bound: math.NaN(), Incumbent: 1.3}, false},
	} {
		v := guided(t, "", test.d).Judge(test.f)
		if v.Stop != test.stop || v.Stop != strings.Contains(v.Reason, "loss is predicted to end at 1") {
			t.Errorf("%s %+v: %+v", test.d, test.f, v)
		}
	}
	var invalid *study.InvalidError
	if _, err := New(study.Component{Name: Model, Options: `{"metric": "acc", "direction": "maximize"}`}, oneObjective(study.Minimize)); !errors.As(err, &invalid) {
		t.Errorf("a metric that has no model: %v", err)
	}
}
