package bo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/bench/report"
)

// Outcomes that are drawn from their predictions are inside as often as the intervals say, and
// the table has the problems that are least and most often inside. Failures, and trials without
// a prediction, do not count.
func TestCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := &plan{seeds: 2, trials: 1000, contestants: []Contestant{{Name: "o", Kind: Ours}, {Name: "silent", Kind: Peer}}}
	s := &suiteResults{Suite: Suite{Name: "s"}, plan: p, runs: make(map[cell]map[string]*Run)}
	for name, factor := range map[string]float64{"s/right": 1, "s/wide": 1e-3, "s/narrow": 1e3} {
		s.Problems = append(s.Problems, Listed{Name: name})
		for seed := range p.seeds {
			run, silent := &Run{}, &Run{}
			for i := range p.trials {
				m := Trial{Mean: 100 * rng.NormFloat64(), StdDev: math.Exp(rng.NormFloat64()), OK: true}
				m.Value = m.Mean + factor*m.StdDev*rng.NormFloat64()
				switch {
				case i < 10:
					m.Mean, m.StdDev = math.NaN(), math.NaN()
				case i%10 == 0:
					m.OK, m.Value = false, math.NaN()
				}
				run.Trials = append(run.Trials, m)
				silent.Trials = append(silent.Trials, Trial{OK: true, Mean: math.NaN(), StdDev: math.NaN()})
			}
			s.runs[cell{name, p.seed(seed)}] = map[string]*Run{"o": run, "silent": silent}
		}
	}
	for _, c := range []struct {
		trials, outcomes int
	}{{50, 6 * (40 - 4)}, {1000, 6 * (990 - 99)}} {
		all, problems := s.covered("o", c.trials)
		if all.runs != 6 || all.outcomes != c.outcomes || len(problems) != 3 {
			t.Fatalf("%d outcomes of %d runs and %d problems", all.outcomes, all.runs, len(problems))
		}
		for i, interval := range intervals {
			want := (1 + interval.share) / 3 // of the right ones, the wide ones and none
			if got := all.share(i); math.Abs(got-want) > 3/math.Sqrt(float64(c.outcomes)) {
				t.Errorf("%d trials: %v inside %v intervals, want %v", c.trials, got, interval.share, want)
			}
		}
	}
	out := &report.Result{}
	(&results{plan: p, suite: []*suiteResults{s}}).coverage(out)
	table := out.Tables[0]
	if len(table.Rows) != 3 {
		t.Fatalf("%d rows, not one for each number of trials of the one that predicts", len(table.Rows))
	}
	if low, high := table.Float("lowest"), table.Float("highest"); low[2] > 0.01 || high[2] != 1 {
		t.Errorf("the shares of problems are from %v to %v", low[2], high[2])
	}
}

// The predictions of a run are those that the service made before the outcomes.
func TestPredictions(t *testing.T) {
	p := problem(t, "classic/branin")
	for _, k := range []Contestant{ours[0], baselines[0]} {
		o, err := k.New(t.Context(), Setup{Space: p.Space(), Seed: 3, Trials: 40})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		r := &runner{run: Run{Problem: p.Name(), Best: p.Best(), Median: p.Median()}, problem: p, optimiser: o}
		if err := r.do(t.Context(), 40); err != nil {
			t.Fatal(err)
		}
		for i, m := range r.run.Trials {
			if has, want := m.StdDev > 0, k.Kind == Ours && i >= 4; has != want || has == math.IsNaN(m.Mean) {
				t.Errorf("%s, trial %d: predicted %v ± %v", k.Name, i, m.Mean, m.StdDev)
			}
			if last := i == 39 && k.Kind == Ours; last && math.Abs(m.Mean-m.Value) > 0.05*(p.Median()-p.Best()) {
				t.Errorf("the last trial was predicted as %v, and is %v", m.Mean, m.Value)
			}
		}
	}
}
