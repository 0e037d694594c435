package propose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/cells"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// anchor puts the model event that is due into the log, and checks that it can be remade.
func (l *lab) anchor(p Proposer) bool {
	l.T.Helper()
	a, due, err := p.(Modeler).Anchor(context.Background(), l.S)
	if err != nil {
		l.T.Fatalf("anchor: %v", err)
	}
	if !due {
		return false
	}
	view := l.S.Snapshot()
	l.Do(a)
	again, err := newBKB(l.S.Spec(), p.(*bkb).options).(*bkb).Remake(context.Background(), view, study.Anchored(a))
	if err != nil || string(again) != string(a.Model) {
		l.T.Fatalf("a model came out otherwise (%v):\n%s\n%s", err, a.Model, again)
	}
	return true
}

func (l *lab) propose(p Proposer, n int) Proposal {
	l.T.Helper()
	l.anchor(p)
	proposal, err := p.Propose(context.Background(), l.S, n)
	if err != nil {
		l.T.Fatalf("propose: %v", err)
	}
	for _, g := range proposal.Suggestions {
		if err := l.S.Spec().Space.Validate(g.Config); err != nil {
			l.T.Fatalf("a suggestion: %v", err)
		}
		for _, v := range slices.Concat(g.Mean, g.StdDev) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				l.T.Fatalf("a suggestion predicts %v ± %v", g.Mean, g.StdDev)
			}
		}
	}
	return proposal
}

func (l *lab) start(p Proposal) {
	l.T.Helper()
	l.Start(p.Suggestions...)
}

// On a study whose trials are told in another order than they were asked in, some never,
// the proposer restarts after every event. All suggestions and their predictions stay the
// same, also in batches.
func TestBKBSurvivesRestarts(t *testing.T) {
	racetest.Alone(t)
	const plain, all = `{"cap": 16}`, `{"cap": 16, "cost": "told", "on_duplicate": "reuse", "constraints": {"loss": {"max": 0.4}}}`
	for _, k := range []struct{ space, options string }{
		{"continuous", plain}, {"mixed", plain}, {"conditional", plain}, {"finite", plain}, {"continuous", all}, {"mixed", all},
	} {
		text := labtest.Spaces[k.space]
		t.Run(k.space+k.options, func(t *testing.T) {
			c := study.Component{Name: BKB, Options: k.options}
			spec := labtest.SpecOf(labtest.Parse(t, text), 5)
			run := func(restart bool) []string {
				l, p := newLab(t, spec), must(t, c, spec)
				rng := rand.New(rand.NewPCG(3, 4))
				var out []string
				for i := range racetest.Size(10, 22) {
					proposal := l.propose(p, 1+i%3)
					for k, g := range proposal.Suggestions {
						out = append(out, fmt.Sprint(g.Config, g.Seed, g.Phase, g.Mean, g.StdDev, g.Seen))
						if k == 0 { // one at a time is the same
							alone, err := must(t, c, spec).Propose(context.Background(), l.S, 1)
							if err != nil || !alone.Suggestions[0].Config.Equal(g.Config) || fmt.Sprint(alone.Suggestions[0].Mean) != fmt.Sprint(g.Mean) {
								t.Fatalf("alone it is %v, %v, in a batch %v", alone.Suggestions, err, g)
							}
						}
					}
					l.start(proposal)
					for n := range l.S.Trials() {
						trial, _ := l.S.Trial(l.S.Trials() - 1 - n)
						if trial.State != study.Running || rng.IntN(4) == 0 {
							continue
						}
						o := labtest.Completed(spec, labtest.Bowl(spec.Space, trial.Config))
						o.Cost = 1 + o.Metrics[0].Values[0]
						switch rng.IntN(12) {
						case 0:
							o = study.Outcome{State: study.Failed, Reason: study.FailedCrash}
						case 1:
							o = study.Outcome{State: study.Infeasible}
						case 2:
							l.Do(study.Expire{Trial: trial.Number, Epoch: trial.Epoch}) // and again in the queue
							continue
						}
						l.Do(study.Tell{Trial: trial.Number, Outcome: o})
					}
					if restart {
						p = l.restart(c, spec)
					}
				}
				return out
			}
			straight, restarted := run(false), run(true)
			if !slices.Equal(straight, restarted) {
				for i := range straight {
					if straight[i] != restarted[i] {
						t.Fatalf("suggestion %d was\n%s and is\n%s", i, straight[i], restarted[i])
					}
				}
			}
		})
	}
}

// 40 trials find far better values than chance.
func TestBKBFindsOptima(t *testing.T) {
	racetest.Alone(t)
	for _, k := range tasks(t) {
		if k.Name != "branin" && k.Name != "mixed" {
			continue
		}
		limit := map[string]float64{"branin": 0.05, "mixed": 0.08}[k.Name]
		if got := search(t, k, study.Component{Name: BKB}, 1, []int{40})[0]; got > limit {
			t.Errorf("%s: %v above the optimum after 40 trials, want ≤ %v", k.Name, got, limit)
		}
	}
}

// After any hostile history the next suggestion is valid, in time, and has a finite
// prediction.
func TestHostileHistories(t *testing.T) {
	racetest.Alone(t)
	big := math.MaxFloat64
	histories := map[string]func(i int) study.Outcome{
		"constant": func(int) study.Outcome { return labtest.Completed(lossSpec, 3) },
		"zero":     func(int) study.Outcome { return labtest.Completed(lossSpec, 0) },
		"huge": func(i int) study.Outcome {
			return labtest.Completed(lossSpec, []float64{big, -big, 1e300, -1e300}[i%4])
		},
		"tiny": func(i int) study.Outcome { return labtest.Completed(lossSpec, 5e-324*float64(i%3)) },
		"wide": func(i int) study.Outcome { return labtest.Completed(lossSpec, math.Pow(10, float64(i%600)-300)) },
		"outlier": func(i int) study.Outcome {
			return labtest.Completed(lossSpec, map[bool]float64{true: 1e300, false: float64(i % 5)}[i == 3])
		},
		"lucky": func(i int) study.Outcome {
			return labtest.Completed(lossSpec, map[bool]float64{true: -1e300, false: float64(i % 5)}[i == 3])
		},
		"infinite": func(i int) study.Outcome { return labtest.Completed(lossSpec, math.Inf(1)) },
		"some inf": func(i int) study.Outcome {
			return labtest.Completed(lossSpec, map[bool]float64{true: math.Inf(1), false: 1}[i%2 == 0])
		},
		"nan": func(i int) study.Outcome { return labtest.Completed(lossSpec, math.NaN()) },
		"some nan": func(i int) study.Outcome {
			return labtest.Completed(lossSpec, map[bool]float64{true: math.NaN(), false: float64(i)}[i%2 == 0])
		},
		"failed": func(i int) study.Outcome { return study.Outcome{State: study.Failed, Reason: study.FailedCrash} },
		"no way": func(i int) study.Outcome { return study.Outcome{State: study.Infeasible} },
		"standard": func(i int) study.Outcome {
			o := labtest.Completed(lossSpec, float64(i%3))
			o.Metrics[0].HasStdErr, o.Metrics[0].StdErr = true, big
			return o
		},
		"certain": func(i int) study.Outcome {
			o := labtest.Completed(lossSpec, float64(i%3))
			o.Metrics[0].HasStdErr = true
			return o
		},
		"replicate": func(i int) study.Outcome {
			o := labtest.Completed(lossSpec, 0)
			o.Metrics[0].Values = []float64{big, -big, float64(i)}
			return o
		},
	}
	for name, outcome := range histories {
		for _, place := range []string{"spread", "same"} {
			t.Run(name+"/"+place, func(t *testing.T) {
				sp := labtest.Parse(t, labtest.Spaces["mixed"])
				spec := labtest.SpecOf(sp, 3)
				l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"cap": 16}`}, spec)
				points := must(t, study.Component{Name: Random}, spec)
				same, err := sp.Decode(slices.Repeat([]float64{0.5}, sp.Dim()))
				if err != nil {
					t.Fatal(err)
				}
				for i := range 24 {
					q, _ := points.Propose(context.Background(), l.S, 1)
					c := q.Suggestions[0].Config
					if place == "same" {
						c = same
					}
					l.Do(study.Add{Config: c, Outcome: outcome(i)})
					if i%8 == 7 {
						l.start(l.propose(p, 2))
					}
				}
				if _, err := recommend(p, l.S); err != nil {
					t.Error(err)
				}
				if d, err := p.(Modeler).Diagnose(context.Background(), l.S); err != nil || !finite(d) {
					t.Errorf("%+v, %v", d, err)
				}
			})
		}
	}
}

var lossSpec = study.Spec{Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}}

// Half of the space is infeasible, and the model soon avoids it.
func TestFeasibilityIsLearnt(t *testing.T) {
	racetest.Alone(t)
	sp := labtest.Parse(t, `{"x": {"type": "float", "low": 0, "high": 1}, "y": {"type": "float", "low": 0, "high": 1}}`)
	spec := labtest.SpecOf(sp, 2)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec)
	late := 0
	for i := range 50 {
		l.start(l.propose(p, 1))
		trial, _ := l.S.Trial(i)
		v, _ := trial.Config.Get("x")
		x, _ := v.AsFloat()
		o := labtest.Completed(spec, math.Pow(x-0.65, 2)+labtest.Bowl(sp, trial.Config)) // better and better towards the edge
		if x > 0.5 {
			o = study.Outcome{State: study.Infeasible}
			if i >= 30 {
				late++
			}
		}
		l.Do(study.Tell{Trial: i, Outcome: o})
	}
	if late > 8 {
		t.Errorf("%d of the last 20 trials were infeasible", late)
	}
	best, err := recommend(p, l.S)
	if err != nil || len(best) != 1 {
		t.Fatalf("%v, %v", best, err)
	}
	if trial, _ := l.S.Trial(best[0]); trial.State != study.Completed {
		t.Errorf("it recommends a trial that is %v", trial.State)
	}
}

// The front of two bowls lies between their centres.
func TestSeveralObjectives(t *testing.T) {
	sp := labtest.Parse(t, labtest.Spaces["continuous"])
	spec := labtest.SpecOf(sp, 2)
	spec.Objectives = []study.Objective{{Name: "a", Direction: study.Minimize}, {Name: "b", Direction: study.Maximize}}
	volume := func(c study.Component) float64 {
		l, p := newLab(t, spec), must(t, c, spec)
		var front [][2]float64
		for i := range 40 {
			if c.Name == BKB {
				l.anchor(p)
			}
			proposal, err := p.Propose(context.Background(), l.S, 1)
			if err != nil {
				t.Fatal(err)
			}
			l.start(proposal)
			trial, _ := l.S.Trial(i)
			u := make([]float64, 2)
			if err := sp.Encode(trial.Config, u); err != nil {
				t.Fatal(err)
			}
			a := math.Pow(u[0]-0.2, 2) + math.Pow(u[1]-0.5, 2)
			b := math.Pow(u[0]-0.8, 2) + math.Pow(u[1]-0.5, 2)
			l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, a, -b)})
			front = append(front, [2]float64{a, b})
		}
		if c.Name == BKB {
			trials, err := recommend(p, l.S)
			if err != nil || len(trials) < 4 || !slices.IsSorted(trials) {
				t.Errorf("recommended: %v, %v", trials, err)
			}
		}
		// Area dominated within [0, 0.5]².
		slices.SortFunc(front, func(p, q [2]float64) int { return map[bool]int{true: -1, false: 1}[p[0] < q[0]] })
		area, height := 0.0, 0.5
		for _, f := range front {
			if f[0] < 0.5 && f[1] < height {
				area += (0.5 - f[0]) * (height - f[1])
				height = f[1]
			}
		}
		return area
	}
	ours, chance := volume(study.Component{Name: BKB}), volume(study.Component{Name: Random})
	if ours < chance {
		t.Errorf("dominated area %v, by chance %v", ours, chance)
	}
}

// On a finite space without noise every configuration comes once before any comes twice. This
// includes pending ones.
func TestNoAccidentalRepetition(t *testing.T) {
	sp := labtest.Parse(t, `{"a": {"type": "int", "low": 0, "high": 4}, "k": {"type": "categorical", "values": ["u", "v", "w"]}}`)
	spec := labtest.SpecOf(sp, 2)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"noise": "none"}`}, spec)
	seen := make(map[string]bool)
	for i := range 15 {
		l.start(l.propose(p, 1))
		trial, _ := l.S.Trial(i)
		if seen[trial.Config.String()] {
			t.Fatalf("trial %d repeats %v", i, trial.Config)
		}
		seen[trial.Config.String()] = true
		if i%3 != 1 {
			l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, labtest.Bowl(sp, trial.Config))})
		}
	}
	l.start(l.propose(p, 1)) // nothing new is left
}

// A study starts with the centre of its space, unless it was enqueued or imported.
func TestCentreComesOnce(t *testing.T) {
	sp := labtest.Parse(t, `{"x": {"type": "float", "low": 0, "high": 1}, "k": {"type": "categorical", "values": ["u", "v"]}}`)
	centre, err := sp.Decode([]float64{0.5, 0})
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []bool{false, true} {
		spec := labtest.SpecOf(sp, 2)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec)
		if known {
			l.Do(study.Add{Config: centre, Outcome: labtest.Completed(spec, labtest.Bowl(sp, centre))})
		}
		got := l.propose(p, 1).Suggestions[0].Config
		if got.Equal(centre) == known {
			t.Errorf("with the centre known %t: suggested %v", known, got)
		}
	}
}

// With reuse a study of a finite space ends when it has every configuration, even if many
// are asked for at once.
func TestNothingIsRunTwice(t *testing.T) {
	racetest.Alone(t)
	for name, text := range map[string]string{
		"looked at whole": `{"a": {"type": "int", "low": 0, "high": 4}, "k": {"type": "categorical", "values": ["u", "v"]}, "b": {"type": "int", "low": 0, "high": 1, "when": {"k": "u"}}}`,
		"searched":        `{"a": {"type": "int", "low": 0, "high": 2047}, "k": {"type": "categorical", "values": ["u", "v"]}}`,
	} {
		sp := labtest.Parse(t, text)
		spec := labtest.SpecOf(sp, 2)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"on_duplicate": "reuse", "cap": 16}`}, spec)
		size := int(sp.Cardinality())
		if name == "searched" { // all but the last few are there
			all, err := cells.Of(sp, cells.MaxPoints, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range size - 5 {
				c := all.At(uint64(i * 1789 % size)) // 1789 is prime
				l.Do(study.Add{Config: c, Outcome: labtest.Completed(spec, labtest.Bowl(sp, c))})
			}
		}
		seen := make(map[string]bool)
		for trial := range l.S.All(0) {
			seen[trial.Config.String()] = true
		}
		for range size {
			l.anchor(p)
			proposal, err := p.Propose(context.Background(), l.S, 3)
			if errors.Is(err, ErrExhausted) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			for _, g := range proposal.Suggestions {
				if seen[g.Config.String()] {
					t.Fatalf("%s: %v was suggested twice", name, g.Config)
				}
				seen[g.Config.String()] = true
			}
			first := l.S.Trials()
			l.start(proposal)
			for n := range len(proposal.Suggestions) {
				l.Do(study.Tell{Trial: first + n, Outcome: labtest.Completed(spec, labtest.Bowl(sp, proposal.Suggestions[n].Config))})
			}
		}
		if len(seen) != size {
			t.Errorf("%s: %d of %d configurations were tried", name, len(seen), size)
		}
	}
}

// Certain models can use many workers, uncertain ones only one. Models know the noise of
// outcomes, which has the standard deviation 1, up to the calibration by 40 of them.
func TestUsefulWorkers(t *testing.T) {
	racetest.Alone(t)
	sp := labtest.Parse(t, labtest.Spaces["continuous"])
	spec := labtest.SpecOf(sp, 2)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"start": 6}`}, spec)
	if got := l.propose(p, 1).UsefulWorkers; got != 6 {
		t.Errorf("%d useful workers at the start, want 6", got)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	last, noise := 0, 0.0
	for range 80 {
		proposal := l.propose(p, 1)
		if phase := proposal.Suggestions[0].Phase; (phase == "start") != (len(proposal.Noise) == 0) {
			t.Fatalf("phase %s has the noise %v", phase, proposal.Noise)
		} else if len(proposal.Noise) > 0 {
			noise = proposal.Noise[0]
		}
		l.start(proposal)
		trial, _ := l.S.Trial(l.S.Trials() - 1)
		l.Do(study.Tell{Trial: trial.Number, Outcome: labtest.Completed(spec, labtest.Bowl(sp, trial.Config)+rng.NormFloat64())})
		last = proposal.UsefulWorkers
	}
	if last < 2 {
		t.Errorf("%d useful workers under a model of noise", last)
	}
	if noise < 0.6 || noise > 1.4 {
		t.Errorf("the noise of outcomes is %v, want about 1", noise)
	}
}

// The gap falls, and the study converges when it is below the option.
func TestGapStops(t *testing.T) {
	sp := labtest.Parse(t, `{"x": {"type": "float", "low": 0, "high": 1}}`)
	spec := labtest.SpecOf(sp, 2)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"stop_gap": 0.01}`}, spec)
	for i := range 60 {
		proposal := l.propose(p, 1)
		if proposal.Converged {
			if i < 8 || proposal.Gap > 0.01 {
				t.Errorf("stopped after %d trials at a gap of %v", i, proposal.Gap)
			}
			return
		}
		l.start(proposal)
		trial, _ := l.S.Trial(i)
		l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, labtest.Bowl(sp, trial.Config))})
	}
	t.Error("never stopped")
}

func TestBKBOptions(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["continuous"]), 1)
	for _, text := range []string{`{"cap": 3}`, `{"beta": "wide"}`, `{"stop_gap": -1}`, `{"min_noise": 0}`, `{"start": 0}`, `{"on_duplicate": "forget"}`, `{"cost": true}`, `{"exploit_every": -1}`, `{"x": 1}`} {
		if _, err := New(study.Component{Name: BKB, Options: text}, spec); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

// Bounds are wider by default in large tables only.
func TestDefaultWidth(t *testing.T) {
	for _, c := range []struct {
		space string
		want  float64
	}{
		{`{"a": {"type": "int", "low": 1, "high": 2048}}`, 0.05},
		{`{"a": {"type": "int", "low": 1, "high": 683}, "b": {"type": "categorical", "values": ["p", "q", "r"]}}`, 0.4},
		{`{"a": {"type": "int", "low": 1, "high": 100000}}`, 0.4},
		{`{"a": {"type": "int", "low": 1, "high": 100001}}`, 0.05},
		{`{"a": {"type": "float", "low": 0, "high": 1}, "b": {"type": "int", "low": 1, "high": 5000}}`, 0.05},
	} {
		spec := labtest.SpecOf(labtest.Parse(t, c.space), 1)
		if o, err := parseBKBOptions("", spec); err != nil || o.Choice.Width != c.want {
			t.Errorf("%s: width %v (%v), want %v", c.space, o.Choice.Width, err, c.want)
		}
		if o, err := parseBKBOptions(`{"width": 0.1}`, spec); err != nil || o.Choice.Width != 0.1 {
			t.Errorf("%s: width 0.1 became %v (%v)", c.space, o.Choice.Width, err)
		}
	}
}

// Options for one objective are refused for two objectives. The error names the option.
func TestOneObjective(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["continuous"]), 1)
	spec.Objectives = append(spec.Objectives, study.Objective{Name: "seconds", Direction: study.Minimize})
	for options, want := range map[string]string{
		`{"cost": "told"}`:     "proposer.options.cost = told: is for studies with one objective; leave it out",
		`{"cost": "seconds"}`:  "proposer.options.cost = seconds: is for studies with one objective; leave it out",
		`{"stop_gap": 0.5}`:    "proposer.options.stop_gap = 0.5: is for studies with one objective; leave it out",
		`{"cost": "ignore"}`:   "",
		`{"on_duplicate": ""}`: `proposer.options.on_duplicate = "": must be resample or replicate or reuse`,
	} {
		got := ""
		if _, err := New(study.Component{Name: BKB, Options: options}, spec); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", options, got, want)
		}
	}
}

// A model event that claims fewer results than any model needs, or more than there are, is
// an error or is remade differently.
func TestRemakeOfNothing(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["continuous"]), 2)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec).(*bkb)
	for i := range 12 {
		for _, results := range []int{math.MinInt, -1, 0, 1, 3, i, math.MaxInt} {
			a := study.Anchored{Seen: l.S.Position(), Model: fmt.Appendf(nil, `{"version": 1, "results": %d}`, results)}
			model, err := must(t, study.Component{Name: BKB}, spec).(*bkb).Remake(context.Background(), l.S, a)
			if few := min(results, i) < 4; few != (err != nil) {
				t.Errorf("%d of %d results: %v", results, i, err)
			}
			if string(model) == string(a.Model) {
				t.Errorf("%d of %d results came out the same", results, i)
			}
		}
		l.start(l.propose(p, 1))
		trial, _ := l.S.Trial(i)
		l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, labtest.Bowl(spec.Space, trial.Config))})
	}
}

// A model event of another version than this program's is refused, and so are suggestions under it.
func TestModelVersions(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["continuous"]), 4)
	for version, want := range map[int]string{1: "", 0: "versions begin at 1", -1: "versions begin at 1", 2: "version 2, but this program knows versions up to 1; upgrade it"} {
		l, b := newLab(t, spec), must(t, study.Component{Name: BKB}, spec).(*bkb)
		l.Scatter(12, labtest.Wavy)
		a, due, err := b.Anchor(context.Background(), l.S)
		if err != nil || !due {
			t.Fatalf("no model: %v", err)
		}
		a.Model = bytes.Replace(a.Model, []byte(`"version":1,`), fmt.Appendf(nil, `"version":%d,`, version), 1)
		before := l.S.Snapshot()
		l.Do(a)
		fresh := must(t, study.Component{Name: BKB}, spec).(*bkb)
		remade, remakeErr := fresh.Remake(context.Background(), before, study.Anchored(a))
		_, err = fresh.Propose(context.Background(), l.S, 1)
		for _, err := range []error{err, remakeErr} {
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("version %d: %v, want %q", version, err, want)
			}
		}
		if want == "" && !bytes.Equal(remade, a.Model) {
			t.Errorf("remade as\n%s, was\n%s", remade, a.Model)
		}
	}
}

// An outlier on the bad side gives targets a power.
func TestTail(t *testing.T) {
	sp := labtest.Parse(t, labtest.Spaces["continuous"])
	spec := labtest.SpecOf(sp, 3)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec)
	for i := range 12 {
		c, err := sp.Decode([]float64{float64(i) / 12, float64(i*5%12) / 12})
		if err != nil {
			t.Fatal(err)
		}
		v := labtest.Bowl(sp, c)
		if i == 4 {
			v = 5
		}
		l.Do(study.Add{Config: c, Outcome: labtest.Completed(spec, v)})
	}
	g := l.propose(p, 1).Suggestions[0]
	e, err := p.(*bkb).At(l.S)
	if err != nil {
		t.Fatal(err)
	}
	if e.Event.Surfaces[0].Target.Power == 0 || g.Phase != study.PhaseModel {
		t.Errorf("phase %s, target %+v", g.Phase, e.Event.Surfaces[0].Target)
	}
}

// Suggestions stay valid with many dimensions, many categories, ranges of one value and of
// nearly all of float64, and many pending trials.
func TestHostileSpaces(t *testing.T) {
	racetest.Alone(t)
	wide := ""
	for i := range 120 {
		wide += fmt.Sprintf(`"x%d": {"type": "float", "low": 0, "high": 1},`, i)
	}
	values := ""
	for i := range 5000 {
		values += fmt.Sprintf(`, "v%d"`, i)
	}
	for name, text := range map[string]string{
		"dimensions": "{" + wide + `"last": {"type": "int", "low": 1, "high": 2}}`,
		"categories": `{"k": {"type": "categorical", "values": ["v"` + values + `]}}`,
		"single":     `{"x": {"type": "float", "low": 1, "high": 1}, "y": {"type": "int", "low": 3, "high": 3}}`,
		"decades":    `{"x": {"type": "float", "low": 1e-300, "high": 1e300, "scale": "log"}, "y": {"type": "float", "low": -1.7e308, "high": 1.7e308}}`,
		"large":      `{"n": {"type": "int", "low": -9007199254740993, "high": 9007199254740993}, "s": {"type": "float", "low": 0, "high": 1, "step": 2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			sp := labtest.Parse(t, text)
			spec := labtest.SpecOf(sp, 3)
			l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"start": 6, "cap": 32}`}, spec)
			for i := range 14 {
				l.start(l.propose(p, 1+40*(i/13)))
				trial, _ := l.S.Trial(i)
				l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, labtest.Bowl(sp, trial.Config))})
			}
			l.start(l.propose(p, 1))
		})
	}
}

// recommend returns the trials that a proposer recommends.
func recommend(p Proposer, v View) ([]int, error) {
	choose, err := p.(Modeler).Recommend(context.Background(), v)
	if err != nil {
		return nil, err
	}
	return choose(), nil
}
