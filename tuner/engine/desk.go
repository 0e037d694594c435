package engine

import (
	"context"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// desk is a study in use. Its log, proposer and clock decide the calls, and the desk
// opens and ends the three.
//
//	call ──► proposer ──► clock ──► log ──► backing (the desk, over the store)
//
// A call enters this line at one of the three and passes through the rest of it. A desk
// loads its study once. It retires when the study is dropped from memory, and the next
// call makes a new desk.
type desk struct {
	t       *Engine
	name    string
	users   int       // calls that hold the desk, guarded by t.mu
	lastUse time.Time // guarded by t.mu

	predecessor *desk
	loaded      chan struct{}   // closed when loading has ended
	loadErr     error           // set before loaded is closed
	gone        chan struct{}   // closed when the log has ended
	id          store.StudyID   // set before loaded is closed
	ctx         context.Context // ends when the desk retires
	retire      context.CancelFunc

	log         *eventLog
	clock       *clock
	proposer    *proposer
	columns     columns
	importances importances
}

// newDesk returns a desk. It loads its study once its predecessor, if any, has stored
// all of its events.
func newDesk(t *Engine, name string, predecessor *desk) *desk {
	d := &desk{
		t: t, name: name, lastUse: time.Now(), predecessor: predecessor,
		loaded: make(chan struct{}), gone: make(chan struct{}),
	}
	d.ctx, d.retire = context.WithCancel(t.ctx)
	d.log = newLog(d.ctx, name, d, t.options)
	d.clock = newClock(name, t.options)
	d.proposer = newProposer(d.ctx, name, d.log, d.clock, t)
	return d
}

// run loads the study and commits until the desk retires.
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
	d.t.work.Go(d.proposer.run)
	d.log.run()
	if d.intact() {
		d.yield()
	}
}

func (d *desk) load() error {
	info, err := d.t.store.Lookup(d.t.ctx, d.name)
	if err != nil {
		return err
	}
	d.id = info.ID
	if f, ok := d.t.store.(store.Fencing); ok { // before reading, so that nothing changes afterwards
		if err := f.Acquire(d.t.ctx, d.id); err != nil {
			return err
		}
	}
	err = d.log.load()
	if err != nil {
		d.yield()
	}
	return err
}

// yieldPatience is how long a desk tries to give a study back to a store that does not
// answer.
const yieldPatience = 5 * time.Second

// yield gives the study back to a store that several servers share. Closing the store
// gives back all studies at once.
func (d *desk) yield() {
	f, ok := d.t.store.(store.Fencing)
	if !ok || d.t.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(d.t.ctx, yieldPatience)
	defer cancel()
	if err := f.Yield(ctx, d.id); err != nil && d.t.ctx.Err() == nil {
		d.t.options.Logger.Warn("giving a study back failed, so it stays with this server", "study", d.name, "error", err)
	}
}

// commit implements [backing]. A commit is not interrupted when the engine ends.
func (d *desk) commit(expected study.Position, events []study.Event, summary []byte) error {
	err := d.t.store.Commit(context.WithoutCancel(d.t.ctx), d.id, expected, events, summary)
	if err == nil {
		d.t.notices.changed(d.name)
	}
	return err
}

// read implements [backing].
func (d *desk) read() (*live, error) { return readLive(d.t.ctx, d.t.store, d.id, d.name, d.t.options) }

// lost implements [backing]. The engine ends if the store does not know what it holds.
// Otherwise the desk retires, also if the store does not know what this one study holds,
// because the next desk reads it again.
func (d *desk) lost(err error) {
	if fatal(err) {
		d.t.fail(err)
	} else {
		d.t.forget(d)
	}
}

// tick ticks the clock of a loaded study. A long-lived engine calls it every second.
func (d *desk) tick() {
	select {
	case <-d.loaded:
	default:
		return
	}
	if d.loadErr == nil {
		d.clock.tick(d.log)
	}
}

// intact tells whether the desk has retired and all of its study is stored.
func (d *desk) intact() bool {
	_, ok := d.glance()
	return ok
}

// glance returns the study as the desk left it. If not all of it is stored, ok is false.
func (d *desk) glance() (g glance, ok bool) {
	l := d.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == nil || l.broken != errRetired || l.live.study.Position() != l.committed {
		return glance{}, false
	}
	return glance{view(d.name, d.id, l.live.study), l.live.digest}, true
}
