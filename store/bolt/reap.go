package bolt

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/bkbtuner/bkb/store"
	"go.etcd.io/bbolt"
)

const (
	reapSlice = 4096             // records removed in one transaction, which takes a few milliseconds
	reapRetry = 30 * time.Second // wait after a slice that failed because the disk was full
)

// reaper removes the logs of deleted studies in slices. It pauses after each slice for
// as long as the slice took. The next process continues with those left when this one
// ends.
type reaper struct {
	store  *Store
	ctx    context.Context
	cancel context.CancelFunc
	woken  chan struct{}
	done   chan struct{}
}

func newReaper(s *Store) reaper {
	ctx, cancel := context.WithCancel(context.Background())
	return reaper{store: s, ctx: ctx, cancel: cancel, woken: make(chan struct{}, 1), done: make(chan struct{})}
}

// wake tells the reaper that there is a grave.
func (r *reaper) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

func (r *reaper) run() {
	defer close(r.done)
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.woken:
		}
		if r.store.options.tuning.noReaping {
			continue
		}
		r.reap()
	}
}

// reap removes slices until no grave is left.
func (r *reaper) reap() {
	for more := true; more && r.ctx.Err() == nil; {
		start := time.Now()
		err := r.store.committer.submit(r.ctx, 0, func(tx *transaction) error {
			more = tx.reap(r.store.options.tuning.slice)
			return nil
		})
		pause := time.Since(start)
		switch {
		case errors.Is(err, store.ErrFull):
			pause, more = reapRetry, true
		case err != nil:
			return // the store is closing or has failed
		}
		select {
		case <-r.ctx.Done():
		case <-time.After(pause):
		}
	}
	r.store.options.Logger.Debug("removed the logs of deleted studies", slog.String("path", r.store.path))
}

// reap removes a slice of the first grave. more is false if there was none.
func (tx *transaction) reap(slice int) (more bool) {
	graves, logs := tx.Bucket(bucketGraves), tx.Bucket(bucketLogs)
	first, _ := graves.Cursor().First()
	if first == nil {
		return false
	}
	key := append([]byte(nil), first...)
	if log := logs.Bucket(key); log != nil {
		if removeRecords(log, slice) == slice {
			return true
		}
		must(logs.DeleteBucket(key))
	}
	must(graves.Delete(key))
	return true
}

// removeRecords removes up to n records from the beginning of a log.
func removeRecords(log *bbolt.Bucket, n int) int {
	keys := make([][]byte, 0, n)
	c := log.Cursor()
	for key, _ := c.First(); key != nil && len(keys) < n; key, _ = c.Next() {
		keys = append(keys, append([]byte(nil), key...))
	}
	for _, key := range keys {
		must(log.Delete(key))
	}
	return len(keys)
}
