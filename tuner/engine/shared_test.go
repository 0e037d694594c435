package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/store"
	leased "github.com/bkbtuner/bkb/store/lease"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// undying is a shared store that survives its servers. It loses the answers of commits
// on request.
type undying struct {
	*memory.Store
	mu   sync.Mutex
	lost func(late func() error) error // the answer to a commit that late does
}

func (u *undying) Close() error { return nil }

func (u *undying) DeleteAs(ctx context.Context, c store.Claim) error {
	err := u.Store.DeleteAs(ctx, c)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lost != nil && err == nil {
		return &store.UnknownError{Study: c.Study, Err: context.DeadlineExceeded}
	}
	return err
}

func (u *undying) lose(answer func(late func() error) error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lost = answer
}

func (u *undying) CommitAs(ctx context.Context, c store.Claim, expected study.Position, events []study.Event, summary []byte) error {
	u.mu.Lock()
	lost := u.lost
	u.mu.Unlock()
	commit := func() error { return u.Store.CommitAs(ctx, c, expected, events, summary) }
	if lost != nil {
		return lost(commit)
	}
	return commit()
}

// server is an Engine on a shared store.
func server(t *testing.T, s store.Shared, address string, o Options) (*Engine, *leased.Member) {
	t.Helper()
	m, err := leased.Join(t.Context(), s, leased.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	o.LongLived = true
	tn := Open(m, o)
	t.Cleanup(func() { _ = tn.Close() })
	return tn, m
}

func wantOwner(t *testing.T, err error, address string) {
	t.Helper()
	if fenced := (*store.FencedError)(nil); !errors.As(err, &fenced) || fenced.Server.Address != address || tuner.CodeOf(err) != tuner.Unavailable {
		t.Errorf("error is %v with code %s, want that the study belongs to %s", err, tuner.CodeOf(err), address)
	}
}

func TestOneServerHasAStudy(t *testing.T) {
	shared := &undying{Store: memory.New()}
	a, _ := server(t, shared, "a:1", Options{})
	b, _ := server(t, shared, "b:1", Options{})
	must(a.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, nil)}))
	asked := must(a.Ask(t.Context(), "s", study.Ask{RequestID: "1"}))
	_, err := b.Ask(t.Context(), "s", study.Ask{RequestID: "2"})
	wantOwner(t, err, "a:1")
	_, err = b.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, nil)})
	wantOwner(t, err, "a:1") // the owner knows whether it is a retry
	wantOwner(t, b.DeleteStudy(t.Context(), "s"), "a:1")
	list, _, err := b.Studies(t.Context(), "", 0)
	if err != nil || len(list) != 1 || list[0].Trials != 1 {
		t.Errorf("the other server lists %v, %v", list, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if again := must(b.Ask(t.Context(), "s", study.Ask{RequestID: "1"})); again.Trials[0].Number != asked.Trials[0].Number {
		t.Errorf("the repeated ask got trial %d, want %d", again.Trials[0].Number, asked.Trials[0].Number)
	}
	if err := b.DeleteStudy(t.Context(), "s"); err != nil {
		t.Error(err)
	}
}

// TestTakenOver takes a study from a server that does not know it.
func TestTakenOver(t *testing.T) {
	shared := &undying{Store: memory.New()}
	a, m := server(t, shared, "a:1", Options{})
	b, _ := server(t, shared, "b:1", Options{})
	must(a.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, nil)}))
	asked := must(a.Ask(t.Context(), "s", study.Ask{})).Trials[0]
	if err := shared.Unregister(t.Context(), m.ID()); err != nil {
		t.Fatal(err)
	}
	if err := tellLoss(t, b, asked.Number, 1); err != nil {
		t.Fatal(err)
	}
	_, err := a.Ask(t.Context(), "s", study.Ask{Worker: "late"})
	wantOwner(t, err, "b:1")
	watched := 0
	for _, err := range a.Watch(t.Context(), "s", tuner.From{After: 0}) {
		if err != nil {
			wantOwner(t, err, "b:1")
		} else {
			watched++
		}
	}
	if s := must(b.Study(t.Context(), "s")); s.Counts[study.Completed] != 1 || s.Trials != 1 {
		t.Errorf("the study has %v, watched %d", s.Counts, watched)
	}
}

func tellLoss(t *testing.T, s tuner.Service, trial int, value float64) error {
	t.Helper()
	_, err := s.Tell(t.Context(), "s", study.Tell{Trial: trial, Outcome: loss(value)})
	return err
}

// TestUnknownOfOneStudy loses the answer of a commit, which the store does only after the
// study was read again. Other studies and the engine go on.
func TestUnknownOfOneStudy(t *testing.T) {
	for name, done := range map[string]bool{"done": true, "late": false} {
		t.Run(name, func(t *testing.T) {
			shared := &undying{Store: memory.New()}
			a, _ := server(t, shared, "a:1", Options{OnFatal: func(err error) { t.Errorf("the engine ended: %v", err) }})
			must(a.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, nil)}))
			must(a.CreateStudy(t.Context(), "other", study.Create{Spec: testSpec(t, nil)}))
			trial := must(a.Ask(t.Context(), "s", study.Ask{})).Trials[0].Number
			var late func() error
			shared.lose(func(commit func() error) error {
				shared.lose(nil)
				if late = commit; done {
					if err := commit(); err != nil {
						t.Error(err)
					}
				}
				return &store.UnknownError{Study: 1, Err: context.DeadlineExceeded}
			})
			if err := tellLoss(t, a, trial, 0.25); tuner.CodeOf(err) != tuner.Unknown {
				t.Errorf("the tell ended with %v, want %s", err, tuner.Unknown)
			}
			s := must(a.Study(t.Context(), "s"))
			if got := s.Counts[study.Completed] == 1; got != done {
				t.Errorf("the trial is told: %t, want %t", got, done)
			}
			if err := late(); !errors.As(err, new(*store.FencedError)) {
				t.Errorf("the late write ended with %v, want a FencedError", err)
			}
			if err := tellLoss(t, a, trial, 0.25); err != nil {
				t.Error(err)
			}
			must(a.Ask(t.Context(), "other", study.Ask{}))
		})
	}
}

// TestUnknownDeletion loses the answer of a deletion. The study in memory is not shown
// any more.
func TestUnknownDeletion(t *testing.T) {
	shared := &undying{Store: memory.New()}
	a, _ := server(t, shared, "a:1", Options{})
	must(a.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, nil)}))
	shared.lose(func(late func() error) error { return late() })
	if err := a.DeleteStudy(t.Context(), "s"); tuner.CodeOf(err) != tuner.Unknown {
		t.Errorf("the deletion ended with %v, want %s", err, tuner.Unknown)
	}
	if s, err := a.Study(t.Context(), "s"); tuner.CodeOf(err) != tuner.NotFound {
		t.Errorf("the deleted study is %+v, %v", s, err)
	}
}

// TestIdleStudyIsFree lets another server have a study that its owner dropped from
// memory.
func TestIdleStudyIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &undying{Store: memory.New()}
		a, _ := server(t, shared, "a:1", Options{IdleTimeout: 10 * time.Millisecond})
		b, _ := server(t, shared, "b:1", Options{})
		must(a.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, nil)}))
		for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			_, err := b.Study(t.Context(), "s")
			if err == nil {
				break
			}
			wantOwner(t, err, "a:1")
			if time.Since(begun) > time.Minute {
				t.Fatal("the study stays with its idle owner")
			}
		}
	})
}

// TestWatchStudiesOfOthers watches all studies at a server while others change them.
func TestWatchStudiesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &undying{Store: memory.New()}
		a, _ := server(t, shared, "a:1", Options{})
		b, _ := server(t, shared, "b:1", Options{})
		must(b.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, nil)}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		step := 0
		for news, err := range a.WatchStudies(ctx) {
			if err != nil {
				t.Fatalf("in step %d: %v", step, err)
			}
			for _, s := range news.Studies {
				switch {
				case step == 0 && s.Name == "s":
					must(b.Ask(t.Context(), "s", study.Ask{}))
					step = 1
				case step == 1 && s.Name == "s" && s.Trials == 1:
					must(b.CreateStudy(t.Context(), "new", study.Create{Spec: testSpec(t, nil)}))
					step = 2
				case step == 2 && s.Name == "new":
					if err := b.DeleteStudy(t.Context(), "s"); err != nil {
						t.Fatal(err)
					}
					step = 3
				}
			}
			if step == 3 && len(news.Deleted) == 1 {
				return
			}
		}
	})
}
