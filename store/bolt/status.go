package bolt

import (
	"context"

	"go.etcd.io/bbolt"
)

// Status is how much room a store takes.
type Status struct {
	FileBytes int64 // size of the file, whose end may not be allocated on disk yet
	UsedBytes int64 // part of FileBytes that holds data
	FreeBytes int64 // part of FileBytes that deleted and replaced data left, see Compact
	MaxSize   int64 // quota, negative for none
}

// Status returns the state of the store.
func (s *Store) Status(ctx context.Context) (Status, error) {
	status := Status{MaxSize: s.options.MaxSize}
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		info, err := s.file.Stat()
		if err != nil {
			return err
		}
		status.FileBytes, status.UsedBytes = info.Size(), tx.Size()
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
