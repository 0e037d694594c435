// Package actor has one study in use. An [Actor] decides the calls of its study and knows
// no other study.
//
// # How a call works
//
//	Ask, Enqueue, Add ──► queue ──► log ──► store
//	Tell, Report, Heartbeat, reads ► log ──► store
//	every second (long-lived), clock ► log ──► store
//
// The log holds the study (package study), which is ahead of the store. It decides every
// call under one lock, in microseconds. Its goroutine commits the decided events in order
// and in batches. A call returns when its events are stored, except a heartbeat. A read also waits until
// everything it saw is stored. Calls therefore behave as if they happened one at a time,
// every answer is on disk, and 64 clients share one fsync.
//
// The commands that make trials take turns on the goroutines of their callers. A suggestion
// sees every earlier one as pending, and its trial number is fixed in advance. It is made
// without the lock, so tells, reports and heartbeats do not wait for it. If
// the study's proposer (package propose) is late, fails, panics or makes an invalid
// suggestion, the ask gets a random configuration, marked as a fallback.
//
// If the store refuses a commit without writing anything, for example because the disk is
// full, the waiting calls fail and the log reads its study again.
//
// A long-lived engine has the next suggestion prepared in the background, with the model
// that is due before it. This begins after each tell, and when a worker first calls for a
// study just loaded. The first ask after a restart waits for the rest of that work.
//
// # Locks
//
// The log's lock guards the study, the state kept beside it, the queue of batches, and
// those fields of the queue whose comments say so. It is not held while the
// store or the proposer works. Suggestions, preparations and consultations (Best, Diagnose
// and the forecast for a pruner) take turns with the token of the study's suggester.
//
// # Leases
//
// A long-lived engine measures leases by its monotonic clock. When it loads a study, the
// leases of running trials begin anew, spread a little. A heartbeat takes effect at once
// and is stored with the next commit. If the process was stopped for a while, every lease
// is extended by the pause. A command on a local file uses the stored deadlines and the
// wall clock.
package actor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/artifacts"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Environment is what all actors of an engine share.
type Environment struct {
	Store      store.Store
	Processors *Processors
	Memory     *memlimit.Limit
	// Propose makes the proposers, as [propose.New] does.
	Propose func(c study.Component, spec study.Spec) (propose.Proposer, error)
	// Work counts the goroutines of all actors. Their contexts end before it is waited for.
	Work *sync.WaitGroup
	// Changed is called after each commit.
	Changed func(study string)
	// Lost is called when the log ended because of a commit that failed. Calls continue with
	// the study's next actor, unless the store does not know what it holds.
	Lost func(a *Actor, err error)

	// The rest are options of the engine.

	LongLived       bool          // leases follow the monotonic clock, and suggestions are prepared
	ProposeTimeout  time.Duration // from which on an ask gets a fallback
	MaxStudyBytes   int64         // in one study, 0 for no limit
	MaxStudyReports int64         // likewise
	Now             func() time.Time
	Logger          *slog.Logger
	Observer        tuner.Observer
	Artifacts       *artifacts.Folder
	Exists          artifacts.Exists // in the store
}

// Actor is a study in use. Its queue and log decide the calls, and the actor opens and ends
// both.
//
// An actor loads its study once. It retires when the study is dropped from memory, and the next
// call makes a new one.
//
// It implements the calls of a [tuner.Service] about its own study, for which it does not look at
// the name. The engine answers the others.
type Actor struct {
	tuner.Service // nil

	name string
	env  *Environment

	loaded  chan struct{}   // closed when loading has ended
	loadErr error           // set before loaded is closed
	id      store.StudyID   // set before loaded is closed
	ctx     context.Context // ends when the actor retires
	all     context.Context // ends with the engine
	retire  context.CancelFunc

	log         *eventLog
	queue       *queue
	columns     view.Columns
	importances view.Importances
}

// NewActor returns an actor for a study. Its context ends with the engine.
func NewActor(ctx context.Context, env *Environment, name string) *Actor {
	a := &Actor{name: name, env: env, all: ctx, loaded: make(chan struct{})}
	a.ctx, a.retire = context.WithCancel(ctx)
	a.log = newLog(a.ctx, name, a, env)
	a.queue = newQueue(a.log, env)
	return a
}

// Name returns the name of the study.
func (a *Actor) Name() string { return a.name }

// ID returns the id of the study, once it is loaded.
func (a *Actor) ID() store.StudyID { return a.id }

// Loaded is closed when loading has ended.
func (a *Actor) Loaded() <-chan struct{} { return a.loaded }

// Err returns why the study was not loaded, or nil, once Loaded is closed.
func (a *Actor) Err() error { return a.loadErr }

// Retire drops the study from memory, after what was decided is stored.
func (a *Actor) Retire() { a.retire() }

// Waits reports whether the clock has a lease or a timeout to end later.
func (a *Actor) Waits() bool { return a.log.waits.Load() }

// Run loads the study and commits until the actor retires and everything is stored.
func (a *Actor) Run() {
	a.loadErr = a.load()
	close(a.loaded)
	if a.loadErr != nil {
		return
	}
	a.log.run()
	if _, intact := a.Left(); intact {
		a.yield()
	}
}

func (a *Actor) load() error {
	info, err := a.env.Store.Lookup(a.all, a.name)
	if err != nil {
		return err
	}
	a.id = info.ID
	if f, ok := a.env.Store.(store.Fencing); ok { // before reading, so that nothing changes afterwards
		if err := f.Acquire(a.all, a.id); err != nil {
			return err
		}
	}
	err = a.log.load()
	if err != nil {
		a.yield()
	}
	return err
}

// yieldTimeout is how long an actor tries to give a study back to a store that does not
// answer.
const yieldTimeout = 5 * time.Second

// yield gives the study back to a store that several servers share. Closing the store
// gives back all studies at once.
func (a *Actor) yield() {
	f, ok := a.env.Store.(store.Fencing)
	if !ok || a.all.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(a.all, yieldTimeout)
	defer cancel()
	if err := f.Yield(ctx, a.id); err != nil && a.all.Err() == nil {
		a.env.Logger.Warn("giving a study back failed, so it stays with this server", "study", a.name, "error", err)
	}
}

// commit implements [backing]. A commit is not interrupted when the engine ends.
func (a *Actor) commit(expected study.Position, events []study.Event, summary []byte) error {
	err := a.env.Store.Commit(context.WithoutCancel(a.all), a.id, expected, events, summary)
	if err == nil {
		a.env.Changed(a.name)
	}
	return err
}

// read implements [backing].
func (a *Actor) read() (*state, error) { return readState(a.all, a.env, a.id, a.name) }

// lost implements [backing].
func (a *Actor) lost(err error) { a.env.Lost(a, err) }

// Tick ends overdue leases, and the study if its timeout has passed. A long-lived engine
// calls it every second.
func (a *Actor) Tick() {
	select {
	case <-a.loaded:
	default:
		return
	}
	if a.loadErr == nil {
		a.log.tick()
	}
}

// Left returns the study as the actor left it. If not all of it is stored, ok is false.
func (a *Actor) Left() (s view.Listed, ok bool) {
	l := a.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == nil || l.broken != ErrRetired || l.state.study.Position() != l.committed {
		return view.Listed{}, false
	}
	return view.List(a.name, a.id, l.state.study, l.state.digest), true
}

// Peek returns the study as it stands, stored or not. If it is not in memory, ok is false.
func (a *Actor) Peek(now time.Time) (s tuner.Study, ok bool) {
	select {
	case <-a.loaded:
	default:
		return s, false
	}
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	if a.loadErr != nil || a.log.state == nil {
		return s, false
	}
	return a.log.state.view(a.name, a.id, now), true
}
