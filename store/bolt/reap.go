package bolt

import (
	"context"
	"errors"
	"log/slog"

	"github.com/bkbtuner/bkb/store"
	"go.etcd.io/bbolt"
)

// reapSlice is how many records are removed in one transaction, which takes a few
// milliseconds.
const reapSlice = 4096

// reap removes a slice of the logs of deleted studies. The next process continues with
// those left when this one ends.
func (s *Store) reap(ctx context.Context) (more, failed bool) {
	if s.options.tuning.noReaping {
		return false, false
	}
	err := s.committer.submit(ctx, 0, func(tx *transaction) error {
		more = tx.reap(s.options.tuning.slice)
		return nil
	})
	if errors.Is(err, store.ErrFull) {
		return true, true
	}
	if !more && err == nil {
		s.options.Logger.Debug("removed the logs of deleted studies", slog.String("path", s.path))
	}
	return more && err == nil, false // after another error the store is closing or has failed
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
