package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/actor"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// faulty is a store that survives its engine and fails on request.
type faulty struct {
	store.Store
	mu     sync.Mutex
	commit func(n int) error // called before commit n, which fails with its error
	answer error             // of commits that were done
	n      int
}

func newFaulty() *faulty { return &faulty{Store: memory.New()} }

func (f *faulty) Close() error { return nil }

func (f *faulty) on(commit func(n int) error) {
	f.mu.Lock()
	f.commit, f.n = commit, 0
	f.mu.Unlock()
}

func (f *faulty) Commit(ctx context.Context, id store.StudyID, expected study.Position, events []study.Event, summary []byte) error {
	f.mu.Lock()
	n, commit := f.n, f.commit
	f.n++
	f.mu.Unlock()
	if commit != nil {
		if err := commit(n); err != nil {
			return err
		}
	}
	if err := f.Store.Commit(ctx, id, expected, events, summary); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answer
}

// lose replaces the answer to commits that are done.
func (f *faulty) lose(answer error) {
	f.mu.Lock()
	f.answer = answer
	f.mu.Unlock()
}

func testSpec(t testing.TB, change func(*study.Spec)) study.Spec {
	t.Helper()
	sp, err := space.New(space.NewFloat("x", 0, 1), space.NewInt("n", 1, 1000).WithScale(space.Log),
		space.NewCategorical("kind", space.String("a"), space.String("b"), space.String("c")))
	if err != nil {
		t.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: 7, MaxRetries: 1, Proposer: study.Component{Name: propose.Sobol}}
	if change != nil {
		change(&spec)
	}
	return spec
}

// open returns an Engine with a study named "s". The end of the test closes it.
func open(t testing.TB, st store.Store, o Options, change func(*study.Spec)) *Engine {
	t.Helper()
	tn := Open(st, o)
	t.Cleanup(func() { tn.Close() })
	if _, err := tn.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, change)}); err != nil {
		t.Fatal(err)
	}
	return tn
}

// snapshot returns the stored study "s".
func snapshot(t testing.TB, tn *Engine) *study.View {
	t.Helper()
	var v *study.View
	err := tn.with(t.Context(), "s", func(a *actor.Actor) (err error) {
		if _, err = a.Study(t.Context(), "s"); err == nil { // waits until all is stored
			v, _, _, err = a.Since(t.Context(), 0)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// wrapProposers replaces the proposers of studies that are loaded from now on.
func wrapProposers(tn *Engine, wrap func(propose.Proposer) propose.Proposer) {
	tn.env.Propose = func(c study.Component, spec study.Spec) (propose.Proposer, error) {
		p, err := propose.New(c, spec)
		if err == nil {
			p = wrap(p)
		}
		return p, err
	}
}

// record returns a recorder of a proposer.
func record(p propose.Proposer) *recorder { return &recorder{Modeler: p.(propose.Modeler)} }

// recorder is a BKB proposer that keeps what it proposed.
type recorder struct {
	propose.Modeler
	mu   sync.Mutex
	made []propose.Proposal
}

func (r *recorder) Propose(ctx context.Context, v propose.View, n int) (propose.Proposal, error) {
	p, err := r.Modeler.Propose(ctx, v, n)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = append(r.made, p)
	return p, err
}

// count returns the number of proposals so far.
func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.made)
}

// wait waits until n proposals are made and none is being prepared, and returns the last.
func (r *recorder) wait(tn *Engine, n int) propose.Proposal {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		r.mu.Lock()
		made := r.made
		r.mu.Unlock()
		if len(made) < n {
			continue
		}
		if done, ok := tn.env.Processors.Prepare(tn.ctx); ok { // none is being prepared
			done()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.made[len(r.made)-1]
	}
	return propose.Proposal{}
}

func ask(t testing.TB, s tuner.Service, c study.Ask) []study.Trial {
	t.Helper()
	asked, err := s.Ask(t.Context(), "s", c)
	if err != nil {
		t.Fatal(err)
	}
	return asked.Trials
}

func loss(v ...float64) study.Outcome {
	return study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: v}}}
}

func tell(t testing.TB, s tuner.Service, trial int, o study.Outcome) {
	t.Helper()
	if _, err := s.Tell(t.Context(), "s", study.Tell{Trial: trial, Outcome: o}); err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, want tuner.Code, words ...string) {
	t.Helper()
	if got := tuner.CodeOf(err); got != want {
		t.Errorf("error %v has the code %q, want %q", err, got, want)
	}
	for _, w := range words {
		if err != nil && !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// TestWarnings checks that settings without effect are logged with a model event, and
// not with every ask. They are no warnings of the log, because workers print them.
func TestWarnings(t *testing.T) {
	var log bytes.Buffer
	tn := open(t, memory.New(), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(s *study.Spec) {
		s.Proposer = study.Component{Name: propose.BKB, Options: `{"cost": "told", "start": 4}`}
	})
	for i := range 4 {
		ask(t, tn, study.Ask{})
		tell(t, tn, i, loss(float64(i)))
	}
	ask(t, tn, study.Ask{})
	ask(t, tn, study.Ask{})
	if got := strings.Count(log.String(), "option cost has no effect"); got != 1 || strings.Contains(log.String(), "WARN") || !strings.Contains(log.String(), "option cost has no effect: 0 of 4 results") || !strings.Contains(log.String(), "study=s") {
		t.Errorf("logged:\n%s", log.String())
	}
}

func TestAskTellBest(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	for i, v := range []float64{0.5, 0.25, math.NaN(), 0.75, math.Inf(1)} {
		trial := ask(t, tn, study.Ask{})[0]
		if trial.Number != i || trial.State != study.Running || trial.Epoch != 1 {
			t.Fatalf("asked: %+v", trial)
		}
		tell(t, tn, trial.Number, loss(v))
	}
	best, err := tn.Best(t.Context(), "s")
	if err != nil || len(best) != 1 || best[0].Number != 1 {
		t.Errorf("best: %v, %v", best, err)
	}
	s, err := tn.Study(t.Context(), "s")
	if err != nil || s.Trials != 5 || s.Counts[study.Completed] != 4 || s.Counts[study.Failed] != 1 {
		t.Errorf("study: %+v, %v", s, err)
	}
	failed, more, err := tn.Trials(t.Context(), "s", tuner.Filter{States: []study.TrialState{study.Failed}})
	if err != nil || more || len(failed) != 1 || failed[0].Outcome.Reason != study.FailedNaN {
		t.Errorf("failed trials: %v, %v", failed, err)
	}
	page, more, err := tn.Trials(t.Context(), "s", tuner.Filter{First: 1, Limit: 2})
	if err != nil || !more || len(page) != 2 || page[0].Number != 1 {
		t.Errorf("page: %v, %t, %v", page, more, err)
	}
	_, err = tn.Ask(t.Context(), "nowhere", study.Ask{})
	wantCode(t, err, tuner.NotFound, "nowhere")
	_, err = tn.Trial(t.Context(), "s", 9)
	wantCode(t, err, tuner.NotFound, "no trial 9")
	_, err = tn.Tell(t.Context(), "s", study.Tell{Trial: 0, Outcome: loss(1)})
	wantCode(t, err, tuner.AlreadyTold, "loss=0.5")
	_, err = tn.Ask(t.Context(), "s", study.Ask{Count: 1001})
	wantCode(t, err, tuner.Invalid, "count")
}

func TestBestByMeanAndParetoFront(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	ask(t, tn, study.Ask{Count: 4})
	tell(t, tn, 0, loss(0.1, 0.9)) // lucky once
	tell(t, tn, 1, loss(0.4, 0.4))
	tell(t, tn, 2, loss(0.4))
	if best, _ := tn.Best(t.Context(), "s"); len(best) != 1 || best[0].Number != 1 {
		t.Errorf("best of replicates: %v", best)
	}

	two := open(t, memory.New(), Options{}, func(c *study.Spec) {
		c.Objectives = append(c.Objectives, study.Objective{Name: "acc", Direction: study.Maximize})
	})
	points := [][2]float64{{1, 0.5}, {2, 0.9}, {2, 0.8}, {0.5, 0.1}, {1, 0.5}, {3, 0.9}, {math.Inf(1), 1}}
	ask(t, two, study.Ask{Count: len(points)})
	for i, p := range points {
		tell(t, two, i, study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: p[:1]}, {Name: "acc", Values: p[1:]}}})
	}
	front, err := two.Best(t.Context(), "s")
	var numbers []int
	for _, t := range front {
		numbers = append(numbers, t.Number)
	}
	if err != nil || !slices.Equal(numbers, []int{0, 1, 3, 4, 6}) {
		t.Errorf("Pareto front: %v, %v", numbers, err)
	}
}

// A trial that violates a constraint is the best only if no trial keeps it, also where
// the proposer gives no recommendation.
func TestBestKeepsToConstraints(t *testing.T) {
	tn := open(t, memory.New(), Options{}, func(c *study.Spec) {
		c.Proposer = study.Component{Name: propose.BKB, Options: `{"constraints": {"size": {"max": 1}}}`}
	})
	ask(t, tn, study.Ask{Count: 3})
	for i, c := range []struct {
		loss, size float64
		best       int // the best measured so far
	}{{0.2, 3, 0}, {0.1, 2, 1}, {0.5, 1, 2}} {
		tell(t, tn, i, study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{c.loss}}, {Name: "size", Values: []float64{c.size}}}})
		if got := propose.Best(snapshot(t, tn)); len(got) != 1 || got[0] != c.best {
			t.Errorf("after trial %d: %v", i, got)
		}
	}
}

func TestManyClients(t *testing.T) {
	const clients, each = 64, 30
	tn := open(t, memory.New(), Options{LongLived: true}, func(c *study.Spec) { c.MaxTrials = clients * each })
	var mu sync.Mutex
	var numbers []int
	configs := make(map[string]bool)
	var work sync.WaitGroup
	for range clients {
		work.Go(func() {
			for {
				asked, err := tn.Ask(t.Context(), "s", study.Ask{})
				if code := tuner.CodeOf(err); code == tuner.Finished || code == tuner.NoneLeft {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
				trial := asked.Trials[0]
				mu.Lock()
				numbers = append(numbers, trial.Number)
				configs[trial.Config.String()] = true
				mu.Unlock()
				if _, err := tn.Tell(t.Context(), "s", study.Tell{Trial: trial.Number, Epoch: trial.Epoch, Outcome: loss(rand.Float64())}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	slices.Sort(numbers)
	for i, n := range numbers {
		if i != n {
			t.Fatalf("number %d at %d", n, i)
		}
	}
	if len(numbers) != clients*each || len(configs) != clients*each {
		t.Errorf("%d trials, %d different, want %d", len(numbers), len(configs), clients*each)
	}
	if s, _ := tn.Study(t.Context(), "s"); s.Status != study.StatusFinished || s.Finished.Reason != study.FinishedTrials {
		t.Errorf("study: %+v", s)
	}
}

// TestRestartsDoNotChangeTheSearch runs each proposer twice over the same results. One
// run has no restart, and the other restarts after every tell.
func TestRestartsDoNotChangeTheSearch(t *testing.T) {
	trials := racetest.Size(100, 300)
	for _, proposer := range []study.Component{
		{Name: propose.Sobol},
		{Name: propose.Random},
		{Name: propose.Grid, Options: `{"points": 12}`},
		{Name: propose.BKB, Options: `{"cap": 32}`},
	} {
		t.Run(proposer.Name, func(t *testing.T) {
			trials := trials
			if proposer.Name == propose.BKB {
				trials /= 4 // asks of one to three trials; beyond 32 inducing points are drawn
			}
			search := func(restart bool) []string {
				st := newFaulty()
				tn := open(t, st, Options{}, func(c *study.Spec) { c.Proposer = proposer })
				var configs []string
				for i := range trials {
					count := 1 + i%3 // also batches
					for _, trial := range ask(t, tn, study.Ask{Count: count}) {
						configs = append(configs, fmt.Sprint(trial.Number, trial.Config, trial.Suggestion.Seed))
						tell(t, tn, trial.Number, loss(float64(i%17)))
					}
					if i%7 == 0 {
						if _, err := tn.Enqueue(t.Context(), "s", study.Enqueue{Config: space.NewConfig(
							space.Assignment{Name: "x", Value: space.Float(0.5)}, space.Assignment{Name: "n", Value: space.Int(3)},
							space.Assignment{Name: "kind", Value: space.String("a")})}); err != nil {
							t.Fatal(err)
						}
					}
					if restart {
						tn.Close()
						tn = Open(st, Options{})
					}
				}
				report, err := tn.Replay(t.Context(), "s", nil)
				if err != nil || report.Suggestions+report.Fallbacks+count(t, tn, study.OriginEnqueued) != len(configs) || len(report.Differences) > 0 {
					t.Errorf("replay: %+v, %v", report, err)
				}
				tn.Close()
				return configs
			}
			straight, restarted := search(false), search(true)
			for i := range straight {
				if straight[i] != restarted[i] {
					t.Fatalf("restarts changed the search: suggestion %d was %s and is %s", i, straight[i], restarted[i])
				}
			}
		})
	}
}

// TestPreparedSuggestions checks that preparation in the background does not change the
// suggestions. A short-lived service suggests the same.
func TestPreparedSuggestions(t *testing.T) {
	search := func(longLived bool) (configs []string, served int) {
		observer := tuner.Observer{Proposed: func(_ time.Duration, prepared bool) {
			if prepared {
				served++
			}
		}}
		tn := open(t, memory.New(), Options{LongLived: longLived, Observer: observer}, func(c *study.Spec) { c.Proposer = study.Component{Name: propose.BKB} })
		var r *recorder
		wrapProposers(tn, func(p propose.Proposer) propose.Proposer {
			r = record(p)
			return r
		})
		tn.forgetName("s")
		for range 25 {
			trial := ask(t, tn, study.Ask{})[0]
			configs = append(configs, fmt.Sprint(trial.Config, trial.Suggestion.Seen, trial.Suggestion.Mean))
			x, _ := trial.Config.Get("x")
			v, _ := x.AsFloat()
			before := r.count()
			tell(t, tn, trial.Number, loss(v*v))
			if longLived {
				r.wait(tn, before+1)
			}
		}
		report, err := tn.Replay(t.Context(), "s", nil)
		if err != nil || len(report.Differences)+len(report.ModelDifferences) > 0 || report.Models == 0 || report.Suggestions != 25 {
			t.Errorf("replay: %+v, %v", report, err)
		}
		return configs, served
	}
	short, none := search(false)
	long, served := search(true)
	if none != 0 || served < 20 {
		t.Errorf("%d and %d suggestions were prepared", none, served)
	}
	for i := range short {
		if short[i] != long[i] {
			t.Fatalf("suggestion %d is %s, prepared %s", i, short[i], long[i])
		}
	}
}

// TestPreparedAtTheOpening checks the preparation after a long-lived service has loaded
// a study. When a worker reports, the model and the first suggestion are made before
// the first ask, and they are those that an ask would have made.
func TestPreparedAtTheOpening(t *testing.T) {
	for _, results := range []int{3, 40} { // before there is a model, and when one is due
		st := newFaulty()
		tn := open(t, st, Options{}, func(c *study.Spec) { c.Proposer = study.Component{Name: propose.BKB} })
		if _, err := tn.AddAll(t.Context(), "s", manyCommands(t, testSpec(t, nil), results)); err != nil {
			t.Fatal(err)
		}
		for range results/10 + 1 { // the queued ones and one more
			ask(t, tn, study.Ask{})
		}
		tn.Close()

		served := 0
		long := Open(st, Options{LongLived: true, Observer: tuner.Observer{Proposed: func(_ time.Duration, prepared bool) {
			if prepared {
				served++
			}
		}}})
		defer long.Close()
		var r *recorder
		wrapProposers(long, func(p propose.Proposer) propose.Proposer {
			r = record(p)
			return r
		})
		report(t, long, results, 1, 0.5)
		before := len(logOf(t, st))
		made := r.wait(long, 1)
		if after := len(logOf(t, st)); after != before {
			t.Errorf("%d events were stored by preparing", after-before)
		}
		got := ask(t, long, study.Ask{})[0]
		if !got.Config.Equal(made.Suggestions[0].Config) || got.Number != results+1 || served != 1 {
			t.Errorf("%d results: suggested %v, prepared %v, and %d were served", results, got.Config, made.Suggestions[0].Config, served)
		}
		replayed, err := long.Replay(t.Context(), "s", nil)
		if err != nil || replayed.Suggestions != 2 || len(replayed.Differences)+len(replayed.ModelDifferences) > 0 {
			t.Errorf("%d results: replay %+v, %v", results, replayed, err)
		}
	}
}

// logOf returns the positions of the log of "s".
func logOf(t *testing.T, st store.Store) (log []study.Position) {
	t.Helper()
	info, err := st.Lookup(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range st.Read(t.Context(), info.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, r.Position)
	}
	return log
}

// TestAutoCount checks that an ask with AutoCount gets the trials useful now, and the
// same when repeated.
func TestAutoCount(t *testing.T) {
	tn := open(t, memory.New(), Options{}, func(c *study.Spec) {
		c.Proposer = study.Component{Name: propose.BKB, Options: `{"start": 5}`}
	})
	first, err := tn.Ask(t.Context(), "s", study.Ask{Count: tuner.AutoCount, RequestID: "r"})
	if err != nil || len(first.Trials) != 5 {
		t.Fatalf("%d trials, %v, want 5", len(first.Trials), err)
	}
	again, err := tn.Ask(t.Context(), "s", study.Ask{Count: tuner.AutoCount, RequestID: "r"})
	if err != nil || len(again.Trials) != 5 || again.Trials[4].Number != first.Trials[4].Number {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	more, err := tn.Ask(t.Context(), "s", study.Ask{Count: tuner.AutoCount})
	if err != nil || len(more.Trials) != 1 {
		t.Errorf("%d trials more, %v, want 1", len(more.Trials), err)
	}
}

// TestAutoCountKeepsTheRule checks the trials of such an ask under a model. Except for
// the last, they sum up to no more than the rule of BBKB allows, 1 + Σσ²/ξ² ≤ 2, with
// the predictions before the ask.
func TestAutoCountKeepsTheRule(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 1))
	several := 0
	for round := range 3 {
		tn := open(t, memory.New(), Options{}, func(c *study.Spec) {
			c.Proposer, c.Seed = study.Component{Name: propose.BKB}, uint64(round)
		})
		for i := 0; i < 40; {
			asked, err := tn.Ask(t.Context(), "s", study.Ask{Count: tuner.AutoCount})
			if err != nil {
				t.Fatal(err)
			}
			d, err := tn.Diagnose(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			var configs []space.Config
			for _, trial := range asked.Trials {
				configs = append(configs, trial.Config)
			}
			predicted := must(tn.Predict(t.Context(), "s", tuner.PredictQuery{Configs: configs}))
			predictions := predicted.Configs
			sum := 0.0
			for n := range predictions {
				if n == len(predictions)-1 && n > 0 && sum > 1.001 {
					t.Errorf("seed %d, round %d: %d trials at once, where the rule allows %d", seed, round, len(configs), n)
				}
				sum += math.Pow(predictions[n].StdDev[0]/d.Noise, 2)
			}
			if len(predictions) > 1 {
				several++
			}
			for _, trial := range asked.Trials {
				tell(t, tn, trial.Number, loss(rng.NormFloat64()))
				i++
			}
		}
	}
	if several == 0 {
		t.Error("no ask had more than one trial")
	}
}

// TestGapEndsTheStudy tests the option stop_gap.
func TestGapEndsTheStudy(t *testing.T) {
	tn := open(t, memory.New(), Options{}, func(c *study.Spec) {
		c.Proposer = study.Component{Name: propose.BKB, Options: `{"stop_gap": 0.2}`}
	})
	for range 80 {
		asked, err := tn.Ask(t.Context(), "s", study.Ask{})
		if tuner.CodeOf(err) == tuner.Finished {
			if s, _ := tn.Study(t.Context(), "s"); s.Finished.Reason != study.FinishedGap || s.Finished.Detail == "" {
				t.Errorf("finished: %+v", s.Finished)
			}
			return
		} else if err != nil {
			t.Fatal(err)
		}
		x, _ := asked.Trials[0].Config.Get("x")
		v, _ := x.AsFloat()
		tell(t, tn, asked.Trials[0].Number, loss(v))
	}
	t.Error("the study went on for 80 trials")
}

// TestStops tells values until the target or the patience ends a study, at once and whichever
// direction it has. A restart in between makes no difference, and an extension begins anew.
func TestStops(t *testing.T) {
	target := 0.5
	for name, c := range map[string]struct {
		change func(*study.Spec)
		values []float64 // all but the last leave the study active
		reason study.FinishReason
	}{
		"target":          {func(c *study.Spec) { c.Target = &target }, []float64{3, 0.6, 0.51, 0.5}, study.FinishedTarget},
		"target to reach": {func(c *study.Spec) { c.Target, c.Objectives[0].Direction = &target, study.Maximize }, []float64{-3, 0.4, 0.7}, study.FinishedTarget},
		"target kept": {func(c *study.Spec) {
			c.Target = &target
			c.Proposer = study.Component{Name: propose.BKB, Options: `{"constraints": {"memory": {"max": 2}}}`}
		}, []float64{0.1, 0.2, 0.3, -0.4}, study.FinishedTarget}, // see below
		"patience":          {func(c *study.Spec) { c.Patience = 2 }, []float64{1, 2, 0.5, 0.6, 0.5}, study.FinishedPatience},
		"patience and NaN":  {func(c *study.Spec) { c.Patience = 2 }, []float64{math.NaN(), math.NaN(), 1, math.NaN(), 1, 1}, study.FinishedPatience},
		"patience to reach": {func(c *study.Spec) { c.Patience, c.Objectives[0].Direction = 1, study.Maximize }, []float64{1, 2, 2}, study.FinishedPatience},
	} {
		t.Run(name, func(t *testing.T) {
			st := newFaulty()
			tn := open(t, st, Options{}, c.change)
			reason := func() study.FinishReason {
				s, err := tn.Study(t.Context(), "s")
				if err != nil {
					t.Fatal(err)
				}
				return s.Finished.Reason
			}
			for i, v := range c.values {
				if reason() != 0 {
					t.Fatalf("finished (%s) before value %d", reason(), i)
				}
				o := loss(v)
				if name == "target kept" { // only the last one keeps the limit
					o.Metrics = append(o.Metrics, study.Metric{Name: "memory", Values: []float64{3 + 4*min(v, 0)}})
				}
				tell(t, tn, ask(t, tn, study.Ask{})[0].Number, o)
				if i == len(c.values)/2 {
					tn.Close()
					tn = Open(st, Options{})
					defer tn.Close()
				}
			}
			if reason() != c.reason {
				t.Fatalf("finished %q, want %s", reason(), c.reason)
			}
			if _, err := tn.Extend(t.Context(), "s", study.Extend{}); err != nil || reason() != 0 {
				t.Errorf("extended: %v, finished %q", err, reason())
			}
			ask(t, tn, study.Ask{})
		})
	}
}

// count counts the started trials of an origin.
func count(t *testing.T, tn *Engine, o study.Origin) int {
	t.Helper()
	view := snapshot(t, tn)
	n := 0
	for trial := range view.All(0) {
		if trial.Origin == o && trial.Epoch > 0 {
			n++
		}
	}
	return n
}

// TestReplayFindsTampering replays a log that no proposer wrote.
func TestReplayFindsTampering(t *testing.T) {
	st := newFaulty()
	tn := open(t, st, Options{}, nil)
	ask(t, tn, study.Ask{Count: 3})
	view, _ := tn.Study(t.Context(), "s")
	tn.Close()
	forged := study.Event{Time: time.Now().UTC(), Body: study.Started{
		Trial: 3, Epoch: 1, Deadline: time.Now().Add(time.Hour),
		Suggestion: &study.Suggestion{Phase: "start", Seen: view.Position, Config: space.NewConfig(
			space.Assignment{Name: "x", Value: space.Float(0.5)}, space.Assignment{Name: "n", Value: space.Int(3)},
			space.Assignment{Name: "kind", Value: space.String("a")})},
	}}
	if err := st.Commit(t.Context(), view.ID, view.Position, []study.Event{forged}, nil); err != nil {
		t.Fatal(err)
	}
	tn = Open(st, Options{})
	defer tn.Close()
	report, err := tn.Replay(t.Context(), "s", nil)
	if err != nil || report.Suggestions != 4 || len(report.Differences) != 1 || report.Differences[0].Trial != 3 {
		t.Errorf("replay of a forged log: %+v, %v", report, err)
	}
}

func TestGridIsExhausted(t *testing.T) {
	tn := open(t, memory.New(), Options{}, func(c *study.Spec) {
		c.Proposer = study.Component{Name: propose.Grid, Options: `{"points": 2, "levels": {"n": 2}}`}
	})
	ask(t, tn, study.Ask{Count: 11})
	if got := ask(t, tn, study.Ask{Count: 5}); len(got) != 1 {
		t.Fatalf("the last of 2×2×3 cells: %v", got)
	}
	_, err := tn.Ask(t.Context(), "s", study.Ask{})
	wantCode(t, err, tuner.NoneLeft, "12 of them still run")
	for n := range 12 {
		tell(t, tn, n, loss(1))
	}
	_, err = tn.Ask(t.Context(), "s", study.Ask{})
	wantCode(t, err, tuner.Finished, "exhausted")
}

func TestRequestIDsInFlight(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	var work sync.WaitGroup
	answers := make([][]study.Trial, 20)
	for i := range answers {
		work.Go(func() {
			asked, err := tn.Ask(t.Context(), "s", study.Ask{RequestID: "once", Count: 3})
			if err != nil {
				t.Error(err)
			}
			answers[i] = asked.Trials
		})
	}
	work.Wait()
	for _, a := range answers {
		if len(a) != 3 || a[0].Number != 0 || a[2].Number != 2 {
			t.Errorf("an answer to the same request: %v", a)
		}
	}
	c := study.Create{RequestID: "c", Spec: testSpec(t, nil)}
	for range 2 {
		if _, err := tn.CreateStudy(t.Context(), "twice", c); err != nil {
			t.Error(err)
		}
	}
	_, err := tn.CreateStudy(t.Context(), "twice", study.Create{RequestID: "d", Spec: c.Spec})
	wantCode(t, err, tuner.AlreadyExists, "twice")
	_, err = tn.CreateStudy(t.Context(), "No Name", c)
	wantCode(t, err, tuner.Invalid)
	c.Spec.Proposer.Name = "oracle"
	_, err = tn.CreateStudy(t.Context(), "other", c)
	wantCode(t, err, tuner.Invalid, "oracle")
}

// TestRefusedCommits fails the n-th commit, n = 0, 1, …, of a small session without
// writing anything. The caller gets the error, and study and store agree afterwards.
func TestRefusedCommits(t *testing.T) {
	for name, refusal := range map[string]error{"full": fmt.Errorf("commit: %w", store.ErrFull), "limit": &store.LimitError{What: "commit", Size: 2, Limit: 1}} {
		for n := range 6 {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				st := newFaulty()
				tn := open(t, st, Options{}, nil)
				st.on(func(i int) error {
					if i == n {
						return refusal
					}
					return nil
				})
				refused := 0
				for i := range 3 {
					asked, err := tn.Ask(t.Context(), "s", study.Ask{RequestID: fmt.Sprint("ask", i)})
					if err != nil {
						wantCode(t, err, tuner.Exhausted)
						refused++
						if asked, err = tn.Ask(t.Context(), "s", study.Ask{RequestID: fmt.Sprint("ask", i)}); err != nil {
							t.Fatal(err)
						}
					}
					trial := asked.Trials[0]
					if trial.Number != i {
						t.Errorf("asked for trial %d, got %d", i, trial.Number)
					}
					c := study.Tell{Trial: trial.Number, Outcome: loss(1)}
					if _, err := tn.Tell(t.Context(), "s", c); err != nil {
						wantCode(t, err, tuner.Exhausted)
						refused++
						if got, _ := tn.Trial(t.Context(), "s", i); got.State != study.Running {
							t.Errorf("a tell was refused and the trial is %s", got.State)
						}
						if _, err := tn.Tell(t.Context(), "s", c); err != nil {
							t.Fatal(err)
						}
					}
				}
				if refused != 1 {
					t.Errorf("%d calls were refused", refused)
				}
				want, _, _ := tn.Trials(t.Context(), "s", tuner.Filter{})
				tn.Close()
				again := Open(st, Options{})
				defer again.Close()
				if got, _, _ := again.Trials(t.Context(), "s", tuner.Filter{}); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("the store has %v, the study had %v", got, want)
				}
			})
		}
	}
}

// TestAskStoredInPart asks for two trials. The first, from the queue, is stored while
// the second is proposed, and the second is then refused.
func TestAskStoredInPart(t *testing.T) {
	st := newFaulty()
	tn := open(t, st, Options{}, nil)
	x := space.NewConfig(space.Assignment{Name: "x", Value: space.Float(0.5)}, space.Assignment{Name: "n", Value: space.Int(7)}, space.Assignment{Name: "kind", Value: space.String("b")})
	if _, err := tn.Enqueue(t.Context(), "s", study.Enqueue{Config: x}); err != nil {
		t.Fatal(err)
	}
	wrapProposers(tn, func(real propose.Proposer) propose.Proposer {
		return stubborn(func(ctx context.Context, v propose.View, n int) (propose.Proposal, error) {
			if _, err := tn.Study(ctx, "s"); err != nil { // waits until all is stored
				t.Error(err)
			}
			return real.Propose(ctx, v, n)
		})
	})
	tn.forgetName("s")
	st.on(func(i int) error {
		if i == 1 {
			return store.ErrFull
		}
		return nil
	})
	two := study.Ask{RequestID: "two", Count: 2}
	_, err := tn.Ask(t.Context(), "s", two)
	wantCode(t, err, tuner.Unknown)
	asked, err := tn.Ask(t.Context(), "s", two)
	if err != nil || len(asked.Trials) != 2 || asked.Trials[0].Number != 0 || asked.Trials[1].Number != 1 {
		t.Errorf("the same again: %v, %v", asked.Trials, err)
	}
}

// TestLargeReportsDelayNoCall commits many large reports and small calls together. One
// caller's data do not make another's commit too large.
func TestLargeReportsDelayNoCall(t *testing.T) {
	st := newFaulty()
	tn := open(t, st, Options{}, nil)
	large := 20
	if testing.Short() {
		large = 6 // they fit one commit, and the race detector is slow with these bytes
	}
	ask(t, tn, study.Ask{Count: large})
	values := make([]study.NamedValue, study.MaxMetrics)
	for i := range values {
		values[i] = study.NamedValue{Name: fmt.Sprintf("%0*d", study.MaxNameBytes/2, i), Value: 1}
	}
	reports := make([]study.Report, study.MaxReportBatch*9/10) // 4 MiB
	for i := range reports {
		reports[i] = study.Report{Step: int64(i), Values: values}
	}
	st.on(func(int) error { time.Sleep(20 * time.Millisecond); return nil }) // so that calls gather
	var work sync.WaitGroup
	for n := range large {
		work.Go(func() {
			if _, err := tn.Report(t.Context(), "s", study.ReportValues{Trial: n, Reports: reports}); err != nil {
				t.Errorf("a large report: %v", err)
			}
		})
		work.Go(func() {
			if err := tn.SetAttributes(t.Context(), "s", study.SetAttributes{Trial: n, Attributes: study.Attributes{"k": "v"}}); err != nil {
				t.Errorf("a small call beside it: %v", err)
			}
		})
	}
	work.Wait()
}

// TestUnknownOutcomeOfOneStudy loses the answer to a write of one study, once when the
// write was done and once when it was not. The same call again has one effect, and the
// engine goes on.
func TestUnknownOutcomeOfOneStudy(t *testing.T) {
	st := newFaulty()
	tn := open(t, st, Options{OnFatal: func(err error) { t.Errorf("the engine ended: %v", err) }}, nil)
	ask(t, tn, study.Ask{Count: 2})
	lost := &store.UnknownError{Study: 1, Err: errors.New("no answer")}
	for trial, done := range []bool{true, false} {
		if done {
			st.lose(lost)
		} else {
			st.on(func(int) error { return lost })
		}
		tell := study.Tell{RequestID: fmt.Sprint("told-", trial), Trial: trial, Outcome: loss(1)}
		_, err := tn.Tell(t.Context(), "s", tell)
		wantCode(t, err, tuner.Unknown)
		st.on(nil)
		st.lose(nil)
		if _, err := tn.Tell(t.Context(), "s", tell); err != nil {
			t.Errorf("the same call again: %v", err)
		}
		if got := must(tn.Trial(t.Context(), "s", trial)); got.State != study.Completed {
			t.Errorf("the trial is %v", got.State)
		}
	}
}

func TestUnknownOutcomeEndsTheTuner(t *testing.T) {
	st := newFaulty()
	fatal := make(chan error, 2)
	tn := open(t, st, Options{OnFatal: func(err error) { fatal <- err }}, nil)
	ask(t, tn, study.Ask{})
	st.on(func(int) error { return fmt.Errorf("fdatasync: %w", store.ErrUnknownOutcome) })
	_, err := tn.Tell(t.Context(), "s", study.Tell{Trial: 0, Outcome: loss(1)})
	wantCode(t, err, tuner.Unknown)
	if err := <-fatal; !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("fatal: %v", err)
	}
	st.on(nil)
	_, err = tn.Trial(t.Context(), "s", 0)
	wantCode(t, err, tuner.Unknown, "restart")
	_, err = tn.CreateStudy(t.Context(), "t", study.Create{Spec: testSpec(t, nil)})
	wantCode(t, err, tuner.Unknown)
	if len(fatal) > 0 {
		t.Error("OnFatal was called twice")
	}
}

// TestAnotherWriter has two Tuners on one store. Neither knows the other's commits
// until it loses a race, and together they work as one.
func TestAnotherWriter(t *testing.T) {
	st := newFaulty()
	a, b := open(t, st, Options{}, nil), Open(st, Options{})
	defer b.Close()
	var mu sync.Mutex
	var numbers []int
	var work sync.WaitGroup
	for _, tn := range []*Engine{a, b, a, b} {
		work.Go(func() {
			for range 20 {
				trial := ask(t, tn, study.Ask{})[0]
				tell(t, tn, trial.Number, loss(1))
				mu.Lock()
				numbers = append(numbers, trial.Number)
				mu.Unlock()
			}
		})
	}
	work.Wait()
	slices.Sort(numbers)
	for i, n := range numbers {
		if i != n {
			t.Fatalf("trial %d was handed out twice or not at all: %v", i, numbers)
		}
	}
}

// TestReadsSeeOnlyWhatIsStored holds a commit back. No call can read its events until
// it is stored.
func TestReadsSeeOnlyWhatIsStored(t *testing.T) {
	st := newFaulty()
	tn := open(t, st, Options{}, nil)
	ask(t, tn, study.Ask{})
	held, letGo := make(chan bool), make(chan bool)
	st.on(func(n int) error {
		if n == 0 {
			close(held)
			<-letGo
		}
		return nil
	})
	var work sync.WaitGroup
	work.Go(func() { tell(t, tn, 0, loss(1)) })
	<-held
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if trial, err := tn.Trial(short, "s", 0); err == nil {
		t.Errorf("read before it was stored: %v", trial.State)
	}
	work.Go(func() {
		if trial, err := tn.Trial(t.Context(), "s", 0); err != nil || trial.State != study.Completed {
			t.Errorf("read after: %v, %v", trial.State, err)
		}
	})
	close(letGo)
	work.Wait()
}

func TestLeasesOfALongLivedService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaulty()
		tn := open(t, st, Options{LongLived: true, IdleTimeout: time.Hour}, func(c *study.Spec) { c.Lease = time.Minute })
		ask(t, tn, study.Ask{Count: 2, Worker: "w"})
		for range 4 {
			time.Sleep(40 * time.Second)
			if _, err := tn.Heartbeat(t.Context(), "s", study.Heartbeat{Trial: 0, Epoch: 1}); err != nil {
				t.Fatal(err)
			}
		}
		// Trial 1 had no heartbeat and is handed out again, unlike trial 0.
		if got := ask(t, tn, study.Ask{Worker: "v"}); got[0].Number != 1 || got[0].Epoch != 2 {
			t.Errorf("asked after an expiry: %+v", got)
		}
		_, err := tn.Heartbeat(t.Context(), "s", study.Heartbeat{Trial: 1, Epoch: 1})
		wantCode(t, err, tuner.LeaseLost, "to v")
		tn.Close()

		// After a restart, an hour later, leases begin anew.
		time.Sleep(time.Hour)
		tn = Open(st, Options{LongLived: true, IdleTimeout: time.Hour})
		defer tn.Close()
		if got, err := tn.Trial(t.Context(), "s", 0); err != nil || got.State != study.Running {
			t.Errorf("after the restart: %v, %v", got.State, err)
		}
		time.Sleep(50 * time.Second)
		if got, _ := tn.Trial(t.Context(), "s", 0); got.State != study.Running {
			t.Errorf("no grace after the restart: %v", got.State)
		}
		time.Sleep(30 * time.Second)
		if got, _ := tn.Trial(t.Context(), "s", 0); got.State != study.Queued {
			t.Errorf("no expiry after the restart: %v", got.State)
		}
	})
}

// TestLeasesOfACommand uses the stored deadlines and the wall clock.
func TestLeasesOfACommand(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tn := open(t, memory.New(), Options{Now: func() time.Time { return now }}, func(c *study.Spec) { c.Lease, c.Timeout = time.Minute, time.Hour })
	ask(t, tn, study.Ask{})
	now = now.Add(59 * time.Second)
	if got := ask(t, tn, study.Ask{}); got[0].Number != 1 {
		t.Errorf("asked before the deadline: %+v", got[0])
	}
	now = now.Add(time.Second)
	if got := ask(t, tn, study.Ask{}); got[0].Number != 0 || got[0].Epoch != 2 {
		t.Errorf("asked at the deadline: %+v", got[0])
	}
	now = now.Add(time.Hour)
	_, err := tn.Ask(t.Context(), "s", study.Ask{})
	wantCode(t, err, tuner.Finished, "time")
	if s, _ := tn.Study(t.Context(), "s"); s.Status != study.StatusFinished {
		t.Errorf("status: %v", s.Status)
	}
}

// stubborn is a proposer that misbehaves.
type stubborn func(ctx context.Context, v propose.View, n int) (propose.Proposal, error)

func (f stubborn) Propose(ctx context.Context, v propose.View, n int) (propose.Proposal, error) {
	return f(ctx, v, n)
}

func TestFallback(t *testing.T) {
	hang := make(chan bool)
	defer close(hang)
	for name, f := range map[string]stubborn{
		"hangs": func(context.Context, propose.View, int) (propose.Proposal, error) {
			<-hang
			return propose.Proposal{}, nil
		},
		"panics": func(context.Context, propose.View, int) (propose.Proposal, error) { panic("oh") },
		"fails": func(context.Context, propose.View, int) (propose.Proposal, error) {
			return propose.Proposal{}, errors.New("no")
		},
		"says nothing": func(context.Context, propose.View, int) (propose.Proposal, error) { return propose.Proposal{}, nil },
		"talks nonsense": func(context.Context, propose.View, int) (propose.Proposal, error) {
			return propose.Proposal{Suggestions: make([]study.Suggestion, 1)}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			tn := open(t, memory.New(), Options{ProposeTimeout: 10 * time.Millisecond}, nil)
			wrapProposers(tn, func(propose.Proposer) propose.Proposer { return f })
			tn.forgetName("s")
			got := ask(t, tn, study.Ask{Count: 2})
			got = append(got, ask(t, tn, study.Ask{})...)
			for i, trial := range got {
				if trial.Number != i || trial.Suggestion.Phase != study.PhaseFallback {
					t.Errorf("trial %d: %+v", i, trial.Suggestion)
				}
			}
			if got[0].Config.Equal(got[1].Config) || got[1].Config.Equal(got[2].Config) {
				t.Error("the same configuration twice")
			}
		})
	}
}

func TestWatch(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var kinds []string
	sawAll, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		position := study.Position(0)
		for h, err := range tn.Watch(ctx, "s", tuner.From{After: 0}) {
			if err != nil {
				if len(kinds) != 6 || tuner.CodeOf(err) != tuner.NotFound {
					t.Errorf("after %v: %v", kinds, err)
				}
				return
			}
			if position++; h.Position != position {
				t.Errorf("position %d after %d", h.Position, position-1)
			}
			if kinds = append(kinds, h.Kind); len(kinds) == 6 {
				close(sawAll)
			}
		}
	}()
	ask(t, tn, study.Ask{Count: 2})
	tell(t, tn, 1, loss(1))
	if _, err := tn.Report(t.Context(), "s", study.ReportValues{Trial: 0, Reports: []study.Report{{Step: 1, Values: []study.NamedValue{{Name: "loss", Value: 1}}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := tn.Finish(t.Context(), "s", study.Finish{}); err != nil {
		t.Fatal(err)
	}
	for h, err := range tn.Watch(ctx, "s", tuner.From{After: 5}) { // a late watcher
		if err != nil || h.Kind != "finished" || h.Status != study.StatusFinished {
			t.Errorf("from position 5 on: %+v, %v", h, err)
		}
		break
	}
	// The other watcher must have seen all events before the study is deleted.
	select {
	case <-sawAll:
	case <-ended:
	}
	if err := tn.DeleteStudy(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	<-ended
	if want := []string{"created", "started", "started", "told", "reported", "finished"}; !slices.Equal(kinds, want) {
		t.Errorf("watched %v, want %v", kinds, want)
	}
	_, err := tn.Study(t.Context(), "s")
	wantCode(t, err, tuner.NotFound)
}

func TestIdleStudiesLeaveMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tn := open(t, memory.New(), Options{LongLived: true, IdleTimeout: time.Minute}, nil)
		ask(t, tn, study.Ask{})
		tell(t, tn, 0, loss(1))
		time.Sleep(2 * time.Minute)
		tn.mu.Lock()
		if len(tn.inUse) != 0 {
			t.Errorf("%d studies in memory", len(tn.inUse))
		}
		tn.mu.Unlock()
		if got := ask(t, tn, study.Ask{}); got[0].Number != 1 {
			t.Errorf("after it was dropped: %v", got)
		}
		tn.Close()
	})
}

// TestLeasesOutliveIdleness has a worker fail under a lease that is longer than the
// time after which idle studies leave memory.
func TestLeasesOutliveIdleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tn := open(t, memory.New(), Options{LongLived: true}, func(c *study.Spec) { c.Lease, c.MaxTrials = time.Hour, 1 })
		ask(t, tn, study.Ask{Worker: "dead"})
		for range 2 {
			time.Sleep(29 * time.Minute)
			_, err := tn.Ask(t.Context(), "s", study.Ask{})
			wantCode(t, err, tuner.NoneLeft)
		}
		time.Sleep(29 * time.Minute)
		if got := ask(t, tn, study.Ask{}); got[0].Epoch != 2 {
			t.Errorf("asked after the lease was over: %+v", got)
		}
		tn.Close()
	})
}

// TestMissingStudiesLeaveNothing looks up studies that do not exist.
func TestMissingStudiesLeaveNothing(t *testing.T) {
	tn := Open(memory.New(), Options{LongLived: true})
	defer tn.Close()
	for i := range 500 {
		_, err := tn.Study(t.Context(), fmt.Sprint("no-", i))
		wantCode(t, err, tuner.NotFound)
	}
	tn.mu.Lock()
	defer tn.mu.Unlock()
	for _, d := range tn.leaving { // some still have a few instructions to run
		tn.mu.Unlock()
		<-d.stored
		tn.mu.Lock()
	}
	if len(tn.inUse)+len(tn.leaving) > 0 {
		t.Errorf("%d in use, %d leaving", len(tn.inUse), len(tn.leaving))
	}
}

// TestCloseTellsTheTruth closes the engine during asks. No ask gets a code that means no
// effect although its trials were stored.
func TestCloseTellsTheTruth(t *testing.T) {
	for range 30 {
		st := newFaulty()
		tn := open(t, st, Options{}, nil)
		var mu sync.Mutex
		given, unknown := 0, 0
		var work sync.WaitGroup
		for range 16 {
			work.Go(func() {
				for {
					asked, err := tn.Ask(context.Background(), "s", study.Ask{})
					mu.Lock()
					given += len(asked.Trials)
					if tuner.CodeOf(err) == tuner.Unknown {
						unknown++
					}
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		time.Sleep(time.Millisecond)
		tn.Close()
		work.Wait()
		again := Open(st, Options{})
		s, err := again.Study(t.Context(), "s")
		again.Close()
		if err != nil || s.Trials < given || s.Trials > given+unknown {
			t.Fatalf("%d trials were given and %d asks have an unknown outcome, and %d are stored; %v", given, unknown, s.Trials, err)
		}
	}
}

// TestCreateAmongLookers creates 100 studies while others look them up, and 300 if BKB_LONG
// is set.
func TestCreateAmongLookers(t *testing.T) {
	tn := Open(memory.New(), Options{LongLived: true})
	defer tn.Close()
	studies := 100
	switch {
	case testing.Short():
		studies = 30
	case os.Getenv("BKB_LONG") != "":
		studies = 300
	}
	for i := range studies {
		name := fmt.Sprint("s", i)
		stop := make(chan struct{})
		var looking sync.WaitGroup
		for range 4 {
			looking.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						tn.Study(t.Context(), name)
					}
				}
			})
		}
		if _, err := tn.CreateStudy(t.Context(), name, study.Create{Spec: testSpec(t, nil)}); err != nil {
			t.Errorf("create %s: %v", name, err)
		}
		close(stop)
		looking.Wait()
	}
}

// deleting is a store in which another caller reads a study while it is deleted.
type deleting struct {
	*faulty
	look func()
}

func (d *deleting) Delete(ctx context.Context, id store.StudyID) error {
	d.look()
	return d.faulty.Delete(ctx, id)
}

func TestDeletedStudiesStayDead(t *testing.T) {
	st := &deleting{faulty: newFaulty()}
	open(t, st, Options{}, nil).Close()
	tn := Open(st, Options{LongLived: true})
	defer tn.Close()
	st.look = func() {
		if _, err := tn.Study(t.Context(), "s"); err != nil {
			t.Error(err)
		}
	}
	if err := tn.DeleteStudy(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	_, err := tn.Study(t.Context(), "s")
	wantCode(t, err, tuner.NotFound)
	made, err := tn.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, func(c *study.Spec) { c.MaxTrials = 777 })})
	if err != nil || made.Spec.MaxTrials != 777 {
		t.Errorf("created anew: %+v, %v", made.Spec, err)
	}
	ask(t, tn, study.Ask{})
}

// TestGivenUpAsks has callers give up while the proposer works, which hands out no trial. The
// next caller waits for it instead of taking a fallback.
func TestGivenUpAsks(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	patience, giveUp := context.WithCancel(t.Context())
	left := make(chan struct{})
	wrapProposers(tn, func(quick propose.Proposer) propose.Proposer {
		return stubborn(func(ctx context.Context, v propose.View, n int) (propose.Proposal, error) {
			giveUp()
			select {
			case <-left:
			case <-time.After(time.Minute): // in case no caller leaves before the answer
			}
			return quick.Propose(context.WithoutCancel(ctx), v, n)
		})
	})
	tn.forgetName("s")
	_, err := tn.Ask(patience, "s", study.Ask{})
	close(left)
	wantCode(t, err, tuner.Cancelled) // without an effect
	if got := ask(t, tn, study.Ask{})[0]; got.Number != 0 || got.Suggestion.Phase != study.PhaseStart {
		t.Errorf("after an ask that was given up: %+v", got.Suggestion)
	}
	config := ask(t, tn, study.Ask{})[0].Config
	for i := range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%40)*time.Microsecond)
		trial, _ := tn.Enqueue(ctx, "s", study.Enqueue{Config: config})
		_ = trial.Number // a race if another goroutine still writes to it
		cancel()
	}
}

func TestStudies(t *testing.T) {
	st := newFaulty()
	tn := open(t, st, Options{}, nil)
	for _, name := range []string{"b", "a", "z"} {
		if _, err := tn.CreateStudy(t.Context(), name, study.Create{Spec: testSpec(t, nil)}); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, tn, study.Ask{Count: 3})
	tn.Close()
	tn = Open(st, Options{})
	defer tn.Close()
	studies, more, err := tn.Studies(t.Context(), "a", 2)
	if err != nil || !more || len(studies) != 2 || studies[0].Name != "b" || studies[1].Name != "s" || studies[1].Counts[study.Running] != 3 {
		t.Errorf("studies after a: %+v, %t, %v", studies, more, err)
	}
	if len(tn.inUse) != 0 {
		t.Errorf("listing keeps %d studies in memory", len(tn.inUse))
	}
}

func TestEndedContext(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tn.Ask(ctx, "s", study.Ask{})
	wantCode(t, err, tuner.Cancelled)
	_, err = tn.Tell(ctx, "s", study.Tell{Outcome: loss(1)})
	wantCode(t, err, tuner.Cancelled)
	_, err = tn.Study(ctx, "s")
	wantCode(t, err, tuner.Cancelled)
	if s, err := tn.Study(t.Context(), "s"); err != nil || s.Trials != 0 {
		t.Errorf("calls whose time was up left %+v, %v", s, err)
	}
}

func TestClosed(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	if err := errors.Join(tn.Close(), tn.Close()); err != nil {
		t.Fatal(err)
	}
	_, err := tn.Ask(context.Background(), "s", study.Ask{})
	wantCode(t, err, tuner.Unavailable)
}

func report(t testing.TB, s tuner.Service, trial int, step int64, v float64) tuner.Verdict {
	t.Helper()
	verdict, err := s.Report(t.Context(), "s", study.ReportValues{Trial: trial, Reports: []study.Report{{Step: step, Values: []study.NamedValue{{Name: "loss", Value: v}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return verdict
}

// TestPruning has a median pruner stop a trial that is worse than the others, also
// after a restart. It stops no other trial.
func TestPruning(t *testing.T) {
	st := newFaulty()
	tn := open(t, st, Options{}, func(c *study.Spec) {
		c.Pruner = study.Component{Name: "median", Options: `{"min_trials": 3}`}
	})
	for n := range 5 {
		ask(t, tn, study.Ask{})
		for step := range int64(5) {
			if v := report(t, tn, n, step, 1/float64(step+1)); v.Stop {
				t.Errorf("trial %d, like the others, is to stop: %s", n, v.Reason)
			}
		}
		tell(t, tn, n, loss(0.2))
	}
	ask(t, tn, study.Ask{Count: 2})
	good, bad := report(t, tn, 5, 3, 0.1), report(t, tn, 6, 3, 9)
	if good.Stop || !bad.Stop || bad.Reason == "" {
		t.Errorf("a good trial: %+v, a bad one: %+v", good, bad)
	}
	tn.Close()
	tn = Open(st, Options{})
	defer tn.Close()
	if v, err := tn.Heartbeat(t.Context(), "s", study.Heartbeat{Trial: 6}); err != nil || !v.Stop {
		t.Errorf("the bad trial after a restart: %+v, %v", v, err)
	}
	if _, err := tn.Finish(t.Context(), "s", study.Finish{}); err != nil {
		t.Fatal(err)
	}
	if v, err := tn.Heartbeat(t.Context(), "s", study.Heartbeat{Trial: 5}); err != nil || !v.Stop {
		t.Errorf("a running trial of a study finished by hand: %+v, %v", v, err)
	}
}

// TestModelPruning checks that the pruner with a model stops bad trials and gives the
// reason. Trials that become the best continue to their end. Restarts after every call
// change no verdict and no suggestion.
func TestModelPruning(t *testing.T) {
	racetest.Alone(t)
	change := func(c *study.Spec) {
		c.Proposer = study.Component{Name: propose.BKB}
		c.Pruner = study.Component{Name: "model", Options: `{"warmup_steps": 2}`}
	}
	search := func(restart bool) (answers []string, stopped, wrong int) {
		st, best := newFaulty(), math.Inf(1)
		tn := open(t, st, Options{}, change)
		again := func() {
			if restart {
				tn.Close()
				tn = Open(st, Options{})
			}
		}
		for range 30 {
			trial := ask(t, tn, study.Ask{})[0]
			answers = append(answers, fmt.Sprint(trial.Config, trial.Suggestion.Mean, trial.Suggestion.Bound, trial.Suggestion.Beta))
			again()
			v, _ := trial.Config.Get("x")
			x, _ := v.AsFloat()
			final, o := (x-0.3)*(x-0.3), study.Outcome{State: study.Pruned}
			for step := int64(1); step <= 8; step++ {
				v := report(t, tn, trial.Number, step, final+1/float64(step)-0.125)
				answers = append(answers, fmt.Sprint(v.Stop, v.Reason))
				again()
				if beat, err := tn.Heartbeat(t.Context(), "s", study.Heartbeat{Trial: trial.Number}); err != nil || beat.Stop != v.Stop || beat.Reason != v.Reason {
					t.Fatalf("a heartbeat is answered %+v, %v, the report %+v", beat, err, v)
				}
				if v.Stop {
					if stopped++; final < best {
						wrong++
					}
					if !strings.Contains(v.Reason, "loss is predicted to end at") {
						t.Errorf("the reason is %q", v.Reason)
					}
					break
				}
				if step == 8 {
					o, best = loss(final), min(best, final)
				}
			}
			tell(t, tn, trial.Number, o)
			again()
		}
		tn.Close()
		return answers, stopped, wrong
	}
	straight, stopped, wrong := search(false)
	if stopped < 3 || wrong > 0 {
		t.Errorf("%d of 30 trials were stopped, %d of them better than all before", stopped, wrong)
	}
	restarted, _, _ := search(true)
	for i := range straight {
		if straight[i] != restarted[i] {
			t.Fatalf("answer %d was\n%s and is after restarts\n%s", i, straight[i], restarted[i])
		}
	}
	tn := open(t, memory.New(), Options{}, nil)
	_, err := tn.CreateStudy(t.Context(), "t", study.Create{Spec: testSpec(t, func(c *study.Spec) { c.Pruner.Name = "model" })})
	wantCode(t, err, tuner.Invalid, "pruner.name", "sobol has none", "use the proposer bkb")
	_, err = tn.CreateStudy(t.Context(), "t", study.Create{Spec: testSpec(t, func(c *study.Spec) {
		c.Proposer, c.Pruner.Name = study.Component{Name: propose.BKB, Options: `{"reports": "ignore"}`}, "model"
	})})
	wantCode(t, err, tuner.Invalid, "pruner.name", "told to ignore", "leave out the proposer's option reports")
}

// TestCreateTogether checks that one of several callers creates a study and that the
// others hear that it exists. Their repeated requests get the study.
func TestCreateTogether(t *testing.T) {
	tn := Open(newFaulty(), Options{LongLived: true})
	defer tn.Close()
	spec := testSpec(t, nil)
	for n := range 100 {
		name := fmt.Sprint("s", n)
		var created, exists, repeated atomic.Int64
		var calls sync.WaitGroup
		for i := range 16 {
			calls.Go(func() {
				c := study.Create{Spec: spec}
				if i%2 == 0 {
					c.RequestID = "the same"
				}
				_, err := tn.CreateStudy(t.Context(), name, c)
				switch {
				case err == nil && i%2 == 0:
					repeated.Add(1)
				case err == nil:
					created.Add(1)
				case tuner.CodeOf(err) == tuner.AlreadyExists:
					exists.Add(1)
				default:
					t.Errorf("%s: %s: %v", name, tuner.CodeOf(err), err)
				}
			})
		}
		calls.Wait()
		if won := created.Load(); won == 0 && repeated.Load() != 8 || won > 0 && (won != 1 || repeated.Load() != 0) {
			t.Errorf("%s: %d created, %d repeated, %d refused", name, won, repeated.Load(), exists.Load())
		}
	}
}

// TestStopTrial checks that the note study.StopAttribute stops a running trial at its next
// report and heartbeat, also under the next lease, until the note is removed.
func TestStopTrial(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	n := must(tn.Ask(t.Context(), "s", study.Ask{})).Trials[0].Number
	other := must(tn.Ask(t.Context(), "s", study.Ask{New: true})).Trials[0].Number
	verdict := func(n int, want bool, reason string) {
		t.Helper()
		if v := report(t, tn, n, rand.Int64N(1<<40), 0.5); v.Stop != want || v.Reason != reason {
			t.Errorf("a report of trial %d: %+v", n, v)
		}
		if v, err := tn.Heartbeat(t.Context(), "s", study.Heartbeat{Trial: n}); err != nil || v.Stop != want || v.Reason != reason {
			t.Errorf("a heartbeat of trial %d: %+v, %v", n, v, err)
		}
	}
	set := func(reason string) {
		t.Helper()
		if err := tn.SetAttributes(t.Context(), "s", study.SetAttributes{Trial: n, Attributes: study.Attributes{study.StopAttribute: reason}}); err != nil {
			t.Fatal(err)
		}
	}
	verdict(n, false, "")
	set("it diverges")
	verdict(n, true, "it diverges")
	verdict(other, false, "")
	set("")
	verdict(n, false, "")
	set("again")
	verdict(n, true, "again")
	tell(t, tn, n, loss(1))
	if trial := must(tn.Trial(t.Context(), "s", n)); trial.State != study.Completed || trial.Attributes[study.StopAttribute] != "again" {
		t.Errorf("the trial ended as %+v", trial)
	}
}
