package postgres

import (
	"context"
	"errors"

	"github.com/bkbtuner/bkb/store"
	"github.com/jackc/pgx/v5"
)

// SaveSnapshot implements [store.Store].
func (s *Store) SaveSnapshot(ctx context.Context, id store.StudyID, snapshot store.Snapshot) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	info, err := s.stat(ctx, id)
	if err != nil {
		return err
	}
	encoded, err := store.EncodeSnapshot(id, info.Head, snapshot)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	for a := (attempt{store: s}); ; { // a second save has no further effect
		var rows int64
		err := s.try(ctx, len(encoded), func(ctx context.Context, conn *pgx.Conn) error {
			tag, err := conn.Exec(ctx, s.sql.saveSnapshot, int64(id), encoded)
			rows = tag.RowsAffected()
			return err
		})
		switch {
		case err == nil && rows == 0:
			return &store.NotFoundError{Study: id}
		case err == nil:
			return nil
		case !a.again(err):
			return a.verdict(id, err)
		}
	}
}

// LoadSnapshot implements [store.Store].
func (s *Store) LoadSnapshot(ctx context.Context, id store.StudyID) (store.Snapshot, bool, error) {
	if err := s.enter(ctx); err != nil {
		return store.Snapshot{}, false, err
	}
	defer s.leave()
	if !possible(id) {
		return store.Snapshot{}, false, &store.NotFoundError{Study: id}
	}
	info := store.Info{ID: id}
	var data []byte
	err := s.readLarge(ctx, store.MaxSnapshotBytes, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, s.sql.loadSnapshot, int64(id)).Scan(&info.Head, &data)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = &store.NotFoundError{Study: id}
	}
	if err != nil || data == nil {
		return store.Snapshot{}, false, err
	}
	snapshot, ok := store.DecodeSnapshot(id, info.Head, data)
	return snapshot, ok, nil
}
