package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

func askOne(t *testing.T, tn *Engine) study.Trial {
	t.Helper()
	asked, err := tn.Ask(t.Context(), "s", study.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	return asked.Trials[0]
}

// TestTellAndAsk tells outcomes and asks for the next trials in one call. The study is the
// same as that of a tell and an ask, and has one commit for both if no model works on the ask.
func TestTellAndAsk(t *testing.T) {
	for _, proposer := range []string{"random", "bkb"} {
		proposed := func(s *study.Spec) { s.Proposer = study.Component{Name: proposer} }
		apart := open(t, newFaulty(), Options{LongLived: true}, proposed)
		commits, st := 0, newFaulty()
		together := open(t, st, Options{LongLived: true}, proposed)
		st.on(func(int) error { commits++; return nil })
		a, b := askOne(t, apart), askOne(t, together)
		for n := range 30 {
			if d := cmp.Diff(a.Config.String(), b.Config.String()); d != "" {
				t.Fatalf("%s, trial %d: %s", proposer, n, d)
			}
			outcome := study.Measured("loss", float64(n%7))
			if _, err := apart.Tell(t.Context(), "s", study.Tell{Trial: n, Outcome: outcome}); err != nil {
				t.Fatal(err)
			}
			a = askOne(t, apart)
			told, err := together.Tell(t.Context(), "s", study.Tell{Trial: n, Outcome: outcome, Next: &study.Ask{}})
			if err != nil || told.Trial.State != study.Completed || told.Next == nil {
				t.Fatalf("%s, trial %d: %+v, %v", proposer, n, told, err)
			}
			b = told.Next.Trials[0]
		}
		if proposer == "random" && commits != 31 {
			t.Errorf("%d commits of an ask and 30 pairs, want 31", commits)
		}
		if x, y := snapshot(t, apart), snapshot(t, together); x.Position() < y.Position() {
			t.Errorf("%s: %d events apart and %d together", proposer, x.Position(), y.Position())
		}
	}
}

// TestTellWithoutNext has tells whose ask is refused, and asks whose tell is.
func TestTellWithoutNext(t *testing.T) {
	tn := open(t, newFaulty(), Options{LongLived: true}, func(s *study.Spec) { s.MaxTrials = 2 })
	askOne(t, tn)
	good, next := study.Measured("loss", 1), &study.Ask{RequestID: "next"}
	for name, c := range map[string]study.Tell{
		"no such trial": {Trial: 5, Outcome: good, Next: next},
		"no such loss":  {Outcome: study.Measured("gain", 1), Next: next},
		"a lost lease":  {Epoch: 7, Outcome: good, Next: next},
	} {
		if told, err := tn.Tell(t.Context(), "s", c); err == nil {
			t.Errorf("%s: %+v", name, told)
		}
		if n := snapshot(t, tn).Trials(); n != 1 {
			t.Fatalf("%s: %d trials, want 1", name, n)
		}
	}
	tell := func(c study.Tell, want int) {
		t.Helper()
		for range 2 { // and again
			told, err := tn.Tell(t.Context(), "s", c)
			if err != nil || told.Trial.State != study.Completed {
				t.Fatalf("%+v, %v", told, err)
			}
			if got := told.Next; want < 0 && got != nil || want >= 0 && (got == nil || len(got.Trials) != 1 || got.Trials[0].Number != want) {
				t.Errorf("next is %+v, want trial %d", got, want)
			}
		}
	}
	tell(study.Tell{RequestID: "first", Outcome: good, Next: next}, 1)
	tell(study.Tell{RequestID: "many", Outcome: good, Next: &study.Ask{Count: study.MaxCount + 1}}, -1)
	tell(study.Tell{RequestID: "last", Trial: 1, Outcome: good, Next: &study.Ask{RequestID: "over"}}, -1)
	if _, err := tn.Ask(t.Context(), "s", study.Ask{RequestID: "over"}); tuner.CodeOf(err) != tuner.Finished {
		t.Error(err)
	}
}

// TestTellAndAskNotStored refuses the commit of both. Neither is acknowledged, and the same
// call succeeds later.
func TestTellAndAskNotStored(t *testing.T) {
	for _, proposer := range []string{"random", "bkb"} {
		st := newFaulty()
		tn := open(t, st, Options{LongLived: true}, func(s *study.Spec) { s.Proposer = study.Component{Name: proposer} })
		askOne(t, tn)
		st.on(func(int) error { return store.ErrFull })
		c := study.Tell{RequestID: "t", Outcome: study.Measured("loss", 1), Next: &study.Ask{RequestID: "a"}}
		if told, err := tn.Tell(t.Context(), "s", c); !errors.Is(err, store.ErrFull) {
			t.Errorf("%s: %+v, %v", proposer, told, err)
		}
		st.on(nil)
		if v := snapshot(t, tn); v.Trials() != 1 || v.Count(study.Running) != 1 {
			t.Errorf("%s: %d trials and %d running, want 1", proposer, v.Trials(), v.Count(study.Running))
		}
		if told, err := tn.Tell(t.Context(), "s", c); err != nil || told.Next == nil || told.Next.Trials[0].Number != 1 {
			t.Errorf("%s: %+v, %v", proposer, told, err)
		}
	}
}

// TestTellStoredAskNot lets a commit of the ask fail, and its time run out, after the outcome is
// stored. The answer does not say that the call had no effect.
func TestTellStoredAskNot(t *testing.T) {
	for name, failure := range map[string]error{
		"unavailable": store.ErrUnavailable, "closed": store.ErrClosed, "conflict": &store.ConflictError{Expected: 1, Actual: 5}, "late": nil,
	} {
		st, stored := newFaulty(), make(chan struct{})
		tn := Open(st, Options{LongLived: true})
		ctx, cancel := context.WithCancel(t.Context())
		wrapProposers(tn, func(p propose.Proposer) propose.Proposer {
			return ending{p.(propose.Modeler), func(v propose.View) {
				if first, _ := v.Trial(0); first.State != study.Completed {
					return
				}
				if <-stored; failure == nil {
					cancel()
				}
			}}
		})
		t.Cleanup(func() { tn.Close() })
		if _, err := tn.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, func(s *study.Spec) { s.Proposer.Name = "bkb" })}); err != nil {
			t.Fatal(err)
		}
		askOne(t, tn)
		st.on(func(n int) error {
			if n > 0 {
				return failure
			}
			close(stored)
			return nil
		})
		c := study.Tell{RequestID: "t", Outcome: study.Measured("loss", 1), Next: &study.Ask{RequestID: "a"}}
		if told, err := tn.Tell(ctx, "s", c); tuner.CodeOf(err) != tuner.Unknown {
			t.Errorf("%s: %+v, %s, %v", name, told, tuner.CodeOf(err), err)
		}
		cancel()
		st.on(nil)
		if told, err := tn.Tell(t.Context(), "s", c); err != nil || told.Trial.State != study.Completed || told.Next == nil || told.Next.Trials[0].Number != 1 {
			t.Errorf("%s, again: %+v, %v", name, told, err)
		}
	}
}

// ending is a proposer that calls a function first.
type ending struct {
	propose.Modeler
	first func(propose.View)
}

func (e ending) Propose(ctx context.Context, v propose.View, n int) (propose.Proposal, error) {
	e.first(v)
	return e.Modeler.Propose(ctx, v, n)
}
