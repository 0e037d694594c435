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
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// deceptive has two branches. Branch b is good and wide, and a is better in one place only.
const deceptive = `{"kind": {"type": "categorical", "values": ["a", "b"]}, "s": {"type": "float", "low": 0, "high": 1},
	"a0": {"type": "float", "low": 0, "high": 1, "when": {"kind": "a"}}, "b0": {"type": "float", "low": 0, "high": 1, "when": {"kind": "b"}}}`

func misleads(c space.Config) float64 {
	of := func(name string) float64 { v, _ := c.Get(name); x, _ := v.AsFloat(); return x }
	kind, _ := c.Get("kind")
	if text, _ := kind.AsString(); text == "a" {
		q := math.Pow(of("s")-0.83, 2) + math.Pow(of("a0")-0.21, 2)
		return -1.2 * math.Exp(-q/(2*0.18*0.18))
	}
	return -0.9 + 0.1*(math.Pow(of("s")-0.4, 2)+math.Pow(of("b0")-0.6, 2))
}

// A study that is stuck in the wrong branch goes elsewhere, where the largest bound gains nothing.
// Without the far model it stays there. Suggestions explain themselves by the far model,
// and a restart makes the same ones.
func TestStuckStudiesGoElsewhere(t *testing.T) {
	racetest.Alone(t)
	sp := labtest.Parse(t, deceptive)
	found, stuck := map[string]int{}, map[string]int{}
	seeds := racetest.Size(2, 3)
	for _, options := range []string{"", `{"far": "off"}`} {
		for seed := range uint64(seeds) {
			spec := labtest.SpecOf(sp, seed)
			c := study.Component{Name: BKB, Options: options}
			l, p := newLab(t, spec), must(t, c, spec)
			best := 0.0
			for range 130 {
				n := l.step(p)
				trial, _ := l.S.Trial(n)
				if n%20 == 7 && n > 60 {
					d, err := p.(Modeler).Diagnose(context.Background(), l.S)
					if err != nil || d.Stuck != strings.Contains(strings.Join(d.Warnings, " "), "the study is stuck") {
						t.Errorf("%q: stuck: %t, warnings %q: %v", options, d.Stuck, d.Warnings, err)
					}
					if d.Stuck {
						stuck[options]++
					}
				}
				if n%20 == 7 && n > 60 && options == "" {
					again := must(t, c, spec)
					a, err := p.Propose(context.Background(), l.S, 2)
					b, errToo := again.Propose(context.Background(), l.S, 2)
					if err != nil || errToo != nil || !a.Suggestions[0].Config.Equal(b.Suggestions[0].Config) || !a.Suggestions[1].Config.Equal(b.Suggestions[1].Config) {
						t.Fatalf("trial %d: %+v, %v and after a restart %+v, %v", n, a, err, b, errToo)
					}
				}
				y := misleads(trial.Config)
				best = min(best, y)
				l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, y)})
			}
			if best < -1.1 {
				found[options]++
			}
		}
	}
	t.Logf("found the better branch's optimum in %v of %d, stuck %v", found, seeds, stuck)
	if stuck[""] == 0 || stuck[`{"far": "off"}`] > 0 {
		t.Errorf("%v diagnoses are of a study that is stuck", stuck)
	}
	if found[""] < max(seeds-1, 2) || found[`{"far": "off"}`] > 1 {
		t.Errorf("the better branch was found by %v of %d studies", found, seeds)
	}
}

// There is a far model from 40 results of one objective on, without reports and costs.
// By default there is one where there are three or four coordinates.
func TestFarModelIsMade(t *testing.T) {
	floats := `"x0": {"type": "float", "low": 0, "high": 1}`
	for d := 1; d <= 6; d++ {
		if sp := labtest.Parse(t, "{"+floats+"}"); low(sp) != (d == 3 || d == 4) {
			t.Errorf("%d coordinates: %t", d, low(sp))
		}
		floats += fmt.Sprintf(`, "x%d": {"type": "float", "low": 0, "high": 1}`, d)
	}
	for _, c := range []struct {
		options string
		n       int
		square  bool
		want    bool
	}{
		{`{"far": "on"}`, 60, true, true},
		{`{"far": "on"}`, 39, true, false},
		{`{"far": "on", "cost": "told"}`, 60, true, false},
		{`{"far": "off"}`, 60, false, false},
		{"", 60, false, true},
		{"", 60, true, false},
	} {
		spec := labtest.SpecOf(labtest.Parse(t, threeParts), 3)
		if c.square {
			spec = labtest.SpecOf(labtest.Parse(t, labtest.Square), 3)
		}
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: c.options}, spec).(*bkb)
		l.Scatter(c.n, labtest.Wavy)
		if c.options != "" {
			for i := range 3 {
				o := labtest.Completed(spec, 1)
				o.Cost = float64(i + 1)
				l.Do(study.Add{Config: l.Decode(slices.Repeat([]float64{float64(i+1) / 4}, spec.Space.Dim())...), Outcome: o})
			}
		}
		a, due, err := p.Anchor(context.Background(), l.S)
		if err != nil || !due {
			t.Fatalf("no model: %v", err)
		}
		e, err := model.Decode(a.Model)
		if err != nil {
			t.Fatal(err)
		}
		if (e.Far != nil) != c.want {
			t.Errorf("%d results with %q: a far model is there: %t", c.n, c.options, e.Far != nil)
		}
	}
}

// Samples of CMA-ES and far suggestions do not maximise the bound of the near model. The gap is known all
// the same, also where each batch begins with a sample, so that stop_gap can end a study that is stuck.
func TestGapOfStuckStudy(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, deceptive), 1)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"stop_gap": 1e-9}`}, spec)
	stuck := 0
	for range 90 {
		l.anchor(p)
		proposal, err := p.Propose(context.Background(), l.S, 1)
		if err != nil {
			t.Fatal(err)
		}
		l.start(proposal)
		n := l.S.Trials() - 1
		if trial, _ := l.S.Trial(n); trial.Suggestion.Phase == study.PhaseExplore {
			if stuck++; proposal.Gap <= 0 {
				t.Errorf("trial %d is far, and its gap is %v", n, proposal.Gap)
			}
		}
		trial, _ := l.S.Trial(n)
		l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, misleads(trial.Config))})
	}
	if stuck < 5 {
		t.Errorf("%d far suggestions are too few for a test", stuck)
	}

	spec = labtest.SpecOf(labtest.Parse(t, labtest.Square), 1)
	l, p = newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"stop_gap": 1e-9, "evolve_from": 15}`}, spec)
	samples := 0
	for range 15 {
		proposal := l.propose(p, 4)
		l.start(proposal)
		if proposal.Suggestions[0].Phase == study.PhaseEvolve {
			if samples++; proposal.Gap <= 0 {
				t.Errorf("trial %d is a sample, and the gap is %v", l.S.Trials()-4, proposal.Gap)
			}
		}
		for n := l.S.Trials() - 4; n < l.S.Trials(); n++ {
			trial, _ := l.S.Trial(n)
			l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, math.Mod(float64(n)*0.618, 1)+labtest.Bowl(spec.Space, trial.Config))})
		}
	}
	if samples < 3 {
		t.Errorf("%d samples are too few for a test", samples)
	}
}
