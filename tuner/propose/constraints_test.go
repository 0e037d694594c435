package propose

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func constrained(t *testing.T, parameters string, constraints ...string) *space.Space {
	t.Helper()
	sp, err := labtest.Parse(t, parameters).Constrain(constraints...)
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

const threeParts = `{"x": {"type": "float", "low": 0, "high": 1}, "y": {"type": "float", "low": 0, "high": 1},
	"z": {"type": "float", "low": 0, "high": 1}}`

// Suggestions of every proposer keep the constraints of the space, and BKB finds the optimum
// on their edge. The oracle of the optimum is geometry: the nearest point of a line, of a
// triangle, and of a set of ints.
func TestSpaceConstraints(t *testing.T) {
	racetest.Alone(t)
	square := func(v float64) float64 { return v * v }
	for _, c := range []struct {
		what  string
		space *space.Space
		value func(c space.Config) float64
		best  float64
	}{
		{"order", constrained(t, threeParts, "x <= y"), func(c space.Config) float64 {
			return square(c.Number("x")-0.8) + square(c.Number("y")-0.2) + square(c.Number("z")-0.3)
		}, 0.18}, // at (0.5, 0.5, 0.3)
		{"parts", constrained(t, threeParts, "x + y + z = 1"), func(c space.Config) float64 {
			return square(c.Number("x")-0.9) + square(c.Number("y")-0.9) + square(c.Number("z")-0.1)
		}, 0.33}, // at (0.5, 0.5, 0)
		{"ints", constrained(t, `{"layers": {"type": "int", "low": 1, "high": 12},
			"width": {"type": "int", "low": 8, "high": 256, "scale": "log"}, "kind": {"type": "categorical", "values": ["a", "b"]}}`, "layers * width <= 256", `not (kind == "a" and layers > 3)`), func(c space.Config) float64 {
			v, _ := c.Get("kind")
			extra := 0.0
			if v.String() == "b" {
				extra = 0.5
			}
			return square(c.Number("layers")-6)/10 + square(math.Log2(c.Number("width"))-7) + extra
		}, math.NaN()},
	} {
		if math.IsNaN(c.best) {
			c.best = bestOfInts(c.value)
		}
		for _, name := range []string{Random, Sobol, Grid, BKB} {
			spec := labtest.SpecOf(c.space, 4)
			l, p := newLab(t, spec), must(t, study.Component{Name: name}, spec)
			best := math.Inf(1)
			for i := range 50 {
				if a, ok := p.(Modeler); ok {
					l.anchor(a)
				}
				proposal, err := p.Propose(context.Background(), l.S, 1)
				if name == Grid && errors.Is(err, ErrExhausted) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				l.start(proposal)
				config := proposal.Suggestions[0].Config
				if err := c.space.Validate(config); err != nil {
					t.Fatalf("%s: %s suggests %v", c.what, name, err)
				}
				v := c.value(config)
				best = min(best, v)
				l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, v)})
			}
			if name == BKB && best > c.best+2e-3 {
				t.Errorf("%s: the best of BKB is %v, want %v", c.what, best, c.best)
			}
			if best < c.best-1e-6 || math.IsInf(best, 1) {
				t.Errorf("%s: the best of %s is %v, and no configuration is better than %v", c.what, name, best, c.best)
			}
		}
	}
}

// bestOfInts is the least value among all configurations of the problem of ints.
func bestOfInts(value func(c space.Config) float64) float64 {
	best := math.Inf(1)
	for layers := int64(1); layers <= 12; layers++ {
		for width := int64(8); width <= 256 && layers*width <= 256; width++ {
			for _, kind := range []string{"a", "b"} {
				if kind == "a" && layers > 3 {
					continue
				}
				best = min(best, value(space.NewConfig(
					space.Assignment{Name: "layers", Value: space.Int(layers)}, space.Assignment{Name: "width", Value: space.Int(width)},
					space.Assignment{Name: "kind", Value: space.String(kind)})))
			}
		}
	}
	return best
}

// Trials from elsewhere must keep the constraints too, enqueued or added.
func TestSpaceConstraintsOfOthers(t *testing.T) {
	spec := labtest.SpecOf(constrained(t, threeParts, "x <= y"), 4)
	l := newLab(t, spec)
	bad := space.NewConfig(
		space.Assignment{Name: "x", Value: space.Float(0.5)}, space.Assignment{Name: "y", Value: space.Float(0.25)},
		space.Assignment{Name: "z", Value: space.Float(0)})
	for _, command := range []study.Command{study.Enqueue{Config: bad}, study.Add{Config: bad, Outcome: labtest.Completed(spec, 1)}} {
		_, _, err := l.S.Decide(labtest.Began, command)
		if faults := space.Faults(err); len(faults) != 1 || !strings.Contains(err.Error(), `breaks the constraint "x <= y"`) {
			t.Errorf("%T: %v", command, err)
		}
	}
}

// A small space is enumerated, without the configurations that break the constraints, and
// ends when all others have been suggested.
func TestSpaceConstraintsOfSmallSpace(t *testing.T) {
	sp := constrained(t, `{"m": {"type": "int", "low": 1, "high": 6}, "n": {"type": "int", "low": 1, "high": 6}}`, "m + n = 7 or m < n - 2")
	for _, component := range []study.Component{{Name: Grid}, {Name: BKB, Options: `{"on_duplicate": "reuse", "start": 4}`}} {
		spec := labtest.SpecOf(sp, 4)
		l, p := newLab(t, spec), must(t, component, spec)
		seen := make(map[string]bool)
		for i := 0; ; i++ {
			if a, ok := p.(Modeler); ok {
				l.anchor(a)
			}
			proposal, err := p.Propose(context.Background(), l.S, 1)
			if errors.Is(err, ErrExhausted) {
				break
			} else if err != nil || i > 20 {
				t.Fatalf("trial %d: %v", i, err)
			}
			l.start(proposal)
			c := proposal.Suggestions[0].Config
			if err := sp.Validate(c); err != nil || seen[c.String()] {
				t.Fatalf("trial %d is %s, %v", i, c, err)
			}
			seen[c.String()] = true
			l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, c.Number("m")*c.Number("n"))})
		}
		count := 0 // (m, 7 − m), and m < n − 2
		for m := 1; m <= 6; m++ {
			for n := 1; n <= 6; n++ {
				if m+n == 7 || m < n-2 {
					count++
				}
			}
		}
		if len(seen) != count {
			t.Errorf("%s suggested %d configurations, want %d", component.Name, len(seen), count)
		}
	}
}

// A grid of which next to no cell keeps the constraints is refused, because an ask would look
// for it for hours. One of which few do is not, wherever these are.
func TestGridWithFewCells(t *testing.T) {
	const ints = `{"a": {"type": "int", "low": 1, "high": 100}, "b": {"type": "int", "low": 1, "high": 100}, "c": {"type": "int", "low": 1, "high": 100},
		"d": {"type": "int", "low": 1, "high": 100}, "e": {"type": "int", "low": 1, "high": 100}}`
	spec := labtest.SpecOf(constrained(t, ints, "a + b + c + d + e <= 5"), 1)
	_, err := New(study.Component{Name: Grid}, spec)
	var invalid *study.InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "no cell of the grid keeps the constraints of the space, of 100000 that were tried") {
		t.Errorf("%v", err)
	}
	for _, options := range []string{``, `{"order": "lexicographic"}`} {
		spec = labtest.SpecOf(constrained(t, ints, "a >= 99"), 1)
		if _, err := New(study.Component{Name: Grid, Options: options}, spec); err != nil {
			t.Errorf("%q: %v", options, err)
		}
	}
}

// A grid of which no cell keeps the constraints is refused.
func TestGridWithoutCells(t *testing.T) {
	spec := labtest.SpecOf(constrained(t, threeParts, "x + y + z = 0.95"), 4)
	_, err := New(study.Component{Name: Grid, Options: `{"points": 3}`}, spec)
	var invalid *study.InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "no cell of the grid keeps the constraints") {
		t.Errorf("%v", err)
	}
}

// Where the constraints leave one of 10¹⁰ configurations, it is suggested again, or the study
// ends. Neither numbers all others.
func TestSpaceConstraintsOfOnePoint(t *testing.T) {
	sp := constrained(t, `{"a": {"type": "int", "low": 1, "high": 100}, "b": {"type": "int", "low": 1, "high": 100}, "c": {"type": "int", "low": 1, "high": 100},
		"d": {"type": "int", "low": 1, "high": 100}, "e": {"type": "int", "low": 1, "high": 100}}`, "a + b + c + d + e <= 5")
	spec := labtest.SpecOf(sp, 1)
	for _, reuse := range []bool{false, true} {
		options := map[bool]string{false: `{"start": 2}`, true: `{"start": 2, "on_duplicate": "reuse"}`}[reuse]
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec)
		for i := range 4 {
			l.anchor(p)
			proposal, err := p.Propose(context.Background(), l.S, 1)
			if reuse && i >= 2 { // there is a model, which knows the repetition
				if !errors.Is(err, ErrExhausted) {
					t.Errorf("trial %d: %v, want the end", i, err)
				}
				break
			}
			if err != nil || proposal.Suggestions[0].Config.Number("e") != 1 {
				t.Fatalf("trial %d: %+v, %v", i, proposal, err)
			}
			l.start(proposal)
			l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, float64(i))})
		}
	}
}

// An infinite metric beyond its limit makes a trial infeasible, and others that are not finite
// are left out with a message. All else stays for the study to judge.
func TestSettle(t *testing.T) {
	spec := study.Spec{
		Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}},
		Proposer:   study.Component{Options: `{"constraints": {"latency": {"max": 10}, "share": {"min": 0.5}, "loss": {"max": 3}}}`},
	}
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		state         study.TrialState
		metric        string
		value         float64
		want, message string
		metricsLeft   int
	}{
		"finite":        {study.Completed, "latency", 99, "completed", "", 2},
		"beyond max":    {study.Completed, "latency", inf, "infeasible", "latency is +Inf, and must be at most 10", 1},
		"within max":    {study.Completed, "latency", -inf, "completed", "latency is -Inf, which is not stored, so the trial breaks the limit at most 10; tell a finite number that keeps it", 1},
		"no number":     {study.Completed, "latency", math.NaN(), "completed", "latency is NaN, which is not stored, so the trial breaks the limit at most 10", 1},
		"below min":     {study.Completed, "share", -inf, "infeasible", "share is -Inf, and must be at least 0.5", 1},
		"without limit": {study.Completed, "seconds", inf, "completed", "", 2},
		"failed":        {study.Failed, "latency", inf, "failed", "", 2},
	} {
		o := study.Outcome{State: c.state, Metrics: []study.Metric{{Name: "loss", Values: []float64{1}}, {Name: c.metric, Values: []float64{c.value}}}}
		got := Settle(spec, o)
		if got.State.String() != c.want || got.Message != c.message || len(got.Metrics) != c.metricsLeft || len(o.Metrics) != 2 || o.State != c.state {
			t.Errorf("%s: %v of %v", name, got, o)
		}
	}
	objective := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{inf}}}}
	if got := Settle(spec, objective); got.State != study.Completed {
		t.Errorf("an infinite objective with a limit: %v", got)
	}
}
