package tuner

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// shares divides the time of the processors between the models of the studies. Only so
// many models are at work for asks at once. Of the asks that wait, the one goes first
// whose study has had the least time: start-time fair queueing (Goyal, Vin and Cheng
// 1996, "Start-time fair queueing"). So a study that is asked without pause, or for many
// trials at once, delays another by the asks that are at work and not by those that
// wait. The time to wait does not count towards [Options.ProposeTimeout]: without shares
// every model would be late when many studies are asked, and all would get fallbacks.
type shares struct {
	mu      sync.Mutex
	free    int
	virtual time.Duration // the start of the ask that went last
	waiting []*turn       // in order of arrival
}

// share is the time that one study has had; the lock of [shares] guards it.
type share struct {
	end  time.Duration
	last time.Time // when an ask of it went last
}

// turn is an ask that waits for its share.
type turn struct {
	of      *share
	start   time.Duration
	granted chan struct{} // closed when it goes
}

// newShares allows four models at work for each processor: fewer would let a slow ask
// delay the others by all the time that it takes.
func newShares() *shares { return &shares{free: 4 * runtime.GOMAXPROCS(0)} }

// take waits for a study's turn, but no longer than the limit. The caller calls done when
// its model has been at work.
func (s *shares) take(ctx context.Context, of *share, limit time.Duration) (done func(), err error) {
	s.mu.Lock()
	t := &turn{of: of, start: max(s.virtual, of.end), granted: make(chan struct{})}
	if s.free > 0 {
		s.free--
		s.grant(t)
		s.mu.Unlock()
		return s.done(t), nil
	}
	s.waiting = append(s.waiting, t)
	s.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-t.granted:
		return s.done(t), nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = fmt.Errorf("asks of other studies were at work for %s", limit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, t); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return nil, err
	}
	s.next() // it was granted at this very moment
	return nil, err
}

// grant lets an ask go. The lock is held.
func (s *shares) grant(t *turn) {
	s.virtual = max(s.virtual, t.start)
	t.of.last = time.Now()
	close(t.granted)
}

// done returns what ends an ask's turn.
func (s *shares) done(t *turn) func() {
	begun := time.Now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.of.end = t.start + time.Since(begun)
		s.next()
	}
}

// next lets the ask go that is due, if one waits. The lock is held.
func (s *shares) next() {
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	t := slices.MinFunc(s.waiting, func(a, b *turn) int {
		return cmp.Or(cmp.Compare(a.start, b.start), a.of.last.Compare(b.of.last))
	})
	i := slices.Index(s.waiting, t)
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.grant(t)
}
