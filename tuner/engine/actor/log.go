package actor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// The limits of a batch. An event past them begins the next batch. The events of one
// command stay together, as even the largest command is far below the limits of a
// store.
const (
	maxBatch      = 4096     // events
	maxBatchBytes = 16 << 20 // by approximateSize
)

// ErrRetired is the error of a call whose study was dropped from memory. The call
// continues with the study's next actor.
var ErrRetired = errors.New("the study was dropped from memory")

// ErrDiscarded is the error of an ask whose study was read again while the proposer was
// working. Its suggestion rests on events that were not stored.
var ErrDiscarded = errors.New("the study was read again")

// backing stores the events of a log.
type backing interface {
	// commit stores events after those at positions up to expected, with a summary of the
	// study after them, if any.
	commit(expected study.Position, events []study.Event, summary []byte) error
	// read reads the study from its stored events.
	read() (*state, error)
	// lost is called when the log ends because of a commit that failed.
	lost(err error)
}

// eventLog is the log of one study. It decides commands on the live study, which is
// ahead of the store. One goroutine, run, commits the events in order and in batches
// and announces each commit. A call waits until everything it decided or saw is stored.
//
// The lock mu guards the fields below it and everything in the live study. It is held
// during decisions, but not while the store or a proposer works. Only run's goroutine
// replaces state, committed and advanced.
type eventLog struct {
	ctx       context.Context // ends when the study is dropped from memory
	name      string
	backing   backing
	env       *Environment
	monotonic func() time.Time
	wake      chan struct{} // holds a token if there may be something to commit
	waits     atomic.Bool   // whether a lease or timeout is still to end

	mu        sync.Mutex
	state     *state
	committed study.Position
	queue     []*batch      // not stored yet, though the first may be on its way to the store
	broken    error         // why the log decides nothing more, or nil
	advanced  chan struct{} // closed when committed grows or the log ends
	looked    time.Time     // when settle last read the monotonic clock
}

// batch holds events that are stored together.
type batch struct {
	events []study.Event // fixed once taken is set
	bytes  int           // approximate
	taken  bool          // whether commit has it, guarded by the log's mu
	done   chan struct{}
	err    error // set before done is closed
}

// stored reports whether a batch is known to be stored.
func (b *batch) stored() bool {
	if b == nil {
		return false
	}
	select {
	case <-b.done:
		return b.err == nil
	default:
		return false
	}
}

// newLog returns a log that has not been loaded.
func newLog(ctx context.Context, name string, b backing, env *Environment) *eventLog {
	return &eventLog{
		ctx: ctx, name: name, backing: b, env: env, monotonic: time.Now, wake: make(chan struct{}, 1), advanced: make(chan struct{}),
	}
}

// load reads the study. After run has started, only its goroutine calls load.
func (l *eventLog) load() error {
	v, err := l.backing.read()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.committed = v, v.study.Position()
	return nil
}

// run commits until the study is dropped from memory, and then commits the rest.
func (l *eventLog) run() {
	for {
		select {
		case <-l.wake:
			l.commit()
		case <-l.ctx.Done():
			l.mu.Lock()
			if l.broken == nil {
				l.broken = ErrRetired
			}
			l.mu.Unlock()
			l.commit()
			close(l.advanced) // watchers continue with the study's next actor
			return
		}
	}
}

// current returns the live study, or the error why nothing more is decided. The lock is
// held.
func (l *eventLog) current() (*state, error) { return l.state, l.broken }

// suggester returns the suggester of the live study.
func (l *eventLog) suggester() *suggester {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.suggester
}

// decide applies a command of the context's [tuner.Caller] to the live study. The lock is
// held. The caller must wait for the barrier.
func (l *eventLog) decide(ctx context.Context, cmd study.Command) (study.Reply, error) {
	v, err := l.current()
	if err != nil {
		return study.Reply{}, err
	}
	by := tuner.CallerOf(ctx)
	if err := permit(by, l.name, v.study, cmd); err != nil {
		return study.Reply{}, err
	}
	reply, events, err := v.study.Decide(l.env.Now(), settled(v.study.Spec(), cmd))
	Sign(by, events)
	if err == nil {
		err = quota{l.env.MaxStudyBytes, l.env.MaxStudyReports}.refuse(v.held, cmd, reply, events)
	}
	if err != nil {
		return reply, err
	}
	for _, e := range events {
		if err := v.apply(e, l.monotonic()); err != nil {
			l.broken = fmt.Errorf("study %s: applying a decided event: %w", l.name, err)
			return study.Reply{}, l.broken
		}
	}
	l.enqueue(events)
	return reply, nil
}

// settled is a command whose outcome the study stores.
func settled(spec study.Spec, cmd study.Command) study.Command {
	switch c := cmd.(type) {
	case study.Tell:
		c.Outcome = propose.Settle(spec, c.Outcome)
		return c
	case study.Add:
		c.Outcome = propose.Settle(spec, c.Outcome)
		return c
	}
	return cmd
}

// enqueue puts the events of one command into a batch. The lock is held.
func (l *eventLog) enqueue(events []study.Event) {
	if len(events) == 0 {
		return
	}
	size := 0
	for _, e := range events {
		size += view.Size(e)
	}
	if last := l.last(); last == nil || last.taken || len(last.events)+len(events) > maxBatch || last.bytes+size > maxBatchBytes {
		l.queue = append(l.queue, &batch{done: make(chan struct{})})
	}
	last := l.last()
	last.events, last.bytes = append(last.events, events...), last.bytes+size
}

// last returns the last batch that is not stored yet, or nil. The lock is held.
func (l *eventLog) last() *batch {
	if len(l.queue) == 0 {
		return nil
	}
	return l.queue[len(l.queue)-1]
}

// barrier returns the last batch that is not stored yet, or nil, and wakes run to
// commit it. The lock is held.
func (l *eventLog) barrier() *batch {
	select {
	case l.wake <- struct{}{}:
	default: // run will wake anyway
	}
	return l.last()
}

// wait waits until a batch is stored. If ctx ends first, the outcome is unknown.
func (l *eventLog) wait(ctx context.Context, b *batch) error {
	if b == nil {
		return nil
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		select {
		case <-b.done:
			return b.err
		default:
			return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, ctx.Err())
		}
	}
}

// stage calls f with the live study under the lock. It returns f's error and the batch
// to wait for. Wait even after an error, because what f saw may not be stored yet.
func (l *eventLog) stage(f func(v *state) error) (*batch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := f(l.state)
	return l.barrier(), err
}

// update calls f with the live study under the lock, and waits until everything that f
// decided or saw is stored. A storage error takes precedence over f's error.
func (l *eventLog) update(ctx context.Context, f func(v *state) error) error {
	l.mu.Lock()
	return l.release(ctx, f(l.state))
}

// updateLater is update for calls that wait for their events themselves (Tell), or whose changes need
// not be stored at once (Heartbeat). It waits only if f returns an error, because what f saw may not be stored yet.
func (l *eventLog) updateLater(ctx context.Context, f func(v *state) error) error {
	l.mu.Lock()
	if err := f(l.state); err != nil {
		return l.release(ctx, err)
	}
	l.mu.Unlock()
	return nil
}

// release unlocks and waits until everything that was decided or seen is stored. A
// storage error takes precedence over err.
func (l *eventLog) release(ctx context.Context, err error) error {
	b := l.barrier()
	l.mu.Unlock()
	return cmp.Or(l.wait(ctx, b), err)
}

// do decides a command and waits until it is stored.
func (l *eventLog) do(ctx context.Context, cmd study.Command) error {
	return l.update(ctx, func(*state) error {
		_, err := l.decide(ctx, cmd)
		return err
	})
}

// read calls f with the live study under the lock, and waits until everything that f
// saw is stored. It does not call f after the log has ended.
func (l *eventLog) read(ctx context.Context, f func(v *state)) error {
	return l.update(ctx, func(v *state) error {
		if l.broken == nil {
			f(v)
		}
		return l.broken
	})
}

// snapshot returns the stored study.
func (l *eventLog) snapshot(ctx context.Context) (v *study.View, err error) {
	err = l.read(ctx, func(l *state) { v = l.study.Snapshot() })
	return v, err
}

// since returns the stored study if it is ahead of a position. Otherwise it returns nil
// and a channel that is closed when that may have changed.
func (l *eventLog) since(ctx context.Context, after study.Position) (view *study.View, advanced <-chan struct{}, end study.Position, err error) {
	l.mu.Lock()
	advanced, end = l.advanced, l.committed
	v, err := l.current()
	if err != nil || end <= after {
		l.mu.Unlock()
		return nil, advanced, end, err
	}
	return v.study.Snapshot(), advanced, end, l.release(ctx, nil)
}

// unlocked releases the lock while it calls f. It returns ErrDiscarded if the live
// study was replaced meanwhile.
func (l *eventLog) unlocked(f func()) error {
	before := l.state
	l.mu.Unlock()
	f()
	l.mu.Lock()
	if l.state != before {
		return ErrDiscarded
	}
	return nil
}

// commit stores the queue, batch by batch, until it is empty.
func (l *eventLog) commit() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.mu.Unlock()
			return
		}
		b := l.queue[0]
		b.taken = true
		expected := l.committed
		var summary []byte
		if l.state.study.Position() == expected+study.Position(len(b.events)) { // it is ahead if more batches wait
			summary = l.state.summary()
		}
		l.mu.Unlock()

		begun := time.Now()
		err := l.backing.commit(expected, b.events, summary)
		if err == nil {
			ObserveCommit(&l.env.Observer, b.events, time.Since(begun))
		}
		l.mu.Lock()
		done := l.queue[:1]
		if err != nil {
			done = l.queue // later decisions rest on events that were not stored
			l.broken = err // recover clears it
		} else {
			l.committed += study.Position(len(b.events))
			l.publish()
		}
		l.queue = l.queue[len(done):]
		l.mu.Unlock()
		if err != nil {
			l.recover(err)
		}
		for _, b := range done {
			b.err = err
			close(b.done)
		}
	}
}

// publish wakes calls that wait for a commit. The lock is held.
func (l *eventLog) publish() {
	close(l.advanced)
	l.advanced = make(chan struct{})
}

// recover continues after a failed commit with the stored study. The log ends if the
// store does not know whether it wrote, if another server has the study, or if the study
// cannot be read.
func (l *eventLog) recover(err error) {
	fenced := (*store.FencedError)(nil)
	switch {
	case errors.As(err, &fenced):
		l.env.Logger.Info("another server has the study", "study", l.name, "server", fenced.Server.Address)
		l.retire(err)
		return
	case errors.Is(err, store.ErrUnknownOutcome) && !Fatal(err):
		l.env.Logger.Error("the outcome of a write to one study is unknown; the study is read again", "study", l.name, "error", err)
		l.retire(err)
		return
	case errors.Is(err, store.ErrUnknownOutcome):
		l.backing.lost(err)
		return
	}
	switch conflict := (*store.ConflictError)(nil); {
	case errors.As(err, &conflict) && conflict.Actual < conflict.Expected:
		l.env.Logger.Error("the log is shorter than acknowledged; the store lost events, as a database does that fails over to a standby that lagged",
			"study", l.name, "acknowledged", conflict.Expected, "stored", conflict.Actual)
	case conflict != nil:
		l.env.Logger.Info("another writer was first; the study is read again", "study", l.name)
	default:
		l.env.Logger.Info("commit refused", "study", l.name, "error", err)
	}
	if missing := (*store.NotFoundError)(nil); errors.As(err, &missing) {
		l.backing.lost(err) // the study was deleted
		return
	}
	if readErr := l.load(); readErr != nil {
		l.env.Logger.Error("reading the study again failed", "study", l.name, "error", readErr)
		l.backing.lost(readErr)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.publish() // another writer may have stored events
	if l.broken = nil; l.ctx.Err() != nil {
		l.broken = ErrRetired
	}
}

// retire ends the log after a commit that failed. Calls continue with the study's next
// actor.
func (l *eventLog) retire(err error) {
	l.mu.Lock()
	l.broken = ErrRetired
	l.mu.Unlock()
	l.backing.lost(err)
}

// Fatal tells whether err leaves the outcome of a write unknown and does not concern one
// study alone.
func Fatal(err error) bool {
	one := (*store.UnknownError)(nil)
	return errors.Is(err, store.ErrUnknownOutcome) && !errors.As(err, &one)
}
