package actor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// shelf is a backing that keeps events in memory and fails on request.
type shelf struct {
	mu      sync.Mutex
	events  []study.Event
	sizes   []int         // of the commits
	hold    chan struct{} // if not nil, commits wait until it is closed
	refuse  error         // the error of the next commit
	unread  error         // the error of reading
	endings []error       // the errors with which the log was lost
}

func (s *shelf) commit(expected study.Position, events []study.Event, _ []byte) error {
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		<-hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse; err != nil {
		s.refuse = nil
		return err
	}
	if actual := study.Position(len(s.events)); actual != expected {
		return &store.ConflictError{Expected: expected, Actual: actual}
	}
	s.events, s.sizes = append(s.events, events...), append(s.sizes, len(events))
	return nil
}

func (s *shelf) read() (*state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &state{study: new(study.Study), leases: make(leases)}
	for _, e := range s.events {
		if err := v.apply(e, time.Now()); err != nil {
			return nil, err
		}
	}
	return v, s.unread
}

func (s *shelf) lost(err error) { s.endings = append(s.endings, err) }

// runLog returns a running log of a new study. end waits until everything is stored.
func runLog(t *testing.T, s *shelf) (l *eventLog, end func()) {
	t.Helper()
	_, events, err := new(study.Study).Decide(time.Now(), study.Create{Spec: testSpec(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	s.events = events
	ctx, cancel := context.WithCancel(t.Context())
	l = newLog(ctx, "s", s, &Environment{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err := l.load(); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(l.run)
	return l, func() { cancel(); work.Wait() }
}

// mark is a command that makes one event.
func mark(i int) study.Command {
	return study.SetAttributes{Trial: study.OfStudy, Attributes: study.Attributes{fmt.Sprint("k", i): "v"}}
}

func marks(t *testing.T, l *eventLog) (n int) {
	t.Helper()
	if err := l.read(t.Context(), func(v *state) { n = len(v.study.Attributes()) }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLogCommitsInBatches checks that decisions during a commit form the next one.
func TestLogCommitsInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{hold: make(chan struct{})}
		l, end := runLog(t, s)
		var work sync.WaitGroup
		work.Go(func() {
			if err := l.do(t.Context(), mark(0)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		for i := range 8 {
			work.Go(func() {
				if err := l.do(t.Context(), mark(1+i)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(s.hold)
		work.Wait()
		if !slices.Equal(s.sizes, []int{1, 8}) {
			t.Errorf("commits of %v events, want 1 and 8", s.sizes)
		}
		if n := marks(t, l); n != 9 {
			t.Errorf("%d attributes", n)
		}
		end()
	})
}

// TestLogGoneBack checks that the owner of the data hears of a store that lost events
// after it acknowledged them, and that another writer is no alarm.
func TestLogGoneBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *shelf)
		alarm  bool
	}{
		{"lost", func(s *shelf) { s.events = s.events[:2] }, true},
		{"another writer", func(s *shelf) { s.events = append(s.events, s.events[2]) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{}
				l, end := runLog(t, s)
				defer end()
				var log strings.Builder
				l.env.Logger = slog.New(slog.NewTextHandler(&log, nil))
				for i := range 2 {
					if err := l.do(t.Context(), mark(i)); err != nil {
						t.Fatal(err)
					}
				}
				c.change(s)
				if err := l.do(t.Context(), mark(2)); !errors.As(err, new(*store.ConflictError)) {
					t.Errorf("the call: %v", err)
				}
				alarm := strings.Contains(log.String(), "the log is shorter than acknowledged") && strings.Contains(log.String(), "acknowledged=3 stored=2")
				if alarm != c.alarm || strings.Contains(log.String(), "level=ERROR") != c.alarm {
					t.Errorf("the log has:\n%s", log.String())
				}
			})
		})
	}
}

// TestLogAfterARefusedCommit checks that calls with events in or after a refused commit
// fail. The study is then as stored, a suggestion made meanwhile is discarded, and the
// log continues.
func TestLogAfterARefusedCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{hold: make(chan struct{}), refuse: store.ErrFull}
		l, end := runLog(t, s)
		defer end()
		var work sync.WaitGroup
		for i := range 3 {
			work.Go(func() {
				if err := l.do(t.Context(), mark(i)); !errors.Is(err, store.ErrFull) {
					t.Errorf("call %d: %v", i, err)
				}
				if n := len(l.state.study.Attributes()); n != 0 {
					t.Errorf("call %d: the study was not read again before the call returned: %d attributes", i, n)
				}
			})
			synctest.Wait()
		}
		work.Go(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if err := l.unlocked(func() { close(s.hold); synctest.Wait() }); !errors.Is(err, ErrDiscarded) {
				t.Errorf("what was made meanwhile: %v", err)
			}
			if err := l.unlocked(func() {}); err != nil {
				t.Errorf("and later: %v", err)
			}
		})
		work.Wait()
		if err := l.do(t.Context(), mark(5)); err != nil || marks(t, l) != 1 || len(s.endings) != 0 {
			t.Errorf("then: %v, %d attributes, ended with %v", err, marks(t, l), s.endings)
		}
	})
}

// TestLogEnds checks that the backing learns of the end before the call returns. A log
// ends when the store does not know whether it wrote, when the study was deleted, or
// when it cannot be read again.
func TestLogEnds(t *testing.T) {
	unreadable := errors.New("unreadable")
	for name, c := range map[string]struct{ refuse, unread, want error }{
		"unknown":    {fmt.Errorf("sync: %w", store.ErrUnknownOutcome), nil, store.ErrUnknownOutcome},
		"deleted":    {&store.NotFoundError{Study: 1}, nil, nil},
		"unreadable": {store.ErrFull, unreadable, unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{}
			l, end := runLog(t, s)
			defer end()
			s.mu.Lock()
			s.refuse, s.unread = c.refuse, c.unread
			s.mu.Unlock()
			if err := l.do(t.Context(), mark(0)); !errors.Is(err, c.refuse) {
				t.Errorf("the call: %v", err)
			}
			if len(s.endings) != 1 || c.want != nil && !errors.Is(s.endings[0], c.want) {
				t.Errorf("ended with %v", s.endings)
			}
			if err := l.do(t.Context(), mark(1)); !errors.Is(err, c.refuse) {
				t.Errorf("the next call: %v", err)
			}
			if err := l.read(t.Context(), func(*state) { t.Error("read") }); !errors.Is(err, c.refuse) {
				t.Errorf("a read: %v", err)
			}
		})
	}
}

// TestLogRetires checks that all decisions are stored before the end, and watchers
// woken.
func TestLogRetires(t *testing.T) {
	s := &shelf{}
	l, end := runLog(t, s)
	if err := l.updateLater(t.Context(), func(*state) error { _, err := l.decide(t.Context(), mark(0)); return err }); err != nil {
		t.Fatal(err)
	}
	_, advanced, _, err := l.since(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	end()
	<-advanced
	if len(s.events) != 2 {
		t.Errorf("%d events are stored", len(s.events))
	}
	if err := l.do(t.Context(), mark(1)); !errors.Is(err, ErrRetired) {
		t.Errorf("decided after the end: %v", err)
	}
	if _, _, _, err := l.since(t.Context(), 0); !errors.Is(err, ErrRetired) {
		t.Errorf("watched after the end: %v", err)
	}
}

// TestLogPublishes checks that a watcher waits for news and sees stored events.
func TestLogPublishes(t *testing.T) {
	s := &shelf{}
	l, end := runLog(t, s)
	defer end()
	view, advanced, _, err := l.since(t.Context(), 1)
	if err != nil || view != nil {
		t.Fatalf("at the head: %v, %v", view, err)
	}
	if err := l.do(t.Context(), mark(0)); err != nil {
		t.Fatal(err)
	}
	<-advanced
	if view, _, _, err = l.since(t.Context(), 1); err != nil || view == nil || view.Position() != 2 {
		t.Errorf("after an event: %v, %v", view, err)
	}
}

// TestLogGivenUp checks that a caller that gives up does not know the outcome. The
// event is stored.
func TestLogGivenUp(t *testing.T) {
	s := &shelf{hold: make(chan struct{})}
	l, end := runLog(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.do(ctx, mark(0)); !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	close(s.hold)
	end()
	if len(s.events) != 2 {
		t.Errorf("%d events are stored", len(s.events))
	}
}
