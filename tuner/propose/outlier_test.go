package propose

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A study in which one of 20 measurements returns 1e30 finds the optimum about as well as
// one without. A diagnosis counts these results, and a restart changes nothing.
func TestOutliersDoNotHide(t *testing.T) {
	racetest.Alone(t)
	sp := labtest.Parse(t, `{"a": {"type": "float", "low": 0, "high": 1}, "b": {"type": "float", "low": 0, "high": 1}, "c": {"type": "float", "low": 0, "high": 1}, "d": {"type": "float", "low": 0, "high": 1}}`)
	var logs []float64
	for seed := range uint64(3) {
		spec, c := labtest.SpecOf(sp, seed), study.Component{Name: BKB}
		rng := rand.New(rand.NewPCG(seed, 4))
		l, p := newLab(t, spec), must(t, c, spec)
		best, lost := math.Inf(1), 0
		for range 90 {
			n := l.step(p)
			trial, _ := l.S.Trial(n)
			y := labtest.Bowl(sp, trial.Config)
			best = min(best, y)
			if rng.IntN(20) == 0 {
				y, lost = 1e30, lost+1
			}
			l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, y)})
			if n%30 == 29 {
				a, err := p.Propose(context.Background(), l.S, 1)
				b, errToo := must(t, c, spec).Propose(context.Background(), l.S, 1)
				if err != nil || errToo != nil || !a.Suggestions[0].Config.Equal(b.Suggestions[0].Config) {
					t.Fatalf("after a restart %+v, %v and not %+v, %v", b, errToo, a, err)
				}
			}
		}
		d, err := p.(Modeler).Diagnose(context.Background(), l.S)
		if err != nil || d.Outliers == 0 || d.Outliers > lost {
			t.Errorf("seed %d: %d outliers, and %d of the measurements: %v", seed, d.Outliers, lost, err)
		}
		logs = append(logs, math.Log10(max(best, 1e-12)))
	}
	slices.Sort(logs)
	t.Logf("log10 of the regrets: %.1f", logs)
	if logs[1] > -5 { // about −1.5 if outliers teach the model
		t.Errorf("the median regret is 10^%.1f", logs[1])
	}
}
