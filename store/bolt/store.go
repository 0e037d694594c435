package bolt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
	place    string // the path, also if the working directory changes
	options  Options
	db       *bbolt.DB
	file     *os.File // shared with bbolt, which closes it
	identity Identity

	lastID    atomic.Uint64 // the newest id, stored or not
	committer committer

	largest atomic.Int64 // largest size that the file has had
	turns   sync.Mutex   // held while a transaction begins, and while a read transaction ends

	mu      sync.Mutex
	closed  bool
	failure error          // returned by every call, nil before a failure
	calls   sync.WaitGroup // added to under mu while not closed
	failed  chan struct{}
	faulted chan struct{} // closed after a fault within bbolt, which may hold its locks forever
	leaving chan struct{} // closed when Close begins
	watched chan struct{} // closed when watch has returned
	close   func() error  // runs shut once
}

func newStore(path string, o Options, file *os.File, db *bbolt.DB, seen inspection) *Store {
	s := &Store{
		path: path, options: o, db: db, file: file, identity: seen.identity,
		failed: make(chan struct{}), faulted: make(chan struct{}), leaving: make(chan struct{}), watched: make(chan struct{}),
	}
	s.place, _ = filepath.Abs(path)
	s.largest.Store(seen.meta.bytes())
	s.committer = committer{store: s, queue: make(chan *write), done: make(chan struct{})}
	s.close = sync.OnceValue(s.shut)
	return s
}

// start starts the goroutines of the store.
func (s *Store) start() {
	if s.options.ReadOnly {
		close(s.committer.done)
		close(s.watched)
		return
	}
	go s.committer.run()
	go s.watch()
}

// Close implements [store.Store]. It also waits for backups and checks, unless the
// bbolt met a fault.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.leaving)
	<-s.watched
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		s.calls.Wait()
		close(s.committer.queue)
		<-s.committer.done
	}()
	select {
	case <-idle:
	case <-s.faulted: // calls may wait for a lock of bbolt forever
	}
	return s.release()
}

// release closes bbolt. After a fault it closes only the file, because closing
// bbolt would wait for its locks.
func (s *Store) release() error {
	select {
	case <-s.faulted:
		return s.file.Close()
	default:
		return s.db.Close()
	}
}

// Failed returns a channel that is closed when the store has stopped. All calls return
// [Store.Failure] from then on. The process should exit with a failure.
//
// The store stops if a commit failed in a way that leaves the contents of the disk unknown.
// Opening the file again resolves that. It also stops if a page cannot be read or the
// file is no longer at its path.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Failure returns the error that stopped the store, or nil. The error wraps
// [store.ErrUnknownOutcome], [store.ErrDamaged], or both [store.ErrClosed] and [ErrMoved].
func (s *Store) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// unknown stops the store after a commit with an unknown outcome.
func (s *Store) unknown(cause error) error {
	return s.fail(fmt.Errorf("%w: open %s again: %w", store.ErrUnknownOutcome, s.path, cause))
}

// broken stops the store after a fault within bbolt.
func (s *Store) broken(cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.failLocked(&FileError{Path: s.path, Reason: ErrDamaged, Detail: cause.Error(), Remedy: remedyInUse})
	select {
	case <-s.faulted:
	default:
		close(s.faulted)
	}
	return err
}

const remedyInUse = "the store has stopped; run tuner check on the file, and restore the latest backup if it is damaged"

// fail stops the store. Only the first failure counts.
func (s *Store) fail(failure error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failLocked(failure)
}

// failLocked is fail for callers that hold mu.
func (s *Store) failLocked(failure error) error {
	if s.failure == nil {
		s.failure = failure
		close(s.failed)
		s.options.Logger.Error("the store failed and refuses all further calls", slog.String("path", s.path), slog.Any("cause", failure))
	}
	return s.failure
}

// enter begins a call. It returns an error if the store is closed or has failed.
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

// view runs f in a read transaction. f must copy the data that it keeps.
func (s *Store) view(ctx context.Context, f func(tx *bbolt.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.look(f)
}

// look is view within a call. After a panic or a fault, in f or in bbolt, it stops
// the store, and bbolt is not entered again.
func (s *Store) look(f func(tx *bbolt.Tx) error) error {
	tx, err := s.begin(false)
	if err != nil {
		return err
	}
	err = guarded(func() error { return f(tx) })
	if fault, ok := errors.AsType[faultError](err); ok {
		return s.broken(fault)
	}
	if endErr := s.end(tx); err == nil {
		err = endErr
	}
	return err
}

// begin begins a transaction. Bbolt holds locks meanwhile and keeps them if it meets a fault.
// Therefore only one call at a time begins a transaction, and none after a fault.
func (s *Store) begin(writable bool) (tx *bbolt.Tx, err error) {
	s.turns.Lock()
	defer s.turns.Unlock()
	if err := s.stopped(); err != nil {
		return nil, err
	}
	err = guarded(func() (err error) {
		tx, err = s.db.Begin(writable)
		return err
	})
	if fault, ok := errors.AsType[faultError](err); ok {
		return nil, s.broken(fault)
	}
	return tx, err
}

// end ends a read transaction.
func (s *Store) end(tx *bbolt.Tx) error {
	s.turns.Lock()
	defer s.turns.Unlock()
	if err := s.stopped(); err != nil {
		return nil // the data read are sound, and the transaction ends with the process
	}
	return guarded(tx.Rollback)
}

// stopped returns an error if bbolt must not be entered.
func (s *Store) stopped() error {
	select {
	case <-s.faulted:
		return s.Failure()
	default:
		return nil
	}
}

// faultError is a panic of bbolt about a page that changed after the file was
// opened, or a fault on a page that cannot be read.
type faultError struct{ cause any }

func (e faultError) Error() string {
	if _, fault := e.cause.(interface{ Addr() uintptr }); fault {
		return "a page in use cannot be read because the file was truncated or the disk failed"
	}
	return fmt.Sprintf("a page changed while in use: %v", e.cause)
}

func (faultError) Unwrap() error { return ErrDamaged }

// misuseError is the panic of [must].
type misuseError struct{ error }

// guarded runs f and turns a panic into a [faultError], or a panic of must into its error.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case misuseError:
			err = p.error
		default:
			err = faultError{p}
		}
	}()
	return f()
}
