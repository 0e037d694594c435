package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/store"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// The most that one transaction takes. A request larger than maxBatchBytes is alone in
// its transaction.
const (
	maxBatch      = 1024
	maxBatchBytes = 8 << 20
)

// write is a request to write.
type write struct {
	ctx   context.Context
	bytes int
	// apply makes the change within the transaction, or refuses it before it changes
	// anything. It panics on a later error.
	apply func(tx *transaction) error
	err   error         // valid after done is closed
	done  chan struct{} // closed when err is set
}

// transaction is the state that the requests of a batch share.
type transaction struct {
	*bbolt.Tx
	studies int // number of studies, with the changes of the batch so far
}

// committer writes in batches. It takes one request and all that wait, puts them into
// one transaction, commits it and answers all of them.
type committer struct {
	store   *Store
	queue   chan *write
	done    chan struct{}
	studies atomic.Int64 // number of studies
	last    int          // number of requests in the previous batch
}

// submit hands a request to the committer and waits for the result. A request whose
// context ends before the committer takes it has no effect.
func (c *committer) submit(ctx context.Context, bytes int, apply func(tx *transaction) error) error {
	w := &write{ctx: ctx, bytes: bytes, apply: apply, done: make(chan struct{})}
	select {
	case c.queue <- w:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-w.done:
		return w.err
	case <-c.store.faulted:
	}
	select {
	case <-w.done:
		return w.err
	case <-time.After(patience): // the committer waits for a lock of bbolt
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, c.store.Failure())
	}
}

// patience is how long a request waits for its result after a fault.
const patience = time.Second

func (c *committer) run() {
	defer close(c.done)
	for first := range c.queue {
		batch := c.collect(first)
		c.last = len(batch)
		c.settle(batch)
		for _, w := range batch {
			close(w.done)
		}
	}
}

// collect drains the queue. Clients that were answered together are likely to send
// their next requests together. So collect yields to the scheduler a few times, which
// takes no time beside a commit.
func (c *committer) collect(first *write) []*write {
	batch, size := []*write{first}, first.bytes
	limit := c.store.options.tuning.batch
	for turns := yields; len(batch) < limit && size < maxBatchBytes; {
		select {
		case w, open := <-c.queue:
			if !open {
				return batch
			}
			batch, size = append(batch, w), size+w.bytes
			continue
		default:
		}
		if turns == 0 || len(batch) >= c.last {
			break
		}
		turns--
		runtime.Gosched()
	}
	return batch
}

// yields is how often the committer yields to clients before it commits.
const yields = 8

// settle gives every request its result. If the disk is full, it tries again without
// the requests that blame picks.
func (c *committer) settle(batch []*write) {
	for len(batch) > 0 {
		applied, err := c.attempt(batch)
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrFull) {
			for _, w := range batch { // also for refusals, which may rest on data that were not written
				w.err = err
			}
			return
		}
		batch = blame(batch, applied, err)
	}
}

// attempt runs one transaction. It sets results that are valid if it returns nil, and
// returns the requests that were not refused.
func (c *committer) attempt(batch []*write) (applied []*write, err error) {
	s := c.store
	if err := s.Failure(); err != nil {
		return nil, err
	}
	inner, err := s.begin(true)
	if errors.Is(err, ErrDamaged) {
		return nil, err
	}
	if err != nil {
		return nil, s.unknown(fmt.Errorf("beginning a transaction: %w", err))
	}
	tx := &transaction{Tx: inner, studies: int(c.studies.Load())}
	for _, w := range batch {
		if w.err = w.ctx.Err(); w.err != nil {
			continue
		}
		err := guarded(func() error { w.err = w.apply(tx); return nil })
		if fault, ok := errors.AsType[faultError](err); ok {
			return nil, s.broken(fault)
		}
		if err != nil {
			_ = guarded(inner.Rollback)
			return nil, s.unknown(err)
		}
		if w.err == nil {
			applied = append(applied, w)
		}
	}
	if len(applied) == 0 {
		return nil, inner.Rollback()
	}
	if err := c.commit(inner); err != nil {
		return applied, err
	}
	c.studies.Store(int64(tx.studies))
	return applied, nil
}

// commit makes the transaction durable. Its error wraps [store.ErrFull] if it is
// certain that nothing was written, and [store.ErrUnknownOutcome] otherwise.
func (c *committer) commit(tx *bbolt.Tx) error {
	s, before := c.store, tx.ID()-1
	if err := s.checkSize(); err != nil {
		return err
	}
	err := guarded(func() error { return s.options.tuning.commit(tx) })
	if err == nil {
		return nil
	}
	if fault, ok := errors.AsType[faultError](err); ok {
		return fmt.Errorf("%w: committing: %w", store.ErrUnknownOutcome, s.broken(fault))
	}
	if noRoom(err) && s.visible() == before {
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	return s.unknown(fmt.Errorf("committing: %w", err))
}

// noRoom tells whether a commit failed for lack of space before bbolt asked the disk to make
// anything durable. That is at its quota, when the file grows, or when a page is written. An
// error of syncing is never one of these, also if it says that the disk is full. If the failed
// write was the last one, of the meta page, the visible transaction shows the outcome.
func noRoom(err error) bool {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return true
	}
	if write, ok := errors.AsType[*fs.PathError](err); ok {
		return write.Op == "write" && slices.ContainsFunc(full, func(e syscall.Errno) bool { return errors.Is(write, e) })
	}
	text, growing := strings.CutPrefix(err.Error(), "file resize error: ") // bbolt returns it as text
	return growing && slices.ContainsFunc(full, func(e syscall.Errno) bool { return strings.HasSuffix(text, e.Error()) })
}

// full are the errors of a disk without room.
var full = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}

// visible returns the transaction that readers see, or -1.
func (s *Store) visible() int {
	txid := -1
	if err := s.look(func(tx *bbolt.Tx) error { txid = tx.ID(); return nil }); err != nil {
		return -1
	}
	return txid
}

// blame sets the error of requests for which there was no space, and returns those to
// try again. If the largest request is larger than all others together, only that one
// is blamed. Otherwise all that were applied are blamed.
func blame(batch, applied []*write, full error) (rest []*write) {
	total, largest := 0, applied[0]
	for _, w := range applied {
		total += w.bytes
		if w.bytes > largest.bytes {
			largest = w
		}
	}
	alone := 2*largest.bytes > total
	for _, w := range batch {
		if w == largest || !alone && slices.Contains(applied, w) {
			w.err = full
		} else {
			rest = append(rest, w)
		}
	}
	return rest
}
