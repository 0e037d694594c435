package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var _ store.Shared = (*Store)(nil)

// Store is a [store.Store] in a database.
type Store struct {
	options  Options
	database string // for messages
	schema   string // quoted
	pool     *pgxpool.Pool
	identity Identity

	queue   chan *write
	deleted chan struct{} // holds a signal after a deletion
	stop    context.CancelFunc
	workers sync.WaitGroup // that write and clean

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
	s := &Store{options: o.withDefaults(), database: t.database, schema: t.quoted(), queue: make(chan *write), deleted: make(chan struct{}, 1)}
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
	registerTypes(first)
	if s.identity, err = readIdentity(ctx, first, t); err != nil {
		return nil, s.openError(ctx, first, t, err)
	}
	if err := checkFormat(t.database, s.identity, Format); err != nil {
		return nil, err
	}
	if err := s.admit(ctx, first); err != nil {
		return nil, err
	}
	if err := s.logDurability(ctx, session{first, s.schema}); err != nil {
		return nil, err
	}
	t.pool.AfterConnect = s.admit
	t.pool.ConnConfig.OnNotice = noteWarning
	if s.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), t.pool); err != nil {
		return nil, connectError(t.database, err)
	}
	for range s.options.tuning.writers {
		s.workers.Go(s.write)
	}
	cleaning, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.workers.Go(func() { s.clean(cleaning) })
	s.close = sync.OnceFunc(s.shut)
	return s, nil
}

// OpenWithin is [Open], which tries again for at most the time while the database cannot be
// reached. waiting, if not nil, is called once with the first error.
func OpenWithin(ctx context.Context, address string, o Options, atMost time.Duration, waiting func(err error, until time.Time)) (*Store, error) {
	until := time.Now().Add(atMost)
	for {
		try, cancel := context.WithTimeout(ctx, max(time.Until(until), 10*time.Second))
		st, err := Open(try, address, o)
		cancel()
		if !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil || time.Now().After(until) {
			return st, err
		}
		if waiting != nil {
			waiting(err, until)
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// registerTypes names the types of our arguments, which the mode exec needs. Releases are
// built without those that pgx would register (nopgxregisterdefaulttypes, 1.4 MB).
func registerTypes(conn *pgx.Conn) {
	types := conn.TypeMap()
	types.RegisterDefaultPgType(0, "int8")
	types.RegisterDefaultPgType(int64(0), "int8")
	types.RegisterDefaultPgType("", "text")
	types.RegisterDefaultPgType(time.Duration(0), "interval")
	types.RegisterDefaultPgType([]int64{}, "_int8")
	types.RegisterDefaultPgType([][]byte{}, "_bytea")
}

// openError tells a schema without tables from one that belongs to another program.
func (s *Store) openError(ctx context.Context, conn *pgx.Conn, t target, err error) error {
	var tables bool
	switch ask := conn.QueryRow(ctx, anyTable, t.schema).Scan(&tables); {
	case ask == nil && !tables:
		return missing(s.database)
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
	registerTypes(conn)
	var fsync, commit, id string
	var standby bool
	err := session{conn, s.schema}.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('synchronous_commit'), pg_is_in_recovery(), store FROM @.meta`).
		Scan(&fsync, &commit, &standby, &id)
	switch {
	case err != nil && answerOf(err) == refused:
		return s.refusal(err)
	case err != nil:
		return connectError(s.database, err)
	case id != s.identity.Store:
		return refuse(s.database, ErrOtherStore, "it was store "+s.identity.Store[:8]+" and is now "+id[:min(8, len(id))],
			"restart the program if the address is right")
	case standby:
		return s.standby()
	case s.options.UnsafeNoSync:
		return nil
	case fsync == "off":
		return refuse(s.database, ErrUnsafe, "fsync is off, so a power failure destroys the database", "set fsync = on in postgresql.conf and restart the database")
	case commit == "off":
		return refuse(s.database, ErrUnsafe, "synchronous_commit is off, so a crash loses the last commits", "set synchronous_commit = on for the database or the role")
	}
	return nil
}

// Identity tells which store the database holds.
func (s *Store) Identity() Identity { return s.identity }

func (s *Store) Close() error {
	s.close()
	return nil
}

func (s *Store) shut() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.calls.Wait()
	close(s.queue)
	s.workers.Wait()
	s.pool.Close()
}

// enter begins a call. It returns an error if the store is closed or the context has ended.
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

// call runs f as a call that Close waits for.
func call[T any](ctx context.Context, s *Store, f func() (T, error)) (v T, err error) {
	if err := s.enter(ctx); err != nil {
		return v, err
	}
	defer s.leave()
	return f()
}

// possible tells whether an id can be one of this store. Larger ones do not fit the database.
func possible(id store.StudyID) bool { return id <= math.MaxInt64 }

// session is a connection whose statements write @ for the schema. They are qualified
// with it, so that no session state is needed and a pooler can stand in between.
type session struct {
	*pgx.Conn
	schema string
}

func (c session) in(sql string) string { return strings.ReplaceAll(sql, "@", c.schema) }

func (c session) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return c.Conn.Query(ctx, c.in(sql), args...)
}

func (c session) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return c.Conn.QueryRow(ctx, c.in(sql), args...)
}

func (c session) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return c.Conn.Exec(ctx, c.in(sql), args...)
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

// sure adds errWarned to the error of the statement if it got a warning.
func (c session) sure(err error) error {
	if _, warned := c.PgConn().CustomData()["warning"]; warned {
		return errors.Join(err, errWarned)
	}
	return err
}

// away is the error of a call for which the database could not be reached in time.
func (s *Store) away(err error) error {
	return fmt.Errorf("%w: %s did not answer for %v: %w", store.ErrUnavailable, s.database, s.options.Settle, err)
}

// unknown is the error of a write about which the database could not be asked in time.
func (s *Store) unknown(id store.StudyID, err error) error {
	return &store.UnknownError{Study: id, Err: fmt.Errorf("%s did not say for %v: %w", s.database, s.options.Settle, err)}
}
