package postgres

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/jackc/pgx/v5"
)

const (
	reapSlice = 10_000           // records removed in one statement
	reapRetry = 30 * time.Second // wait after a slice that failed
)

// reaper removes the logs of deleted studies in slices. It pauses after each slice for
// as long as the slice took. A grave keeps the study for the next process until its log
// is gone, and the id of the study for a day after that.
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
		for more := true; more && r.ctx.Err() == nil; {
			start := time.Now()
			var err error
			more, err = r.reap()
			pause := time.Since(start)
			if err != nil && r.ctx.Err() == nil {
				r.store.options.Logger.Warn("removing the log of a deleted study failed", slog.String("database", r.store.database), slog.Any("error", err))
				more, pause = true, reapRetry
			}
			select {
			case <-r.ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// reap removes a slice of the first grave. more is false if there was none. No event can
// follow into the log of a study that is gone.
func (r *reaper) reap() (more bool, err error) {
	s := r.store
	err = s.read(r.ctx, func(ctx context.Context, conn *pgx.Conn) error {
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
	if errors.Is(err, pgx.ErrNoRows) || errors.Is(err, store.ErrClosed) {
		return false, nil
	}
	return more, err
}

// anyGrave tells whether an earlier process left a grave.
func (s *Store) anyGrave(ctx context.Context, conn *pgx.Conn) bool {
	var id int64
	return conn.QueryRow(ctx, s.sql.graves).Scan(&id) == nil
}
