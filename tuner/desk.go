package tuner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bkbtuner/bkb/internal/planted"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/bkbtuner/bkb/tuner/study"
)

// What a batch has at most before the next is begun. A command's events are never
// split; those of the largest are far below what a store takes.
const (
	maxBatch      = 4096     // events
	maxBatchBytes = 16 << 20 // by approximateSize
)

// errRetired is what a desk answers that has been dropped from memory: whoever
// gets it takes the study's new desk.
var errRetired = errors.New("the study was dropped from memory")

// errDiscarded is what an ask ends with whose study was read anew while the
// proposer was at work: what it would answer rests on what was not stored.
var errDiscarded = errors.New("the study was read anew")

// desk is where one study is worked on. Decisions are made under mu on the live
// study, which runs ahead of the store; one goroutine commits their events in
// order, in batches; whoever decided or read waits until what it saw is stored.
// Another goroutine makes suggestions, one ask at a time.
type desk struct {
	t       *Tuner
	name    string
	users   int       // calls that hold the desk; guarded by t.mu
	lastUse time.Time // guarded by t.mu

	waits       atomic.Bool // for a lease or the study's end: the clock will have something to do
	predecessor *desk
	loaded      chan struct{} // closed when loading is over
	loadErr     error         // set before loaded is closed
	gone        chan struct{} // closed when the committer has ended
	id          store.StudyID
	ctx         context.Context // ends when the desk retires
	retire      context.CancelFunc
	asks        chan func()   // for the proposer's goroutine
	wake        chan struct{} // for the committer's

	mu         sync.Mutex
	s          *study.Study
	committed  study.Position
	queue      []*batch // on their way to the store; the first may be being committed
	broken     error    // nothing more is decided
	advanced   chan struct{}
	leases     leases
	looked     time.Time // when settle last looked at the clock
	suggester  *suggester
	pruner     prune.Pruner // nil for none
	worked     bool         // a worker has called
	preparing  atomic.Bool  // a suggestion, in the background, or waiting for the turn
	consulting atomic.Int32 // calls that wait to consult the proposer
}

// batch is a run of events on their way to the store.
type batch struct {
	events []study.Event // fixed once taken
	bytes  int           // about
	taken  bool          // by the committer; guarded by the desk's mu
	done   chan struct{}
	err    error // set before done is closed
}

// stored tells whether a batch is stored, and this is known.
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

// newDesk returns a desk that loads its study once its predecessor, if any, has
// stored all it had to.
func newDesk(t *Tuner, name string, predecessor *desk) *desk {
	d := &desk{
		t: t, name: name, lastUse: time.Now(), predecessor: predecessor,
		loaded: make(chan struct{}), gone: make(chan struct{}), asks: make(chan func(), 4096), wake: make(chan struct{}, 1), advanced: make(chan struct{}),
	}
	d.ctx, d.retire = context.WithCancel(t.ctx)
	return d
}

// run loads the study and then commits until the desk retires.
func (d *desk) run() {
	defer d.t.gone(d)
	if d.predecessor != nil {
		<-d.predecessor.gone
		d.predecessor = nil
	}
	d.loadErr = d.load()
	close(d.loaded)
	if d.loadErr != nil {
		return
	}
	d.t.work.Go(d.suggest)
	for {
		select {
		case <-d.wake:
			d.commit()
		case <-d.ctx.Done():
			d.mu.Lock()
			if d.broken == nil {
				d.broken = errRetired
			}
			d.mu.Unlock()
			d.commit()
			close(d.advanced) // whoever watches goes to the study's next desk
			return
		}
	}
}

// load reads the study from the store.
func (d *desk) load() error {
	ctx := d.t.ctx
	info, err := d.t.store.Lookup(ctx, d.name)
	if err != nil {
		return err
	}
	d.id = info.ID
	return d.reload()
}

// reload folds the log anew into a fresh state. It is called by the committer's
// goroutine only.
func (d *desk) reload() error {
	if planted.Is(planted.StaleAfterRefusal) && d.s != nil {
		return nil
	}
	s, ls, now := new(study.Study), make(leases), time.Now() // leases begin when all is read
	for r, err := range d.t.store.Read(d.t.ctx, d.id, 0) {
		if err != nil {
			return err
		}
		if err := s.Apply(r.Event); err != nil {
			return &store.CorruptError{Study: d.id, Position: r.Position, Reason: err.Error()}
		}
		ls.observe(r.Event, now)
	}
	proposer, err := newSuggester(s.Spec(), d.t.options)
	if err != nil {
		return fmt.Errorf("study %s: %w", d.name, err)
	}
	pruner, err := prune.New(s.Spec().Pruner, s.Spec())
	if err != nil {
		return fmt.Errorf("study %s: %w", d.name, err)
	}
	if pruner != nil {
		for t := range s.All(0) {
			pruner.Update(t)
		}
	}
	ls.grace(time.Now())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.s, d.committed, d.leases, d.suggester, d.pruner = s, s.Position(), ls, proposer, pruner
	return nil
}

// do decides one command and waits until what it did, or saw, is stored.
func (d *desk) do(ctx context.Context, cmd study.Command) (study.Reply, error) {
	d.mu.Lock()
	reply, decideErr := d.decide(cmd)
	b := d.barrier()
	d.mu.Unlock()
	if err := d.wait(ctx, b); err != nil {
		return study.Reply{}, err
	}
	return reply, decideErr
}

// decide applies a command to the live study; d.mu is held. The events are on
// their way to the store, and the caller must wait for the barrier.
func (d *desk) decide(cmd study.Command) (study.Reply, error) {
	if d.broken != nil {
		return study.Reply{}, d.broken
	}
	reply, events, err := d.s.Decide(d.t.options.Now(), cmd)
	if err != nil {
		return reply, err
	}
	for _, e := range events {
		if err := d.s.Apply(e); err != nil {
			d.broken = fmt.Errorf("study %s: an event of our own making: %w", d.name, err)
			return study.Reply{}, d.broken
		}
		d.leases.observe(e, time.Now())
		d.tellPruner(e)
	}
	if !d.worked && ofWorkers(cmd) {
		d.worked = true
		d.prepare()
	}
	if len(events) == 0 {
		return reply, nil
	}
	size := 0
	for _, e := range events {
		size += approximateSize(e)
	}
	if last := d.last(); last == nil || last.taken || len(last.events)+len(events) > maxBatch || last.bytes+size > maxBatchBytes {
		d.queue = append(d.queue, &batch{done: make(chan struct{})})
	}
	last := d.last()
	if planted.Is(planted.TwoCommitTell) && len(events) > 1 {
		last.events = append(last.events, events[0])
		last, events = &batch{done: make(chan struct{})}, events[1:]
		d.queue = append(d.queue, last)
	}
	last.events, last.bytes = append(last.events, events...), last.bytes+size
	return reply, nil
}

// ofWorkers tells whether a command is one of those that evaluate trials, who will
// ask for more.
func ofWorkers(cmd study.Command) bool {
	switch cmd.(type) {
	case study.Ask, study.Tell, study.ReportValues, study.Heartbeat:
		return true
	default:
		return false
	}
}

// tellPruner keeps the pruner up to date with an event that was just applied;
// d.mu is held.
func (d *desk) tellPruner(e study.Event) {
	if d.pruner == nil {
		return
	}
	if n, ok := e.Trial(); ok {
		t, _ := d.s.Trial(n)
		d.pruner.Update(t)
	}
}

// last returns the last batch on its way to the store, nil if all is stored;
// d.mu is held.
func (d *desk) last() *batch {
	if len(d.queue) == 0 {
		return nil
	}
	return d.queue[len(d.queue)-1]
}

// barrier returns the last batch on its way to the store, nil if all is stored,
// and sees to it that it is committed; d.mu is held.
func (d *desk) barrier() *batch {
	select {
	case d.wake <- struct{}{}:
	default: // the committer knows
	}
	return d.last()
}

// wait waits until a batch is stored. If ctx ends first, the outcome is unknown
// to the caller.
func (d *desk) wait(ctx context.Context, b *batch) error {
	if b == nil || planted.Is(planted.AckBeforeCommit) {
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

// commit stores what was decided, batch by batch, until nothing is left.
func (d *desk) commit() {
	for {
		d.mu.Lock()
		if len(d.queue) == 0 {
			d.mu.Unlock()
			return
		}
		b := d.queue[0]
		b.taken = true
		expected := d.committed
		d.mu.Unlock()

		// The context is not a caller's: a commit under way is seen through.
		err := d.t.store.Commit(context.WithoutCancel(d.t.ctx), d.id, expected, b.events)
		d.mu.Lock()
		done := d.queue[:1]
		if err != nil {
			done = d.queue // what was decided since rests on what was not stored
			d.broken = err // until reloaded
		} else {
			d.committed += study.Position(len(b.events))
			close(d.advanced)
			d.advanced = make(chan struct{})
		}
		d.queue = d.queue[len(done):]
		d.mu.Unlock()
		if err != nil {
			d.recover(err)
		}
		for _, b := range done {
			b.err = err
			close(b.done)
		}
	}
}

// recover goes on after a commit that failed: from what the store holds if it
// knows that nothing was written, and not at all if it does not know.
func (d *desk) recover(err error) {
	if errors.Is(err, store.ErrUnknownOutcome) {
		d.t.fail(err)
		return
	}
	d.t.options.Logger.Warn("a commit was refused", "study", d.name, "error", err)
	if missing := (*store.NotFoundError)(nil); errors.As(err, &missing) {
		d.t.forget(d) // deleted
		return
	}
	if reloadErr := d.reload(); reloadErr != nil {
		d.t.options.Logger.Error("the study cannot be read again", "study", d.name, "error", reloadErr)
		d.t.forget(d)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.advanced) // there may be news of other writers
	d.advanced = make(chan struct{})
	if d.broken = nil; d.ctx.Err() != nil {
		d.broken = errRetired // nobody would commit
	}
}

// read calls f with the live study, under the desk's lock, and waits until what
// it saw is stored.
func (d *desk) read(ctx context.Context, f func(s *study.Study)) error {
	d.mu.Lock()
	if d.broken != nil {
		err := d.broken
		d.mu.Unlock()
		return err
	}
	f(d.s)
	b := d.barrier()
	d.mu.Unlock()
	if planted.Is(planted.ReadUncommitted) {
		return nil
	}
	return d.wait(ctx, b)
}
