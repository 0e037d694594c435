package propose

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// The least value lies where latency is too high. The recommended trial keeps the
// constraint and is near its edge, and trials soon keep it, with one objective and with
// two. Without the constraint none of this holds.
func TestConstraints(t *testing.T) {
	racetest.Alone(t)
	run := func(options string, objectives int) (recommended []float64, late int) {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 2)
		if objectives > 1 {
			spec.Objectives = append(spec.Objectives, study.Objective{Name: "more", Direction: study.Minimize})
		}
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec)
		for i := range 45 {
			l.start(l.propose(p, 1))
			u := l.Coordinates(i)
			v := math.Pow(u[0]-0.9, 2) + math.Pow(u[1]-0.4, 2)
			o := labtest.Completed(spec, append([]float64{v}, u[1])[:objectives]...)
			o.Metrics = append([]study.Metric{{Name: "latency", Values: []float64{100 * u[0]}}}, o.Metrics...)
			l.Do(study.Tell{Trial: i, Outcome: o})
			if i >= 25 && u[0] > 0.6 {
				late++
			}
		}
		best, err := recommend(p, l.S)
		if err != nil || len(best) == 0 {
			t.Fatalf("%v, %v", best, err)
		}
		for _, n := range best {
			recommended = append(recommended, l.Coordinates(n)[0])
		}
		return recommended, late
	}
	for objectives := 1; objectives <= 2; objectives++ {
		x, late := run(`{"constraints": {"latency": {"max": 60, "min": 1}}}`, objectives)
		if slices.Max(x) > 0.6 || slices.Max(x) < 0.5 || late > 9 {
			t.Errorf("%d objectives: recommended at x = %v, where at most 0.6 is allowed; of the last 20 trials %d were not", objectives, x, late)
		}
		if x, late := run(`{}`, objectives); slices.Max(x) < 0.8 || late < 12 {
			t.Errorf("%d objectives, no constraint: recommended at x = %v, %d of 20 above 0.6", objectives, x, late)
		}
	}
}

// Without a model, the recommendation is the best measured trial that keeps the constraints. If
// none keeps them, it is the best of those that break them least.
func TestConstraintsBeforeAModel(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 2)
	spec.Proposer = study.Component{Name: BKB, Options: `{"start": 4, "constraints": {"latency": {"max": 1}}}`}
	l, p := newLab(t, spec), must(t, spec.Proposer, spec)
	add := func(x, loss, latency float64) {
		t.Helper()
		c, err := spec.Space.Decode([]float64{x, 0.5})
		if err != nil {
			t.Fatal(err)
		}
		o := labtest.Completed(spec, loss)
		if latency > 0 {
			o.Metrics = append([]study.Metric{{Name: "latency", Values: []float64{latency}}}, o.Metrics...)
		}
		l.Do(study.Add{Config: c, Outcome: o})
	}
	best := func() string {
		t.Helper()
		trials, err := recommend(p, l.S)
		if err != nil {
			t.Fatal(err)
		}
		if len(trials) == 0 {
			trials = Best(l.S)
		}
		return fmt.Sprint(trials)
	}
	add(0.1, 1, 5)
	if got := best(); got != "[0]" {
		t.Errorf("recommended %s, where nothing keeps to the constraint", got)
	}
	add(0.9, 3, 1)
	add(0.8, 2, 0.5)
	add(0.5, 0.5, 0) // the constraint's metric was not told
	if got := best(); got != "[2]" {
		t.Errorf("recommended %s before there is a model, want [2]", got)
	}
	l.anchor(p)
	if got := best(); got != "[2]" {
		t.Errorf("recommended %s, want [2]", got)
	}
	// No trial keeps it.
	spec.Proposer.Options = `{"start": 4, "constraints": {"accuracy": {"min": 1}}}`
	l, p = newLab(t, spec), must(t, spec.Proposer, spec)
	for i := range 6 {
		add(float64(i)/5, float64(i), 5)
	}
	proposal := l.propose(p, 2)
	l.start(proposal)
	if len(proposal.Warnings) != 1 || !strings.Contains(proposal.Warnings[0], "accuracy") || !strings.Contains(proposal.Warnings[0], "none of 6") || !strings.Contains(proposal.Warnings[0], "; tell it with each outcome") {
		t.Errorf("warnings %q", proposal.Warnings)
	}
	if d, err := p.(Modeler).Diagnose(context.Background(), l.S); err != nil || !slices.Equal(d.Warnings, proposal.Warnings) || math.IsNaN(d.Gap) {
		t.Errorf("%+v, %v", d, err)
	}
	if got := best(); got != "[0]" {
		t.Errorf("recommended %s, where no trial told the metric and [0] is the best", got)
	}
}

// Invalid constraints are refused, and the error names the field.
func TestFaultyConstraints(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 1)
	for options, want := range map[string]string{
		`{"constraints": {"latency": {"max": 10}}}`:           "",
		`{"constraints": {"latency": {"min": 1, "max": 1}}}`:  "",
		`{"constraints": {}}`:                                 "",
		`{"constraints": 7}`:                                  "proposer.options.constraints = 7",
		`{"constraints": {"latency": 7}}`:                     "proposer.options.constraints.latency = 7",
		`{"constraints": {"latency": {}}}`:                    "proposer.options.constraints.latency = {}",
		`{"constraints": {"latency": {"max": "ten"}}}`:        "proposer.options.constraints.latency.max",
		`{"constraints": {"latency": {"max": 1e999}}}`:        "proposer.options.constraints.latency.max",
		`{"constraints": {"latency": {"least": 1}}}`:          "proposer.options.constraints.latency.least",
		`{"constraints": {"latency": {"min": 2, "max": 1}}}`:  "proposer.options.constraints.latency",
		`{"constraints": {"a": {"max": 1}, "a": {"max": 2}}}`: "is there twice",
		`{"failures": "forget"}`:                              "proposer.options.failures",
	} {
		_, err := New(study.Component{Name: BKB, Options: options}, spec)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", options, err)
		}
	}
}

// Trials that crash are avoided, unless failures are ignored. Trials that were cancelled or
// expired teach nothing.
func TestFailuresAreLearnt(t *testing.T) {
	racetest.Alone(t)
	run := func(options string, outcome study.Outcome) (late, heard int) {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 2)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec)
		for i := range 50 {
			l.start(l.propose(p, 1))
			u, o := l.Coordinates(i), outcome
			if u[0] <= 0.5 {
				o = labtest.Completed(spec, math.Pow(u[0]-0.65, 2)+math.Pow(u[1]-0.3, 2)) // better towards the edge
			} else if i >= 30 && u[0] > 0.55 {
				late++
			}
			l.Do(study.Tell{Trial: i, Outcome: o})
		}
		l.propose(p, 1)
		return late, len(p.(*bkb).Results.List)
	}
	crash := study.Outcome{State: study.Failed, Reason: study.FailedCrash}
	if late, heard := run(`{}`, crash); late > 6 || heard != 50 {
		t.Errorf("%d of the last 20 trials crashed far from the edge, and %d results were heard of", late, heard)
	}
	if late, heard := run(`{"failures": "ignore"}`, crash); late < 12 || heard == 50 {
		t.Errorf("ignored: %d of the last 20 trials crashed far from the edge, and %d results were heard of", late, heard)
	}
	if _, heard := run(`{}`, study.Outcome{State: study.Failed, Reason: study.FailedCancelled}); heard == 50 {
		t.Error("cancelled trials teach something")
	}
}

// With two objectives suggestions avoid places where trials crash, of which there are more than a half.
// Crashes at random do not keep them from the front.
func TestFailuresOfSeveralObjectives(t *testing.T) {
	racetest.Alone(t)
	const start, trials = 16, 50
	run := func(seed uint64, crashes func(u []float64, i int) bool) (crashed, near int) {
		spec := labtest.SpecOf(labtest.Parse(t, `{"a": {"type": "float", "low": 0, "high": 1}, "b": {"type": "float", "low": 0, "high": 1}, "c": {"type": "float", "low": 0, "high": 1}, "d": {"type": "float", "low": 0, "high": 1}, "e": {"type": "float", "low": 0, "high": 1}}`), seed)
		spec.Objectives = []study.Objective{{Name: "f", Direction: study.Minimize}, {Name: "g", Direction: study.Minimize}}
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"start": 16}`}, spec)
		for i := range trials {
			l.start(l.propose(p, 1))
			u := l.Coordinates(i)
			far := 0.0
			for _, v := range u[1:] {
				far += (v - 0.5) * (v - 0.5)
			}
			o := labtest.Completed(spec, (1+far)*math.Cos(u[0]*math.Pi/2), (1+far)*math.Sin(u[0]*math.Pi/2))
			switch {
			case crashes(u, i):
				o = study.Outcome{State: study.Failed, Reason: study.FailedCrash}
				if i >= start {
					crashed++
				}
			case i >= start && far < 0.1:
				near++
			}
			l.Do(study.Tell{Trial: i, Outcome: o})
		}
		return crashed, near
	}
	crashed, near := 0, 0
	for seed := range uint64(2) {
		c, n := run(seed, func(u []float64, _ int) bool { return math.Abs(u[0]-0.5) < 0.12 || u[1]+0.3*u[2] < 0.55 })
		crashed, near = crashed+c, near+n
	}
	if crashed > 2*14 || near < 2*10 {
		t.Errorf("of %d suggestions %d crashed, and %d were near the front", 2*(trials-start), crashed, near)
	}
	if _, near := run(1, func(_ []float64, i int) bool { return i%4 == 1 }); near < 10 {
		t.Errorf("crashes at random: %d suggestions were near the front", near)
	}
}

// Constrained lists the constraints in words. Other proposers have no constraints.
func TestConstrained(t *testing.T) {
	options := `{"constraints": {"weight": {"min": 1, "max": 2.5}, "latency": {"max": 10}, "size": {"min": -0.5}}}`
	want := []string{"latency at most 10", "size at least -0.5", "weight at least 1 and at most 2.5"}
	for _, name := range []string{"", BKB} {
		if got := Constrained(study.Component{Name: name, Options: options}); !slices.Equal(got, want) {
			t.Errorf("%q: %q", name, got)
		}
	}
	for _, c := range []study.Component{{}, {Name: BKB, Options: `{"start": 4}`}, {Name: Sobol}} {
		if got := Constrained(c); len(got) > 0 || !Keeps(c)(study.Outcome{State: study.Completed}) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// Where 1 % of the space keeps the constraint, and none of the first trials does, the metric
// leads there. The recommended trial then keeps it, at any time.
func TestNarrowConstraint(t *testing.T) {
	racetest.Alone(t)
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 2)
	keeps := func(u []float64) bool { return math.Hypot(u[0]-0.81, u[1]-0.37) <= 0.055 }
	for seed := range uint64(3) {
		spec.Seed = seed
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"constraints": {"away": {"max": 0.055}}}`}, spec)
		kept, first := 0, -1
		for i := range 30 {
			l.start(l.propose(p, 1))
			u := l.Coordinates(i)
			o := labtest.Completed(spec, u[0]+u[1])
			o.Metrics = append([]study.Metric{{Name: "away", Values: []float64{math.Hypot(u[0]-0.81, u[1]-0.37)}}}, o.Metrics...)
			l.Do(study.Tell{Trial: i, Outcome: o})
			if keeps(u) {
				kept++
				if first < 0 {
					first = i
				}
			}
			best, err := recommend(p, l.S)
			if err != nil {
				t.Fatal(err)
			}
			if first >= 0 && (len(best) != 1 || !keeps(l.Coordinates(best[0]))) {
				t.Fatalf("seed %d: after trial %d %v is recommended", seed, i, best)
			}
		}
		if first < 0 || first > 15 || kept < 12 {
			t.Errorf("seed %d: trial %d is the first of %d that keep the constraint", seed, first, kept)
		}
	}
}

// The gap leaves out places where a metric is known to be beyond its limit, or trials are
// known to crash. So stop_gap ends a study whose feasible part is searched, once enough outcomes
// were predicted. Without the limit the same places count.
func TestGapWithinLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes all of it")
	}
	for _, c := range []struct {
		name, options string
		crash         bool
		small         bool
	}{
		{"limit", `{"stop_gap": 0.3, "constraints": {"latency": {"max": 50}}}`, false, true},
		{"crashes", `{"stop_gap": 0.3}`, true, true},
		{"crashes are ignored", `{"stop_gap": 0.3, "failures": "ignore"}`, true, false},
	} {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 2)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: c.options}, spec)
		outcome := func(u []float64) study.Outcome {
			o := labtest.Completed(spec, -2*u[0]-0.1*u[1])
			o.Metrics = append([]study.Metric{{Name: "latency", Values: []float64{100 * u[0]}}}, o.Metrics...)
			if c.crash && u[0] > 0.5 {
				o = study.Outcome{State: study.Failed, Reason: study.FailedCrash}
			}
			return o
		}
		for i := range 60 {
			u := []float64{math.Mod(float64(i)*0.618, 1), (float64(i) + 0.5) / 60}
			l.Do(study.Add{Config: l.Decode(u...), Outcome: outcome(u)})
		}
		proposal := l.propose(p, 1)
		d, err := p.(Modeler).Diagnose(context.Background(), l.S)
		if err != nil || math.Abs(d.Gap-proposal.Gap) > 0.01+0.05*d.Gap {
			t.Errorf("%s: gap %v, and in a diagnosis %v: %v", c.name, proposal.Gap, d.Gap, err)
		}
		if (proposal.Gap < 0.3) != c.small || proposal.Converged || proposal.Gap <= 0 {
			t.Errorf("%s: gap %v, the study ends before an outcome was predicted: %t", c.name, proposal.Gap, proposal.Converged)
		}
		ends := false
		for range 45 {
			l.start(l.propose(p, 1))
			n := l.S.Trials() - 1
			l.Do(study.Tell{Trial: n, Outcome: outcome(l.Coordinates(n))})
			ends = ends || l.propose(p, 1).Converged
		}
		if ends != c.small {
			t.Errorf("%s: the study ends: %t", c.name, ends)
		}
	}
}

// A frozen model predicts the metrics with a limit in their own unit, on either side of the
// limits, and the probability to keep them. A diagnosis counts their results. Without limits
// and failures there are none.
func TestMetricsAreShown(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 2)
	const limits = `{"constraints": {"latency": {"max": 50}, "score": {"min": 0.3}, "unknown": {"max": 1}, "width": {"min": 2, "max": 8}}}`
	freeze := func(options string) ([]surrogate.Prediction, surrogate.Diagnosis) {
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec)
		for i := range 40 {
			u := []float64{math.Mod(float64(i)*0.618, 1), (float64(i) + 0.5) / 40}
			o := labtest.Completed(spec, u[0]+u[1])
			o.Metrics = append([]study.Metric{{Name: "latency", Values: []float64{100 * u[0]}}}, o.Metrics...)
			o.Metrics = append(o.Metrics, study.Metric{Name: "score", Values: []float64{u[1]}}, study.Metric{Name: "width", Values: []float64{10 * u[1]}})
			l.Do(study.Add{Config: l.Decode(u...), Outcome: o})
		}
		l.anchor(p)
		m, _, _, err := p.(Modeler).Freeze(context.Background(), l.S)
		if err != nil || m == nil {
			t.Fatalf("%v, %v", m, err)
		}
		d, err := p.(Modeler).Diagnose(context.Background(), l.S)
		if err != nil {
			t.Fatal(err)
		}
		made, err := m.Predict([]space.Config{l.Decode(0.2, 0.5), l.Decode(0.9, 0.5), l.Decode(0.2, 0.9)})
		if err != nil {
			t.Fatal(err)
		}
		return made, d
	}
	made, d := freeze(strings.Replace(limits, `"unknown": {"max": 1}, `, "", 1))
	for i, want := range [][]float64{{20, 0.5, 5}, {90, 0.5, 5}, {20, 0.9, 9}} {
		got := made[i]
		if len(got.Metrics) != 3 || (got.Feasible > 0.5) != (i == 0) || got.Feasible > 1 {
			t.Fatalf("point %d: %+v", i, got)
		}
		for k, m := range got.Metrics {
			if m.Metric != []string{"latency", "score", "width"}[k] || math.Abs(m.Mean-want[k]) > 0.05*want[k] || !(m.StdDev > 0 && m.StdDev < 0.2*want[k]) || !(m.Noise > 0 && m.Noise < 0.2*want[k]) {
				t.Errorf("point %d: %+v, want %v", i, m, want[k])
			}
		}
	}
	latency, score, width := 0, 0, 0
	for i := range 40 {
		if math.Mod(float64(i)*0.618, 1) > 0.5 {
			latency++
		}
		if y := (float64(i) + 0.5) / 40; y < 0.3 {
			score++
		}
		if y := (float64(i) + 0.5) / 4; y < 2 || y > 8 {
			width++
		}
	}
	for k, broken := range []int{latency, score, width} {
		if m := d.Metrics[k]; len(d.Metrics) != 3 || m.Results != 40 || m.Broken != broken || !(m.Noise > 0) {
			t.Errorf("%+v, want %d of 40 broken", m, broken)
		}
	}
	// Every result lacks a metric, which has no model, and all are failures.
	made, d = freeze(limits)
	if got := made[0]; len(got.Metrics) != 3 || got.Feasible > 0.5 {
		t.Errorf("with an unknown metric: %+v", got)
	}
	if m := d.Metrics[2]; m != (surrogate.LimitedMetric{Metric: "unknown"}) {
		t.Errorf("an unknown metric is %+v", m)
	}
	made, d = freeze(`{}`)
	if made[0].Metrics != nil || made[0].Feasible != 1 || d.Metrics != nil {
		t.Errorf("without limits %+v, %+v", made[0], d.Metrics)
	}
}
