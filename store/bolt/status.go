package bolt

import (
	"context"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// Status is the state of a store that is known without reading its data.
type Status struct {
	Identity
	Path         string
	FileBytes    int64 // size of the file, whose end may not be allocated on disk yet
	UsedBytes    int64 // part of FileBytes that holds data
	FreeBytes    int64 // part of FileBytes that deleted and replaced data left, see Compact
	Transaction  int   // the last one committed
	Studies      int   // without deleted ones
	MaxSize      int64 // quota, negative for none
	MetaDamaged  bool  // one of the two meta pages was damaged when the file was opened
	UnsafeNoSync bool  // acknowledged writes may not be on disk
	Commits      Commits
}

// Commits counts the commits since the store was opened.
type Commits struct {
	Transactions uint64
	Requests     uint64        // number of requests that the transactions held
	Time         time.Duration // spent in commits
	Longest      time.Duration
}

// Status returns the state of the store.
func (s *Store) Status(ctx context.Context) (Status, error) {
	status := Status{
		Identity: *s.identity.Load(), Path: s.path, MaxSize: s.options.MaxSize,
		MetaDamaged: s.metaLost, UnsafeNoSync: s.options.UnsafeNoSync, Commits: s.committer.stats.get(),
	}
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		info, err := s.file.Stat()
		if err != nil {
			return err
		}
		status.FileBytes, status.UsedBytes = info.Size(), tx.Size()
		status.Transaction, status.Studies = tx.ID(), int(s.committer.studies.Load())
		return nil
	})
	if err != nil {
		return Status{}, err
	}
	stats := s.db.Stats()
	status.FreeBytes = int64(stats.FreePageN+stats.PendingPageN) * int64(s.db.Info().PageSize)
	status.UsedBytes -= status.FreeBytes
	return status, nil
}

// commitStats counts for [Commits].
type commitStats struct {
	transactions, requests atomic.Uint64
	time, longest          atomic.Int64
}

// add must be called only by the committer.
func (c *commitStats) add(requests int, took time.Duration) {
	c.transactions.Add(1)
	c.requests.Add(uint64(requests))
	c.time.Add(int64(took))
	c.longest.Store(max(c.longest.Load(), int64(took)))
}

func (c *commitStats) get() Commits {
	return Commits{
		Transactions: c.transactions.Load(),
		Requests:     c.requests.Load(),
		Time:         time.Duration(c.time.Load()),
		Longest:      time.Duration(c.longest.Load()),
	}
}
