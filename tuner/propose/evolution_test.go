package propose

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A rugged funnel looks like noise to the model. From 200 results on the evolution finds a way
// down. The same studies without it end higher.
func TestEvolutionGoesOn(t *testing.T) {
	racetest.Alone(t)
	task := funnel(t)
	run := func(options string, seed uint64) (best float64, samples int) {
		spec := labtest.SpecOf(task.Space, seed)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec)
		best = math.Inf(1)
		for n := range 350 {
			k := l.step(p)
			trial, _ := l.S.Trial(k)
			if trial.Suggestion.Phase == study.PhaseEvolve {
				if samples++; n < 200 {
					t.Fatalf("seed %d: trial %d is a sample", seed, n)
				}
			}
			y := task.Value(trial.Config)
			best = min(best, y)
			l.Do(study.Tell{Trial: k, Outcome: labtest.Completed(spec, y)})
		}
		return best, samples
	}
	gain, seeds := 0.0, racetest.Size(1, 3)
	for seed := range uint64(seeds) {
		with, samples := run(`{"far": "off"}`, seed)
		without, none := run(`{"far": "off", "evolve_from": 0}`, seed)
		if samples < 30 || samples > 95 || none > 0 {
			t.Errorf("seed %d: %d samples of 150 trials, and %d without an evolution", seed, samples, none)
		}
		t.Logf("seed %d: regret %.3g, and %.3g without", seed, with, without)
		gain += math.Log10(without/with) / float64(seeds)
	}
	if gain < 0.15 {
		t.Errorf("the regret is %.2g decades lower", gain)
	}
}

const threeFloats = `{"x": {"type": "float", "low": 0, "high": 1}, "y": {"type": "float", "low": 1e-5, "high": 0.1, "scale": "log"}, "z": {"type": "int", "low": 1, "high": 100}}`

// On a study whose trials are told in another order than they were asked in, some failed, the
// proposer restarts after every event. All samples of the evolution and their
// predictions stay the same, also in batches, and they differ from each other.
func TestEvolutionSurvivesRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes all of it")
	}
	for _, options := range []string{`{"cap": 16, "evolve_from": 15}`, `{"cap": 16, "evolve_from": 15, "stop_gap": 1e-9}`} {
		c := study.Component{Name: BKB, Options: options}
		spec := labtest.SpecOf(labtest.Parse(t, threeFloats), 5)
		samples := 0
		run := func(restart bool) []string {
			l, p := newLab(t, spec), must(t, c, spec)
			rng := rand.New(rand.NewPCG(3, 4))
			var out []string
			for i := range racetest.Size(40, 60) {
				proposal := l.propose(p, 1+i%3)
				for k, g := range proposal.Suggestions {
					if g.Phase == study.PhaseEvolve {
						samples++
					}
					out = append(out, fmt.Sprint(g.Config, g.Seed, g.Phase, g.Mean, g.StdDev, g.Bound, g.Seen))
					if k == 0 && i%4 == 0 { // one at a time is the same
						alone, err := must(t, c, spec).Propose(context.Background(), l.S, 1)
						if err != nil || !alone.Suggestions[0].Config.Equal(g.Config) {
							t.Fatalf("alone it is %v, %v, in a batch %v", alone.Suggestions, err, g)
						}
					}
				}
				l.start(proposal)
				for n := range min(l.S.Trials(), 12) {
					trial, _ := l.S.Trial(l.S.Trials() - 1 - n)
					if trial.State != study.Running || rng.IntN(4) == 0 {
						continue
					}
					o := labtest.Completed(spec, rng.NormFloat64())
					if rng.IntN(12) == 0 {
						o = study.Outcome{State: study.Failed, Reason: study.FailedCrash}
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
		for i := range straight {
			if straight[i] != restarted[i] {
				t.Fatalf("%s: suggestion %d was\n%s and is\n%s", options, i, straight[i], restarted[i])
			}
		}
		if samples < racetest.Size(10, 20) {
			t.Errorf("%s: %d samples are too few for a test", options, samples)
		}
	}
}

// There are samples from evolve_from results on, of one objective, in spaces of several ordered
// and nearly continuous coordinates.
func TestEvolutionIsMade(t *testing.T) {
	const fine = `{"evolve_from": 15, "far": "off"}`
	for _, c := range []struct {
		space, options string
		want           bool
	}{
		{threeFloats, fine, true},
		{labtest.Square, fine, true},
		{threeFloats, `{"evolve_from": 0, "far": "off"}`, false},
		{threeFloats, `{"far": "off"}`, false},
		{threeFloats, `{"evolve_from": 15, "far": "off", "cost": "told"}`, false},
	} {
		spec := labtest.SpecOf(labtest.Parse(t, c.space), 3)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: c.options}, spec)
		samples := 0
		for n := range 40 {
			a, due, err := p.(Modeler).Anchor(context.Background(), l.S)
			if err != nil {
				t.Fatal(err)
			}
			if due {
				l.Do(a)
			}
			proposal, err := p.Propose(context.Background(), l.S, 1)
			if err != nil {
				t.Fatal(err)
			}
			if l.start(proposal); proposal.Suggestions[0].Phase == study.PhaseEvolve {
				if samples++; n < 15 {
					t.Errorf("%+v: trial %d is a sample", c, n)
				}
			}
			o := labtest.Completed(spec, float64(n)) // the first is the best
			o.Cost = 1
			l.Do(study.Tell{Trial: n, Outcome: o})
		}
		if (samples > 10) != c.want || (samples > 0) != c.want {
			t.Errorf("%+v: %d samples", c, samples)
		}
	}
}

// The option is refused where it cannot have an effect. The default is not.
func TestEvolutionIsRefused(t *testing.T) {
	for _, space := range []string{
		`{"x": {"type": "float", "low": 0, "high": 1}, "y": {"type": "float", "low": 0, "high": 1}, "k": {"type": "categorical", "values": ["a", "b"]}}`,
		`{"x": {"type": "float", "low": 0, "high": 1}}`,
		`{"x": {"type": "float", "low": 0, "high": 1}, "n": {"type": "int", "low": 1, "high": 60}}`,
		labtest.Spaces["conditional"],
	} {
		spec := labtest.SpecOf(labtest.Parse(t, space), 3)
		if _, err := New(study.Component{Name: BKB, Options: `{"evolve_from": 15}`}, spec); err == nil || !strings.Contains(err.Error(), "proposer.options.evolve_from") {
			t.Errorf("%s: %v", space, err)
		}
		must(t, study.Component{Name: BKB, Options: `{"evolve_from": 0}`}, spec)
		must(t, study.Component{Name: BKB}, spec)
	}
	spec := labtest.SpecOf(labtest.Parse(t, threeFloats), 3)
	spec.Objectives = append(spec.Objectives, study.Objective{Name: "other"})
	if _, err := New(study.Component{Name: BKB, Options: `{"evolve_from": 15}`}, spec); err == nil || !strings.Contains(err.Error(), "one objective") {
		t.Errorf("two objectives: %v", err)
	}
}

// BenchmarkEvolution compares suggestions that are samples with those of the model in the same
// study. The ratio is the time of a sample over that of the other.
func BenchmarkEvolution(b *testing.B) {
	ask := func(options string) func() {
		spec := labtest.SpecOf(labtest.Parse(b, threeFloats), 5)
		l, p := newLab(b, spec), must(b, study.Component{Name: BKB, Options: options}, spec)
		l.Scatter(300, labtest.Wavy)
		for n := 0; n < 32 || l.S.Trials()%8 != 4; n++ { // a lane of the evolution
			l.Do(study.Tell{Trial: l.step(p), Outcome: labtest.Completed(spec, 1e3)})
		}
		if phase := l.once(p).Suggestions[0].Phase; (phase == study.PhaseEvolve) != (options == "") {
			b.Fatalf("%q: the phase is %s", options, phase)
		}
		return func() { l.once(p) }
	}
	sample, other := ask(""), ask(`{"evolve_from": 0}`)
	var times [2]time.Duration
	for b.Loop() {
		for i, f := range []func(){sample, other} {
			begin := time.Now()
			f()
			times[i] += time.Since(begin)
		}
	}
	b.ReportMetric(float64(times[0])/float64(times[1]), "sample/other")
}
