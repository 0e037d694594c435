package engine

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// shares divides processor time between the models of the studies. It limits how many
// models work for asks at once. Among the waiting asks, the study with the least time
// so far goes first, by start-time fair queueing (Goyal, Vin and Cheng 1996,
// "Start-time fair queueing"). A study that is asked without pause, or for many trials
// at once, thus delays others only by its running asks and not by its waiting ones.
// Waiting does not count towards [Options.ProposeTimeout]. Without shares, every model
// would be late when many studies are asked, and all asks would get fallbacks.
type shares struct {
	mu      sync.Mutex
	free    int
	virtual time.Duration // start of the last ask to go
	waiting []*turn       // in order of arrival
}

// share is the time that one study has had. The lock of [shares] guards it.
type share struct {
	all  *shares
	end  time.Duration
	last time.Time // when its last ask went
}

// turn is an ask that waits for its share.
type turn struct {
	of      *share
	start   time.Duration
	granted chan struct{} // closed when the ask may go
}

// newShares allows four working models per processor. With fewer, one slow ask would
// delay the others by all of its time.
func newShares() *shares { return &shares{free: 4 * runtime.GOMAXPROCS(0)} }

// Take implements [actor.Share].
func (s *share) Take(ctx context.Context, limit time.Duration) (done func(), err error) {
	return s.all.take(ctx, s, limit)
}

// take waits for a study's turn, up to the limit.
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
		err = fmt.Errorf("asks of other studies kept the processors busy for %s", limit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, t); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return nil, err
	}
	s.next() // it was granted at the last moment
	return nil, err
}

// grant lets an ask go. The lock is held.
func (s *shares) grant(t *turn) {
	s.virtual = max(s.virtual, t.start)
	t.of.last = time.Now()
	close(t.granted)
}

// done returns a function that ends an ask's turn.
func (s *shares) done(t *turn) func() {
	begun := time.Now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.of.end = t.start + time.Since(begun)
		s.next()
	}
}

// next lets the next waiting ask go, if there is one. The lock is held.
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
