package torture

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/study"
)

// The errors of a write that fails.
var (
	errFull    = fmt.Errorf("%w: says the simulation", store.ErrFull)
	errUnknown = fmt.Errorf("%w: says the simulation", store.ErrUnknownOutcome)
	errAway    = fmt.Errorf("%w: says the simulation", store.ErrUnavailable)
	errDead    = errors.New("the process is dead")
)

// simDisk is the disk, which outlives the service. A write waits until the simulation
// decides its fate.
type simDisk struct {
	s    *simulation
	disk *memory.Store

	mu     sync.Mutex
	writes []*simWrite
	serial int
}

// simWrite is a waiting write.
type simWrite struct {
	disk     *simDisk
	life     *simLife
	do       func() error
	number   int
	what     string
	name     string
	decision chan decision
}

// decision says whether a write is done, and its error.
type decision struct {
	write bool
	err   error
}

func newSimDisk(s *simulation) *simDisk { return &simDisk{s: s, disk: memory.New()} }

// waiting returns the writes that wait, oldest first.
func (d *simDisk) waiting() []*simWrite {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(slices.Values(d.writes), func(a, b *simWrite) int {
		if a.name != b.name { // the order of writes to different studies may vary
			if a.name < b.name {
				return -1
			}
			return 1
		}
		return a.number - b.number
	})
}

func (w *simWrite) release(d decision) {
	w.disk.mu.Lock()
	w.disk.writes = slices.DeleteFunc(w.disk.writes, func(o *simWrite) bool { return o == w })
	w.disk.mu.Unlock()
	w.decision <- d
}

// wait makes a write wait for its decision.
func (d *simDisk) wait(l *simLife, what, name string, do func() error) decision {
	d.mu.Lock()
	d.serial++
	w := &simWrite{disk: d, life: l, do: do, number: d.serial, what: what, name: name, decision: make(chan decision, 1)}
	d.writes = append(d.writes, w)
	d.mu.Unlock()
	return <-w.decision
}

// end releases the waiting writes of a life.
func (d *simDisk) end(l *simLife) {
	l.dead.Store(true)
	for _, w := range d.waiting() {
		if w.life == l {
			w.release(decision{err: errDead})
		}
	}
}

// simLife is the disk during one life of the service.
type simLife struct {
	disk  *simDisk
	dead  atomic.Bool
	fatal atomic.Bool
	away  atomic.Bool // the store cannot be reached, for one of several servers
}

var _ store.Store = (*simLife)(nil)

// Create implements store.Store.
func (l *simLife) Create(ctx context.Context, name string, events []study.Event) (info store.Info, err error) {
	if _, err := l.disk.disk.Lookup(ctx, name); err == nil {
		return l.disk.disk.Create(ctx, name, events) // refuses the name
	}
	err = l.write("create", name, func() error {
		info, err = l.disk.disk.Create(context.WithoutCancel(ctx), name, events)
		if err == nil {
			l.disk.s.book.created(info.ID, name, events)
		}
		return err
	})
	return info, err
}

// Delete implements store.Store.
func (l *simLife) Delete(ctx context.Context, id store.StudyID) error {
	info, err := l.disk.disk.Stat(ctx, id)
	if err != nil {
		return err
	}
	return l.write("delete", info.Name, func() error {
		err := l.disk.disk.Delete(context.WithoutCancel(ctx), id)
		if err == nil {
			l.disk.s.book.deleted(info.Name)
		}
		return err
	})
}

// Commit implements store.Store.
func (l *simLife) Commit(ctx context.Context, id store.StudyID, expected study.Position, events []study.Event, summary []byte) error {
	info, err := l.disk.disk.Stat(ctx, id)
	if err != nil {
		return err
	}
	return l.write("commit", info.Name, func() error {
		err := l.disk.disk.Commit(context.WithoutCancel(ctx), id, expected, events, summary)
		if err == nil {
			l.disk.s.book.committed(info.Name, events)
		}
		return err
	})
}

func (l *simLife) write(what, name string, do func() error) error {
	if err := l.reach(); err != nil {
		return err
	}
	d := l.disk.wait(l, what, name, do)
	if d.write {
		if err := do(); err != nil {
			return err
		}
	}
	return d.err
}

// reach returns an error if the life is over or does not reach the store.
func (l *simLife) reach() error {
	switch {
	case l.dead.Load():
		return errDead
	case l.away.Load():
		return errAway
	default:
		return nil
	}
}

// Lookup implements store.Store.
func (l *simLife) Lookup(ctx context.Context, name string) (store.Info, error) {
	if l.away.Load() {
		return store.Info{}, errAway
	}
	return l.disk.disk.Lookup(ctx, name)
}

// Stat implements store.Store.
func (l *simLife) Stat(ctx context.Context, id store.StudyID) (store.Info, error) {
	return l.disk.disk.Stat(ctx, id)
}

// Close implements store.Store. The disk remains.
func (l *simLife) Close() error { return nil }

// List implements store.Store.
func (l *simLife) List(ctx context.Context, after string) iter.Seq2[store.Info, error] {
	return l.disk.disk.List(ctx, after)
}

// Read implements store.Store.
func (l *simLife) Read(ctx context.Context, id store.StudyID, from study.Position) iter.Seq2[store.Record, error] {
	if l.away.Load() {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, errAway) }
	}
	return l.disk.disk.Read(ctx, id, from)
}

// Summaries implements store.Store.
func (l *simLife) Summaries(ctx context.Context, ids []store.StudyID) ([]store.Summary, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.disk.disk.Summaries(ctx, ids)
}

// SaveSummaries implements store.Store.
func (l *simLife) SaveSummaries(ctx context.Context, list []store.Summary) error {
	if err := l.reach(); err != nil {
		return err
	}
	return l.disk.disk.SaveSummaries(ctx, list)
}
