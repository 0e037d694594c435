package propose

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Under noise the best of a few arms is found and recommended, and so is a finite branch that is
// better than a continuous one, also where a metric has a limit. Arms that cannot be the best get few trials. The bounds of the
// number of right studies are those of the issue that asked for it, 90 %.
func TestArmsUnderNoise(t *testing.T) {
	racetest.Alone(t)
	gap := func(gaps map[string]float64, shape func(x float64) float64) func(c space.Config) float64 {
		return func(c space.Config) float64 {
			v, _ := c.Get("a")
			y := gaps[v.String()]
			for _, name := range []string{"x", "n"} {
				if w, ok := c.Get(name); ok {
					if n, isInt := w.AsInt(); isInt {
						return y + shape(float64(n))
					}
					return y + shape(c.Number(name))
				}
			}
			return y
		}
	}
	square := func(x float64) float64 { return (x - 0.3) * (x - 0.3) }
	const six = `{"a": {"type": "categorical", "values": ["p", "q", "r", "s", "t", "u"]}}`
	for what, k := range map[string]struct {
		space   string
		noise   float64
		trials  int
		workers int
		options string                       // of the proposer
		value   func(c space.Config) float64 // the best configuration has 0
	}{
		"six arms":            {six, 0.5, 60, 1, "", gap(map[string]float64{"p": 0.4, "q": 0.4, "s": 0.4, "t": 0.4, "u": 0.4}, nil)},
		"six arms in steps":   {six, 0.5, 60, 1, "", gap(map[string]float64{"p": 1, "q": 0.8, "r": 0.6, "s": 0.4, "u": 0.4}, nil)},
		"six arms, 3 workers": {six, 0.5, 60, 3, "", gap(map[string]float64{"p": 0.4, "r": 0.4, "s": 0.4, "t": 0.4, "u": 0.4}, nil)},
		"six integers":        {`{"a": {"type": "int", "low": 1, "high": 6}}`, 0.5, 60, 1, "", gap(map[string]float64{"1": 0.4, "2": 0.4, "3": 0.4, "4": 0.4, "6": 0.4}, nil)},
		"six sizes":           {`{"a": {"type": "ordinal", "values": [1, 2, 4, 8, 16, 32]}}`, 0.5, 60, 1, "", gap(map[string]float64{"1": 0.4, "2": 0.4, "8": 0.4, "16": 0.4, "32": 0.4}, nil)},
		"a branch without parameters": {
			`{"a": {"type": "categorical", "values": ["net", "none"]}, "x": {"type": "float", "low": 0, "high": 1, "when": {"a": "net"}}}`,
			0.5, 60, 1, "", gap(map[string]float64{"net": 0.4}, square),
		},
		"a branch without parameters, with a limit": {
			`{"a": {"type": "categorical", "values": ["net", "none"]}, "x": {"type": "float", "low": 0, "high": 1, "when": {"a": "net"}}}`,
			0.5, 60, 1, `{"constraints": {"m": {"max": 1}}}`, gap(map[string]float64{"net": 0.4}, square),
		},
		"a branch of four": {
			`{"a": {"type": "categorical", "values": ["net", "tree"]}, "x": {"type": "float", "low": 0, "high": 1, "when": {"a": "net"}}, "n": {"type": "int", "low": 1, "high": 4, "when": {"a": "tree"}}}`,
			0.4, 80, 1, "", func(c space.Config) float64 {
				if n, ok := c.Get("n"); ok {
					i, _ := n.AsInt()
					return 0.5 * math.Abs(float64(i)-3)
				}
				return 0.4 + square(c.Number("x"))
			},
		},
	} {
		seeds := racetest.Size(5, 20)
		if k.workers == 1 && strings.Contains(k.space, `"a": {"type": "int"`) || strings.Contains(k.space, "ordinal") {
			seeds = 60 // which are quick
		}
		if k.options != "" {
			seeds = 20
		}
		right := 0
		for seed := range uint64(seeds) {
			spec := labtest.SpecOf(labtest.Parse(t, k.space), seed)
			l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: k.options}, spec)
			rng := rand.New(rand.NewPCG(seed, 55))
			for n := range k.trials {
				l.step(p)
				if tell := n - k.workers + 1; tell >= 0 {
					trial, _ := l.S.Trial(tell)
					outcome := labtest.Completed(spec, k.value(trial.Config)+k.noise*rng.NormFloat64())
					outcome.Metrics = append(outcome.Metrics, study.Metric{Name: "m", Values: []float64{0}})
					l.Do(study.Tell{Trial: tell, Outcome: outcome})
				}
			}
			often := 0
			for n := range l.S.Trials() {
				if trial, _ := l.S.Trial(n); k.value(trial.Config) == 0 {
					often++
				}
			}
			if k.options != "" && often < 25 {
				t.Errorf("%s, seed %d: the best arm has %d of %d trials", what, seed, often, k.trials)
			}
			best, err := recommend(p, l.S)
			if err != nil || len(best) != 1 {
				t.Fatalf("%s, seed %d: %v, %v", what, seed, best, err)
			}
			if trial, _ := l.S.Trial(best[0]); k.value(trial.Config) == 0 {
				right++
			}
		}
		t.Logf("%s: right in %d of %d", what, right, seeds)
		if right < seeds*9/10-seeds/20 { // less by the chance of so few studies
			t.Errorf("%s: the best was recommended in %d of %d studies", what, right, seeds)
		}
	}
}

// Without noise one repetition at most is spent on finding that out.
func TestArmsWithoutNoise(t *testing.T) {
	for levels := 5; levels <= 50; levels += 15 {
		for seed := range uint64(4) {
			spec := labtest.SpecOf(labtest.Parse(t, `{"n": {"type": "int", "low": 1, "high": `+strconv.Itoa(levels)+`}}`), seed)
			l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec)
			seen := make(map[string]bool)
			for range levels {
				n := l.step(p)
				trial, _ := l.S.Trial(n)
				seen[trial.Config.String()] = true
				l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, math.Sin(3*trial.Config.Number("n")))})
			}
			if len(seen) < levels-1 {
				t.Errorf("%d levels, seed %d: %d different configurations in as many trials", levels, seed, len(seen))
			}
		}
	}
}
