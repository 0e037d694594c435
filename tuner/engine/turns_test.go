package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// gated is a proposer that waits to be let through before each step, and counts them.
type gated struct {
	propose.Proposer
	propose.Modeler // nil, for the methods that are not called
	through         chan struct{}
	choose          func() []int // of a recommendation, or nil

	mu                      sync.Mutex
	anchors, proposals      int
	atWork, most, recommend int
}

func (g *gated) pass(what *int) {
	g.mu.Lock()
	*what++
	g.atWork++
	g.most = max(g.most, g.atWork)
	g.mu.Unlock()
	<-g.through
	g.mu.Lock()
	g.atWork--
	g.mu.Unlock()
}

func (g *gated) Anchor(context.Context, propose.View) (study.Anchor, bool, error) {
	g.pass(&g.anchors)
	return study.Anchor{}, false, nil
}

func (g *gated) Propose(ctx context.Context, v propose.View, n int) (propose.Proposal, error) {
	g.pass(&g.proposals)
	return g.Proposer.Propose(ctx, v, n)
}

func (g *gated) Recommend(context.Context, propose.View) (func() []int, error) {
	g.mu.Lock()
	g.recommend++
	g.mu.Unlock()
	return func() []int {
		if g.choose != nil {
			return g.choose()
		}
		return nil
	}, nil
}

// counts returns the numbers of anchors, proposals and recommendations so far, and the
// most of the first two at once.
func (g *gated) counts() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fmt.Sprint(g.anchors, g.proposals, g.recommend, g.most)
}

func wantCounts(t *testing.T, when string, g *gated, want string) {
	t.Helper()
	synctest.Wait()
	if got := g.counts(); got != want {
		t.Fatalf("%s: anchors, proposals, recommendations and the most at once are %s, want %s", when, got, want)
	}
}

// gatedStudies returns a long-lived service, just opened. It has studies of the given
// names, each with a running trial, and one proposer for all.
func gatedStudies(t *testing.T, names ...string) (*Engine, *gated) {
	t.Helper()
	st := newFaulty()
	tn := Open(st, Options{})
	g := &gated{through: make(chan struct{})}
	for _, name := range names {
		if _, err := tn.CreateStudy(t.Context(), name, study.Create{Spec: testSpec(t, nil)}); err != nil {
			t.Fatal(err)
		}
		if _, err := tn.Ask(t.Context(), name, study.Ask{}); err != nil {
			t.Fatal(err)
		}
	}
	tn.Close()
	tn = Open(st, Options{LongLived: true, ProposeTimeout: time.Hour})
	wrapProposers(tn, func(p propose.Proposer) propose.Proposer {
		g.Proposer = p
		return g
	})
	for _, name := range names {
		if _, err := tn.Study(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	return tn, g
}

// TestReadersHaveNothingPrepared checks that reading a study makes no model.
func TestReadersHaveNothingPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tn, g := gatedStudies(t, "s")
		defer tn.Close()
		for _, read := range []func() error{
			func() error { _, err := tn.Study(t.Context(), "s"); return err },
			func() error { _, err := tn.Trial(t.Context(), "s", 0); return err },
			func() error { _, _, err := tn.Trials(t.Context(), "s", tuner.Filter{}); return err },
			func() error { _, _, err := tn.Studies(t.Context(), "", 0); return err },
			func() error { return tn.SetAttributes(t.Context(), "s", study.SetAttributes{}) },
		} {
			if err := read(); err != nil {
				t.Fatal(err)
			}
			wantCounts(t, "read", g, "0 0 0 0")
		}
		if _, err := tn.Best(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "asked for the best", g, "0 0 1 0")
		report(t, tn, 0, 1, 0.5)
		wantCounts(t, "reported", g, "1 0 1 1") // a worker's call starts a preparation
		close(g.through)
		wantCounts(t, "let through", g, "1 1 1 1")
	})
}

// TestAsksPassRecommendations checks that an ask is answered while the trials are compared
// for a recommendation, and that callers who want the same wait for one comparison.
func TestAsksPassRecommendations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tn, g := gatedStudies(t, "s")
		defer tn.Close()
		close(g.through)
		report(t, tn, 0, 1, 0.5)
		tell(t, tn, 0, loss(1))
		synctest.Wait() // a suggestion is prepared
		finish := make(chan struct{})
		g.choose = func() []int {
			<-finish
			return []int{0}
		}
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				if best, err := tn.Best(t.Context(), "s"); err != nil || len(best) != 1 || best[0].Number != 0 {
					t.Errorf("the best are %v, %v", best, err)
				}
			})
		}
		synctest.Wait()
		for range 2 { // the second suggestion is not prepared
			if asked, err := tn.Ask(t.Context(), "s", study.Ask{New: true}); err != nil || asked.Trials[0].Suggestion.Phase == study.PhaseFallback {
				t.Errorf("while trials are compared: %v, %v", asked, err)
			}
		}
		close(finish)
		callers.Wait()
		if g.recommend != 1 {
			t.Errorf("the proposer recommended %d times for 3 callers", g.recommend)
		}
	})
}

// TestPanickingRecommendation checks that the best measured trial stands in for a
// recommendation that panics.
func TestPanickingRecommendation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tn, g := gatedStudies(t, "s")
		defer tn.Close()
		close(g.through)
		tell(t, tn, 0, loss(1))
		g.choose = func() []int { panic("choosing") }
		for range 2 {
			if best, err := tn.Best(t.Context(), "s"); err != nil || len(best) != 1 || best[0].Number != 0 {
				t.Errorf("the best are %v, %v", best, err)
			}
		}
		if g.recommend != 2 {
			t.Errorf("the proposer was asked %d times, so a panic was kept", g.recommend)
		}
	})
}

// TestOnePreparationAtOnce checks that studies whose workers come back are prepared one
// after another. Closed studies wait for no turn.
func TestOnePreparationAtOnce(t *testing.T) {
	names := strings.Split("abcdefgh", "")
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tn, g := gatedStudies(t, names...)
			for _, name := range names {
				if _, err := tn.Heartbeat(t.Context(), name, study.Heartbeat{Trial: 0}); err != nil {
					t.Fatal(err)
				}
			}
			wantCounts(t, "all are due", g, "1 0 0 1")
			if closed {
				tn.Close() // would hang if a closed study waited
				close(g.through)
				wantCounts(t, "closed", g, "1 0 0 1")
				return
			}
			for i := range names {
				g.through <- struct{}{}
				wantCounts(t, "a model is made", g, fmt.Sprint(i+1, i+1, 0, 1))
				g.through <- struct{}{}
				wantCounts(t, "a suggestion is made", g, fmt.Sprint(min(i+2, len(names)), i+1, 0, 1))
			}
			tn.Close()
		})
	}
}

// TestPreparationsMakeWay checks that no preparation begins while an ask of any study
// is running. A running preparation ends after its model when an ask comes, or when a
// call consults the proposer.
func TestPreparationsMakeWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tn, g := gatedStudies(t, "s", "other")
		defer tn.Close()
		var work sync.WaitGroup
		work.Go(func() { ask(t, tn, study.Ask{}) })
		wantCounts(t, "asked", g, "1 0 0 1")
		if _, err := tn.Heartbeat(t.Context(), "other", study.Heartbeat{Trial: 0}); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "another is due", g, "1 0 0 1")
		g.through <- struct{}{}
		wantCounts(t, "the ask's suggestion", g, "1 1 0 1")
		g.through <- struct{}{}
		work.Wait()
		wantCounts(t, "one of the two is prepared", g, "2 1 0 1")

		// When an ask comes, the preparation ends with its model. The other study is
		// prepared only after the ask is answered.
		work.Go(func() { ask(t, tn, study.Ask{}) })
		wantCounts(t, "asked again", g, "2 1 0 1")
		g.through <- struct{}{}
		wantCounts(t, "the ask's turn", g, "3 1 0 1")
		close(g.through)
		work.Wait()
		wantCounts(t, "all is done", g, "4 3 0 1")
	})
	synctest.Test(t, func(t *testing.T) {
		tn, g := gatedStudies(t, "s")
		defer tn.Close()
		report(t, tn, 0, 1, 0.5)
		wantCounts(t, "reported", g, "1 0 0 1")
		var work sync.WaitGroup
		work.Go(func() {
			if _, err := tn.Best(t.Context(), "s"); err != nil {
				t.Error(err)
			}
		})
		wantCounts(t, "the best waits", g, "1 0 0 1")
		g.through <- struct{}{}
		work.Wait() // would hang behind a suggestion, which is still shut
		close(g.through)
	})
}

// TestStuckProposer checks a proposer that does not return. It delays the preparation
// of other studies once, for a minute after its time is over. Tells to its study and
// asks for its trials, which get a fallback, delay them no further. Once the proposer
// has returned, its study is prepared again.
func TestStuckProposer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 10 * time.Second
		tn := Open(newFaulty(), Options{LongLived: true, ProposeTimeout: patience})
		defer tn.Close()
		proposers := make(map[string]*gated)
		var made *gated
		wrapProposers(tn, func(p propose.Proposer) propose.Proposer {
			made = &gated{Proposer: p, through: make(chan struct{})}
			return made
		})
		for _, name := range []string{"stuck", "other"} {
			if _, err := tn.CreateStudy(t.Context(), name, study.Create{Spec: testSpec(t, func(c *study.Spec) { c.Lease = 24 * time.Hour })}); err != nil {
				t.Fatal(err)
			}
			proposers[name] = made
		}
		stuck, other := proposers["stuck"], proposers["other"]
		close(other.through)
		back := sync.OnceFunc(func() { close(stuck.through) })
		defer back()
		var waiting sync.WaitGroup
		defer waiting.Wait()
		asked := func(name, phase string) int {
			t.Helper()
			got, err := tn.Ask(t.Context(), name, study.Ask{})
			if err != nil || got.Trials[0].Suggestion.Phase != phase {
				t.Fatalf("asked %s: %+v, %v", name, got, err)
			}
			return got.Trials[0].Number
		}
		told := func(name string, trial int) {
			t.Helper()
			if _, err := tn.Tell(t.Context(), name, study.Tell{Trial: trial, Outcome: loss(1)}); err != nil {
				t.Error(err)
			}
		}
		prepared := func(when string, g *gated, anchors int) {
			t.Helper()
			synctest.Wait()
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.anchors != anchors {
				t.Fatalf("%s: %d models were due, want %d", when, g.anchors, anchors)
			}
		}
		trial := asked("stuck", study.PhaseFallback)
		prepared("asked", stuck, 1)
		told("stuck", trial)
		synctest.Wait()
		mine := asked("other", study.PhaseStart)
		told("other", mine)
		prepared("the turn is another's", other, 1) // by the ask
		time.Sleep(patience + time.Minute + time.Second)
		prepared("a minute is over", other, 2)

		for range 4 { // workers of the other study come and go while some wait for the stuck one
			for range 2 {
				waiting.Go(func() { told("stuck", asked("stuck", study.PhaseFallback)) })
			}
			time.Sleep(time.Second)
			other.mu.Lock()
			before := other.anchors
			other.mu.Unlock()
			told("other", asked("other", study.PhaseStart))
			prepared("others wait", other, before+2)
			waiting.Wait()
		}
		prepared("all that time", stuck, 1)
		back()
		synctest.Wait()
		told("stuck", asked("stuck", study.PhaseStart))
		prepared("it is back", stuck, 3)
	})
}
