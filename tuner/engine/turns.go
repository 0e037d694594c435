package engine

import (
	"context"
	"sync"
)

// turns lets one study of an Engine at a time prepare suggestions. A preparation begins
// only while no ask of any study runs or waits. Otherwise studies that need no trial
// now would slow an ask down until it gets a fallback. A proposer that does not return
// keeps the turn at most maxRest longer than an ask would wait for it.
type turns struct {
	ctx  context.Context // the engine's
	slot chan struct{}   // holds a token while a study is prepared

	mu   sync.Mutex
	asks int
	calm chan struct{} // closed when asks falls to 0
}

func newTurns(ctx context.Context) *turns { return &turns{ctx: ctx, slot: make(chan struct{}, 1)} }

// Asking implements [actor.Processors].
func (t *turns) Asking(stuck bool) (done func()) {
	if stuck {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asks == 0 {
		t.calm = make(chan struct{})
	}
	t.asks++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.asks--; t.asks == 0 {
			close(t.calm)
		}
	}
}

// disturbed returns nil if no ask runs or waits. Otherwise it returns a channel that is
// closed when there are no more.
func (t *turns) disturbed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asks == 0 {
		return nil
	}
	return t.calm
}

// Asked implements [actor.Processors].
func (t *turns) Asked() bool { return t.disturbed() != nil }

// Prepare implements [actor.Processors]. ctx is that of an actor.
func (t *turns) Prepare(ctx context.Context) (done func(), ok bool) {
	select {
	case t.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	for calm := t.disturbed(); calm != nil; calm = t.disturbed() {
		select {
		case <-calm:
		case <-ctx.Done():
			t.pass()
			return nil, false
		}
	}
	if ctx.Err() != nil || t.ctx.Err() != nil { // the engine's context ends before those of its actors
		t.pass()
		return nil, false
	}
	return t.pass, true
}

// pass gives the turn to the next study.
func (t *turns) pass() { <-t.slot }
