package actor

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Processors shares the processors between the studies of an engine.
//
// It limits how many models work for asks at once. Among the waiting asks, the study with
// the least time so far goes first, by start-time fair queueing (Goyal, Vin and Cheng 1996,
// "Start-time fair queueing"). A study that is asked without pause, or for many trials at
// once, thus delays others only by its running asks and not by its waiting ones. Waiting
// does not count towards the time of a proposer. Otherwise every model would be late when
// many studies are asked, and all asks would get fallbacks.
//
// One study at a time prepares suggestions, and begins only while no ask of any study runs
// or waits. Otherwise studies that need no trial now would slow an ask down. A proposer that
// does not return keeps the turn at most maxRest longer than an ask would wait for it.
type Processors struct {
	ctx  context.Context // the engine's
	slot chan struct{}   // holds a token while a study is prepared

	mu      sync.Mutex
	asks    int
	calm    chan struct{} // closed when asks falls to 0
	free    int           // models that may begin to work
	virtual time.Duration // start of the last ask to go
	waiting []*turn       // in order of arrival
}

// share is the time that one study has had. The lock of [Processors] guards it.
type share struct {
	end  time.Duration
	last time.Time // when its last ask went
}

// turn is an ask that waits for its share.
type turn struct {
	of      *share
	start   time.Duration
	granted chan struct{} // closed when the ask may go
}

// NewProcessors allows four working models per processor. With fewer, one slow ask would
// delay the others by all of its time.
func NewProcessors(ctx context.Context) *Processors {
	return &Processors{ctx: ctx, slot: make(chan struct{}, 1), free: 4 * runtime.GOMAXPROCS(0)}
}

// asking counts an ask until done is called. It does not count one that waits for a stuck
// proposer, which needs no processor.
func (p *Processors) asking(stuck bool) (done func()) {
	if stuck {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asks == 0 {
		p.calm = make(chan struct{})
	}
	p.asks++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.asks--; p.asks == 0 {
			close(p.calm)
		}
	}
}

// disturbed returns nil if no ask runs or waits. Otherwise it returns a channel that is
// closed when there are no more.
func (p *Processors) disturbed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asks == 0 {
		return nil
	}
	return p.calm
}

// Prepare waits for the turn to prepare a suggestion. ok is false if ctx, which is that of
// an actor, ends first.
func (p *Processors) Prepare(ctx context.Context) (done func(), ok bool) {
	select {
	case p.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	done = func() { <-p.slot }
	for calm := p.disturbed(); calm != nil; calm = p.disturbed() {
		select {
		case <-calm:
		case <-ctx.Done():
			done()
			return nil, false
		}
	}
	if ctx.Err() != nil || p.ctx.Err() != nil { // the engine's context ends before those of its actors
		done()
		return nil, false
	}
	return done, true
}

// take waits until a study's model may work for an ask, up to the limit. The caller calls
// done when the model has finished.
func (p *Processors) take(ctx context.Context, of *share, limit time.Duration) (done func(), err error) {
	p.mu.Lock()
	t := &turn{of: of, start: max(p.virtual, of.end), granted: make(chan struct{})}
	if p.free > 0 {
		p.free--
		p.grant(t)
		p.mu.Unlock()
		return p.done(t), nil
	}
	p.waiting = append(p.waiting, t)
	p.mu.Unlock()
	select {
	case <-t.granted:
		return p.done(t), nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(limit):
		err = fmt.Errorf("asks of other studies kept the processors busy for %s", limit)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, t); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return nil, err
	}
	p.next() // it was granted at the last moment
	return nil, err
}

// grant lets an ask go. The lock is held.
func (p *Processors) grant(t *turn) {
	p.virtual = max(p.virtual, t.start)
	t.of.last = time.Now()
	close(t.granted)
}

// done returns a function that ends an ask's turn.
func (p *Processors) done(t *turn) func() {
	begun := time.Now()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.of.end = t.start + time.Since(begun)
		p.next()
	}
}

// next lets the next waiting ask go, if there is one. The lock is held.
func (p *Processors) next() {
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	t := slices.MinFunc(p.waiting, func(a, b *turn) int {
		return cmp.Or(cmp.Compare(a.start, b.start), a.of.last.Compare(b.of.last))
	})
	i := slices.Index(p.waiting, t)
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.grant(t)
}
