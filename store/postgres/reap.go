package postgres

import (
	"context"
	"errors"
	"log/slog"

	"github.com/bkbtuner/bkb/store"
	"github.com/jackc/pgx/v5"
)

// reapSlice is how many records are removed in one statement.
const reapSlice = 10_000

// reap removes a slice of the first grave. more is false if there was none. No event can
// follow into the log of a study that is gone. A grave keeps the study for the next process
// until its log is gone, and the id of the study for a day after that.
func (s *Store) reap(ctx context.Context) (more, failed bool) {
	err := s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var id int64
		if err := conn.QueryRow(ctx, s.sql.graves).Scan(&id); err != nil {
			return err
		}
		more = true
		tag, err := conn.Exec(ctx, s.sql.reap, id, s.options.tuning.slice)
		if err == nil && tag.RowsAffected() < int64(s.options.tuning.slice) {
			_, err = conn.Exec(ctx, s.sql.reaped, id)
		}
		return err
	})
	switch {
	case err == nil || ctx.Err() != nil:
		return more, false
	case errors.Is(err, pgx.ErrNoRows) || errors.Is(err, store.ErrClosed):
		return false, false
	}
	s.options.Logger.Warn("removing the log of a deleted study failed", slog.String("database", s.database), slog.Any("error", err))
	return true, true
}

// anyGrave tells whether an earlier process left a grave.
func (s *Store) anyGrave(ctx context.Context, conn *pgx.Conn) bool {
	var id int64
	return conn.QueryRow(ctx, s.sql.graves).Scan(&id) == nil
}
