package bolt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/bkbtuner/bkb/store"
	"go.etcd.io/bbolt"
)

var _ store.Store = (*Store)(nil)

// Store is a [store.Store] in one file.
type Store struct {
	path     string
	options  Options
	db       *bbolt.DB
	file     *os.File // the same that the engine has, which closes it
	identity Identity
	metaLost bool

	lastID    atomic.Uint64 // the id given out last, stored or not
	committer committer
	reaper    reaper

	mu      sync.Mutex
	closed  bool
	failure error          // wraps store.ErrUnknownOutcome
	calls   sync.WaitGroup // added to under mu, while not closed
	failed  chan struct{}
	close   func() error // once
}

func newStore(p *opening, db *bbolt.DB) *Store {
	s := &Store{path: p.path, options: p.options, db: db, file: p.file, failed: make(chan struct{})}
	s.identity, s.metaLost = p.inspection.identity, p.inspection.meta.lost
	s.committer.store, s.committer.queue, s.committer.done = s, make(chan *write), make(chan struct{})
	s.reaper = newReaper(s)
	s.close = sync.OnceValue(s.shut)
	return s
}

// start begins what runs beside the calls.
func (s *Store) start() {
	if s.options.ReadOnly {
		close(s.committer.done)
		close(s.reaper.done)
		return
	}
	go s.committer.run()
	go s.reaper.run()
}

// Close implements [store.Store]. It waits for backups and checks too.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	s.reaper.cancel()
	<-s.reaper.done
	close(s.committer.queue)
	<-s.committer.done
	return s.db.Close()
}

// Failed returns a channel that is closed when the store cannot know any more
// what is on disk, because a commit failed there. All calls return an error
// that wraps [store.ErrUnknownOutcome] from then on. The process should end,
// with a failure; the next one to open the file finds out what was written.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// fail ends the store's service.
func (s *Store) fail(cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = fmt.Errorf("%w: %s has to be opened again: %w", store.ErrUnknownOutcome, s.path, cause)
		close(s.failed)
		s.options.Logger.Error("the store failed and refuses everything from now on", slog.String("path", s.path), slog.Any("cause", cause))
	}
	return s.failure
}

// enter begins a call, unless the store is closed or failed.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil && !s.isClosed() {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return store.ErrClosed
	case s.failure != nil:
		return s.failure
	}
	s.calls.Add(1)
	return nil
}

func (s *Store) leave() { s.calls.Done() }

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// view runs f in a read transaction. What f takes out of it must be copied.
func (s *Store) view(ctx context.Context, f func(tx *bbolt.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.look(f)
}

// look is view within a call.
func (s *Store) look(f func(tx *bbolt.Tx) error) error {
	err := guarded(func() error { return s.db.View(f) })
	if err != nil && errors.Is(err, ErrDamaged) {
		return damaged(s.path, "%v", err)
	}
	return err
}

// guarded runs f and turns a panic into [ErrDamaged]: beneath the engine that
// is a page which is not what it was when the file was opened, and a fault is
// a page that cannot be read.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w while it is in use: %v", ErrDamaged, p)
		}
	}()
	return f()
}

// broken returns the error with which the store failed, if it did.
func (s *Store) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}
