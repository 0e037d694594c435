package postgres

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/jackc/pgx/v5"
)

// patience is how long one try of a statement may take before its connection counts as
// broken, with more time for large ones.
const (
	patience    = 5 * time.Second
	bytesSecond = 1 << 20
)

// task sends statements on a connection.
type task = func(ctx context.Context, conn session) error

// read runs a task that only reads, or that may be done several times, again until it is
// answered. Its answer has up to so many bytes.
func (s *Store) read(ctx context.Context, bytes int, f task) error {
	var since time.Time // of the first broken try
	for {
		err := s.try(ctx, bytes, f)
		switch {
		case err == nil || errors.Is(err, pgx.ErrNoRows):
			return err
		case answerOf(err) == refused:
			return s.refusal(err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if since.IsZero() {
			since = time.Now()
		} else if time.Since(since) > s.options.Settle {
			return s.away(err)
		}
		s.pause()
	}
}

// row reads the one row that a statement returns. The error is otherwise if there is none.
func (s *Store) row(ctx context.Context, otherwise error, into []any, sql string, args ...any) error {
	err := s.read(ctx, 0, func(ctx context.Context, conn session) error { return conn.QueryRow(ctx, sql, args...).Scan(into...) })
	if errors.Is(err, pgx.ErrNoRows) {
		return otherwise
	}
	return err
}

// rows reads the rows that a statement returns as structs, whose fields are the columns.
func rows[T any](ctx context.Context, s *Store, bytes int, sql string, args ...any) (list []T, err error) {
	err = s.read(ctx, bytes, func(ctx context.Context, conn session) error {
		answer, _ := conn.Query(ctx, sql, args...)
		list, err = pgx.CollectRows(answer, pgx.RowToStructByPos[T])
		return err
	})
	return list, err
}

// connecting is an error of a connection that could not be made, so that no statement was sent.
type connecting struct{ error }

func (connecting) SafeToRetry() bool { return true }
func (c connecting) Unwrap() error   { return c.error }

// try runs f once on a connection.
func (s *Store) try(ctx context.Context, bytes int, f task) error {
	limited, cancel := context.WithTimeout(ctx, patience+time.Duration(bytes)*time.Second/bytesSecond)
	defer cancel()
	conn, err := s.pool.Acquire(limited)
	if err != nil {
		if answerOf(err) == refused {
			return connectError(s.database, err)
		}
		return connecting{err}
	}
	defer conn.Release()
	clear(conn.Conn().PgConn().CustomData())
	err = f(limited, session{conn.Conn(), s.schema})
	if code(err) == "25006" { // read-only transaction, as a standby has too
		err = cmp.Or(s.writable(limited, conn.Conn()), err)
	}
	return err
}

// writable refuses a primary whose transactions only read. A standby soon becomes a primary,
// or the connection leads elsewhere.
func (s *Store) writable(ctx context.Context, conn *pgx.Conn) error {
	var readOnly, standby bool
	err := conn.QueryRow(ctx, `SELECT current_setting('transaction_read_only') = 'on', pg_is_in_recovery()`).Scan(&readOnly, &standby)
	switch {
	case err != nil:
		return connectError(s.database, err)
	case standby:
		return s.standby()
	case readOnly:
		return refuse(s.database, ErrReadOnly, "its transactions are read-only", "set default_transaction_read_only = off for the server, the database and the role")
	}
	return nil
}

func (s *Store) standby() error {
	return refuse(s.database, store.ErrUnavailable, "it is a standby, which cannot be written to",
		"name the primary in the address, or all hosts with target_session_attrs=read-write")
}

// attempt counts the tries of one statement that writes.
type attempt struct {
	store *Store
	since time.Time // of the first broken try
	sent  bool      // a try may have been done
}

// again tells whether to try again after the error of a try, and waits for it.
func (a *attempt) again(err error) bool {
	switch answerOf(err) {
	case refused:
		return false
	case unsure:
		a.sent = true
	case undone:
	}
	if a.since.IsZero() {
		a.since = time.Now()
	} else if time.Since(a.since) > a.store.options.Settle {
		return false
	}
	a.store.pause()
	return true
}

// verdict is the error of the call whose last try had the given error. A refusal is of
// the last try only and says nothing about earlier ones.
func (a *attempt) verdict(id store.StudyID, err error) error {
	switch {
	case a.sent:
		return a.store.unknown(id, err)
	case answerOf(err) == refused:
		return a.store.refusal(err)
	default:
		return a.store.away(err)
	}
}

// do sends a statement that writes until the database answers. The statement counts what
// it changed. earlier tells, when it changed nothing, whether an earlier try did. changed
// is false if neither did.
func (a *attempt) do(ctx context.Context, id store.StudyID, bytes int, earlier func() (bool, error), sql string, args ...any) (changed bool, err error) {
	s := a.store
	for {
		var count int
		err := s.try(ctx, bytes, func(ctx context.Context, conn session) error {
			return conn.sure(conn.QueryRow(ctx, sql, args...).Scan(&count))
		})
		if err == nil && count > 0 {
			return true, nil
		}
		if a.sent && (err == nil || code(err) == "23505") { // or its row is there
			done, err := earlier()
			if err != nil {
				return false, s.unknown(id, err)
			}
			if done {
				return true, s.confirm(ctx, id)
			}
		}
		if err == nil {
			return false, nil
		}
		if !a.again(err) {
			return false, a.verdict(id, err)
		}
	}
}

// confirm waits until everything that was committed is as durable as a commit. A write
// that an earlier try did may lack this, because a session that ends while it waits for
// the synchronous standby has already committed on the primary.
func (s *Store) confirm(ctx context.Context, id store.StudyID) error {
	_, err := (&attempt{store: s, sent: true}).do(ctx, id, 0, func() (bool, error) { return false, nil },
		`WITH done AS (UPDATE @.meta SET barrier = barrier + 1 RETURNING one) SELECT count(*) FROM done`)
	return err
}

func (s *Store) pause() { time.Sleep(time.Duration(20+rand.IntN(80)) * time.Millisecond) }
