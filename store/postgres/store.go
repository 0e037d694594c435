package postgres

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var _ store.Store = (*Store)(nil)

// Store is a [store.Store] in a database.
type Store struct {
	options  Options
	database string // for messages
	pool     *pgxpool.Pool
	sql      statements
	identity Identity

	queue   chan *write
	writers sync.WaitGroup
	reaper  *store.Reaper

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // added to under mu while not closed
	close  func()         // runs shut once
}

// Open opens the store in a database. It makes no tables, see [Init].
//
// The error is an [Error]. If the database cannot be reached it wraps
// [store.ErrUnavailable], and opening may succeed later.
func Open(ctx context.Context, address string, o Options) (*Store, error) {
	t, err := parse(address)
	if err != nil {
		return nil, err
	}
	s := &Store{options: o.withDefaults(), database: t.database, sql: newStatements(t.schema), queue: make(chan *write)}
	for _, w := range t.warnings {
		s.options.Logger.Warn(w, slog.String("database", t.database))
	}
	if o.Connections > 0 {
		t.pool.MaxConns = int32(o.Connections)
	} else if !strings.Contains(address, "pool_max_conns") {
		t.pool.MaxConns = DefaultConnections
	}
	t.pool.MaxConns = max(t.pool.MaxConns, 2)
	first, err := pgx.ConnectConfig(ctx, t.pool.ConnConfig)
	if err != nil {
		return nil, connectError(t.database, err)
	}
	defer func() { _ = first.Close(context.WithoutCancel(ctx)) }()
	if s.identity, err = readIdentity(ctx, first, t); err != nil {
		return nil, s.openError(ctx, first, t, err)
	}
	if err := checkFormat(t.database, s.identity, Format); err != nil {
		return nil, err
	}
	if err := s.admit(ctx, first); err != nil {
		return nil, err
	}
	graves := s.anyGrave(ctx, first)
	if err := s.sayDurability(ctx, first); err != nil {
		return nil, err
	}
	t.pool.AfterConnect = s.admit
	t.pool.ConnConfig.OnNotice = noteWarning
	if s.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), t.pool); err != nil {
		return nil, connectError(t.database, err)
	}
	for range s.options.tuning.writers {
		s.writers.Go(s.write)
	}
	s.reaper = store.NewReaper()
	s.reaper.Start(s.reap)
	if graves {
		s.reaper.Wake()
	}
	s.close = sync.OnceFunc(s.shut)
	return s, nil
}

// openError tells a schema without tables from one that belongs to another program.
func (s *Store) openError(ctx context.Context, conn *pgx.Conn, t target, err error) error {
	var tables bool
	switch ask := conn.QueryRow(ctx, anyTable, t.schema).Scan(&tables); {
	case ask == nil && !tables:
		return s.missing()
	case errors.As(err, new(*Error)):
		return err
	case answerOf(err) == refused:
		return s.refusal(err)
	default:
		return connectError(t.database, err)
	}
}

// admit refuses a connection whose database would lose acknowledged data, cannot be
// written to, or holds another store than the one that was opened. A pool reconnects by
// itself, also to another host of the address.
func (s *Store) admit(ctx context.Context, conn *pgx.Conn) error {
	var fsync, commit, id string
	var standby bool
	err := conn.QueryRow(ctx, s.sql.connected).Scan(&fsync, &commit, &standby, &id)
	switch {
	case err != nil && answerOf(err) == refused:
		return s.refusal(err)
	case err != nil:
		return connectError(s.database, err)
	case id != s.identity.Store:
		return &Error{
			Database: s.database, Reason: ErrOtherStore, Detail: "it was store " + s.identity.Store[:8] + " and is now " + id[:min(8, len(id))],
			Remedy: "restart the program if the address is right",
		}
	case standby:
		return s.standby()
	case s.options.UnsafeNoSync:
		return nil
	case fsync == "off":
		return &Error{
			Database: s.database, Reason: ErrUnsafe, Detail: "fsync is off, so a power failure destroys the database",
			Remedy: "set fsync = on in postgresql.conf and restart the database",
		}
	case commit == "off":
		return &Error{
			Database: s.database, Reason: ErrUnsafe, Detail: "synchronous_commit is off, so a crash loses the last commits",
			Remedy: "set synchronous_commit = on for the database or the role",
		}
	}
	return nil
}

// Identity tells which store the database holds.
func (s *Store) Identity() Identity { return s.identity }

// Close implements [store.Store].
func (s *Store) Close() error {
	s.close()
	return nil
}

func (s *Store) shut() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.reaper.Close()
	s.calls.Wait()
	close(s.queue)
	s.writers.Wait()
	s.pool.Close()
}

// enter begins a call. It returns an error if the store is closed or the context has
// ended.
func (s *Store) enter(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.Add(1)
	return nil
}

func (s *Store) leave() { s.calls.Done() }

// patience is how long one try of a statement may take before its connection counts as
// broken, with more time for large ones.
const (
	patience    = 5 * time.Second
	bytesSecond = 1 << 20
)

// read runs a statement that only reads, again until it is answered.
func (s *Store) read(ctx context.Context, f func(ctx context.Context, conn *pgx.Conn) error) error {
	return s.readLarge(ctx, 0, f)
}

// readLarge is read for an answer of up to so many bytes.
func (s *Store) readLarge(ctx context.Context, bytes int, f func(ctx context.Context, conn *pgx.Conn) error) error {
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

// row reads the one row that a statement returns, again until the database answers. The
// error is [pgx.ErrNoRows] if there is none.
func (s *Store) row(ctx context.Context, into []any, sql string, args ...any) error {
	return s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, sql, args...).Scan(into...)
	})
}

// absent turns the error of a statement that found no row into another one.
func absent(err error, otherwise error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return otherwise
	}
	return err
}

// connecting is an error of a connection that could not be made, so that no statement
// was sent.
type connecting struct{ error }

func (connecting) SafeToRetry() bool { return true }
func (c connecting) Unwrap() error   { return c.error }

// try runs f once on a connection.
func (s *Store) try(ctx context.Context, bytes int, f func(ctx context.Context, conn *pgx.Conn) error) error {
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
	err = f(limited, conn.Conn())
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
		return &Error{
			Database: s.database, Reason: ErrReadOnly, Detail: "its transactions are read-only",
			Remedy: "set default_transaction_read_only = off for the server, the database and the role",
		}
	}
	return nil
}

func (s *Store) standby() error {
	return &Error{
		Database: s.database, Reason: store.ErrUnavailable, Detail: "it is a standby, which cannot be written to",
		Remedy: "name the primary in the address, or all hosts with target_session_attrs=read-write",
	}
}

// errWarned is the error of a write that the database did, but not as safely as it
// should have. It says so if an operator interrupts the wait for the synchronous standby.
var errWarned = errors.New("the database stored the write with a warning")

// noteWarning marks a connection whose statement got a warning.
func noteWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		conn.CustomData()["warning"] = n.Message
	}
}

// sure returns errWarned if the statement on this connection got a warning.
func sure(conn *pgx.Conn) error {
	if _, warned := conn.PgConn().CustomData()["warning"]; warned {
		return errWarned
	}
	return nil
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

// confirm waits until everything that was committed is as durable as a commit. A write
// that an earlier try did may lack this, because a session that ends while it waits for
// the synchronous standby has already committed on the primary.
func (s *Store) confirm(ctx context.Context, id store.StudyID) error {
	for a := (attempt{store: s, sent: true}); ; {
		err := s.try(ctx, 0, func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, s.sql.barrier)
			return errors.Join(err, sure(conn))
		})
		if err == nil {
			return nil
		}
		if !a.again(err) {
			return a.verdict(id, err)
		}
	}
}

func (s *Store) pause() { time.Sleep(time.Duration(20+rand.IntN(80)) * time.Millisecond) }

// possible tells whether an id can be one of this store. Larger ones do not fit the
// database.
func possible(id store.StudyID) bool { return id <= math.MaxInt64 }
