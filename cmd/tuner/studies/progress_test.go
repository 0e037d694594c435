package studies

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// newProgressTest returns the progress of a run on a study "s" with a limit, where it
// writes to, and what tells a value of a new trial.
func newProgressTest(t *testing.T, maxTrials int) (p *progress, out *bytes.Buffer, tell func(x float64) study.Trial) {
	t.Helper()
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	svc := engine.Open(memory.New(), engine.Options{})
	t.Cleanup(func() { svc.Close() })
	created, err := svc.CreateStudy(t.Context(), "s", study.Create{Spec: study.Spec{
		Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, MaxTrials: maxTrials, Proposer: study.Component{Name: "sobol"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	out = new(bytes.Buffer)
	p = NewProgress(t.Context(), out, new(cli.Globals), svc, created.Study)
	t.Cleanup(p.End)
	return p, out, func(x float64) study.Trial {
		asked, err := svc.Ask(t.Context(), "s", study.Ask{Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		told, err := svc.Tell(t.Context(), "s", study.Tell{Trial: asked.Trials[0].Number, Outcome: study.Outcome{
			State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{x}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return told.Trial
	}
}

// The best so far is that of all workers, not of this run alone.
func TestProgressKnowsOthers(t *testing.T) {
	p, out, tell := newProgressTest(t, 0)
	tell(3) // by somebody else, as are all but those of the events
	p.Event(runner.Event{Kind: runner.Ended, Trial: tell(5)})
	tell(1)
	p.Event(runner.Event{Kind: runner.Ended, Trial: tell(2)})
	p.Event(runner.Event{Kind: runner.Ended, Trial: tell(0.5)})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"best: loss=3 (trial 0)", "best: loss=1 (trial 2)", "the best so far"} {
		if i >= len(lines) || !strings.HasSuffix(lines[i], want) {
			t.Errorf("line %d of\n%s\nwant %q at its end", i, out, want)
		}
	}
}

// A line fits 80 columns, unless all is asked for. The first to go are the end of the
// configuration and the best trial.
func TestProgressFits(t *testing.T) {
	p, out, tell := newProgressTest(t, 0)
	t.Setenv("COLUMNS", "80")
	event := func(x float64) {
		trial := tell(x)
		trial.Suggestion.Mean, trial.Suggestion.StdDev = []float64{1.0 / 3}, []float64{0.0123}
		p.Event(runner.Event{Kind: runner.Ended, Trial: trial, Noise: []float64{0.001}})
	}
	event(2.123456789)
	event(1.0 / 3)
	event(0.5)
	t.Setenv("COLUMNS", "70")
	event(0.75)
	t.Setenv("COLUMNS", "44")
	event(0.875)
	t.Setenv("COLUMNS", "") // nothing is cut
	event(0.625)
	p.g.Verbose = 1
	event(0.4321987654321)
	want := []string{
		trials.ExplainOutcome,
		"Trial 0: loss=2.12346 (predicted 0.3333±0.012)  x=0.813276  the best so far",
		"Trial 1: loss=0.333333 (predicted 0.3333±0.012)  x=0.0737869  the best so far",
		"Trial 2: loss=0.5 (predicted 0.3333±0.012)  best: loss=0.333333 (trial 1)",
		"Trial 3: loss=0.75 (predicted 0.3333±0.012)  x=0.742277",
		"Trial 4: loss=0.875 (predicted 0.3333±0.012)",
		"Trial 5: loss=0.625 (predicted 0.3333±0.012)  x=0.457021  best: loss=0.333333 (trial 1)",
		"Trial 6: completed loss=0.4321987654321 (predicted 0.3333±0.012)  x=0.210933  best: loss=0.333333 (trial 1)",
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if i >= len(want) || line != want[i] {
			t.Errorf("line %d is %q", i, line)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != len(want) {
		t.Errorf("%d lines, want %d", n, len(want))
	}
}

// A run says that it waits only if it does, because the trials that are left may be its
// own.
func TestProgressWaits(t *testing.T) {
	p, out, _ := newProgressTest(t, 0)
	none := runner.Event{Kind: runner.Waiting, Err: &study.NoneLeftError{Trials: 3, Running: 1}}
	p.Event(none)
	p.Event(none)
	if out.Len() > 0 {
		t.Errorf("said at once: %s", out)
	}
	p.idle = p.idle.Add(-time.Second)
	p.Event(none)
	p.Event(none)
	if n := strings.Count(out.String(), "Waiting: "); n != 1 {
		t.Errorf("said %d times: %s", n, out)
	}
}

// The bar says what time is left under a budget, counted from where this run began.
func TestBarUnderBudget(t *testing.T) {
	p, _, _ := newProgressTest(t, 0)
	p.study.Spec.MaxCost, p.study.Cost, p.spent = 100, 60, 20
	if got := p.bar(10 * time.Second); !strings.Contains(got, "60% of the budget, about 10s left") {
		t.Error(got)
	}
	p.study.Cost = 20
	if got := p.bar(10 * time.Second); !strings.HasSuffix(got, "20% of the budget") {
		t.Error(got)
	}
}

func TestBar(t *testing.T) {
	p := &progress{study: tuner.Study{
		Spec:   study.Spec{MaxTrials: 48, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}},
		Trials: 28, Counted: 28, Counts: map[study.TrialState]int{study.Running: 4, study.Completed: 24},
	}, running: 4, already: 12}
	p.best = &study.Trial{Number: 7, State: study.Completed, Outcome: study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{0.25}}}}}
	want := "████████████░░░░░░░░░░░░ 24/48  4 running  1m0s, about 2m0s left  best loss=0.25 (trial 7)"
	if got := p.bar(time.Minute); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p.study.Spec.MaxTrials, p.best = 0, nil
	if got := p.bar(time.Minute); got != "24 trials  4 running  1m0s" {
		t.Errorf("without a limit: %s", got)
	}
}
