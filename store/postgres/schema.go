package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/jackc/pgx/v5"
)

// Format is the version of the tables that this program writes and reads.
const Format = 1

// magic marks the tables of this program.
const magic = "BKBstore"

// migrations make the tables of each format out of those of the one before. @ stands
// for the schema.
var migrations = []string{`
CREATE TABLE @.meta (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	magic text NOT NULL,
	format integer NOT NULL,
	store text NOT NULL,
	created timestamptz NOT NULL,
	writer text NOT NULL,
	barrier bigint NOT NULL DEFAULT 0
);
CREATE SEQUENCE @.study_id;
CREATE TABLE @.study (
	id bigint PRIMARY KEY,
	name text COLLATE "C" NOT NULL UNIQUE,
	head bigint NOT NULL CHECK (head >= 1),
	owner bigint NOT NULL DEFAULT 0,
	epoch bigint NOT NULL DEFAULT 0,
	summary bytea
) WITH (fillfactor = 50);
CREATE TABLE @.event (
	study bigint NOT NULL,
	position bigint NOT NULL,
	record bytea NOT NULL,
	PRIMARY KEY (study, position)
);
ALTER TABLE @.event ALTER COLUMN record SET STORAGE EXTERNAL;
CREATE TABLE @.grave (
	study bigint PRIMARY KEY,
	token bigint NOT NULL,
	deleted timestamptz NOT NULL DEFAULT now(),
	reaped boolean NOT NULL DEFAULT false
);
CREATE SEQUENCE @.server_id;
CREATE TABLE @.server (
	id bigint PRIMARY KEY,
	address text NOT NULL,
	lease interval NOT NULL,
	beat bigint NOT NULL DEFAULT 0
);
`}

// anyTable tells whether a schema has a table of ours or one in its place.
const anyTable = `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = $1 AND c.relname IN ('meta', 'study', 'event'))`

// schemaLock is the key of the advisory lock under which the tables are changed.
// CREATE … IF NOT EXISTS fails if two sessions do it at once.
const schemaLock = 0x424b4273746f7265 // BKBstore

// Identity says which store and format a database holds.
type Identity struct {
	Format  int       // of the tables
	Store   string    // 32 random hexadecimal digits, which copies of the database share
	Created time.Time // by the clock of the database
	Writer  string    // the program that created or last upgraded the store
}

// InitOptions are the settings of [Init] and [Upgrade].
type InitOptions struct {
	// Grant names a role that gets the rights to read and write studies, and no right to
	// change tables. Empty grants nothing.
	Grant string
	// Program names the program and version that writes.
	Program string
	// DryRun makes Upgrade say what it would do, without a change.
	DryRun bool

	migrations []string // replaces migrations in tests
}

// Init creates the tables of a store. Its role needs the right to create a schema. It
// returns the store that is there if it was created before, and made says which.
func Init(ctx context.Context, address string, o InitOptions) (id Identity, made bool, err error) {
	err = migrate(ctx, address, o, func(tx pgx.Tx, m migration) (err error) {
		if m.found {
			id = m.identity
			return m.exact()
		}
		made = true
		if _, err := tx.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+m.schema); err != nil {
			return err
		}
		id, err = m.apply(ctx, tx, o)
		return err
	})
	return id, made, err
}

// Upgrade brings the tables of a store to the format of this program. from is the format
// that they had. Stop older programs first, because they refuse the new format.
func Upgrade(ctx context.Context, address string, o InitOptions) (id Identity, from int, err error) {
	err = migrate(ctx, address, o, func(tx pgx.Tx, m migration) (err error) {
		if !m.found {
			return m.missing
		}
		id, from = m.identity, m.identity.Format
		switch {
		case from >= m.newest:
			err = m.exact()
		case o.DryRun:
			id.Format = m.newest
		default:
			id, err = m.apply(ctx, tx, o)
		}
		return err
	})
	return id, from, err
}

// migration is the state of the tables before they are changed.
type migration struct {
	target   target
	schema   string // quoted
	found    bool
	identity Identity // if found
	newest   int      // format to reach
	steps    []string
	missing  error
}

// exact refuses a format that this program does not write.
func (m migration) exact() error { return checkFormat(m.target.database, m.identity, m.newest) }

// apply runs the steps from the format that there is.
func (m migration) apply(ctx context.Context, tx pgx.Tx, o InitOptions) (Identity, error) {
	for _, step := range m.steps[m.identity.Format:] {
		if _, err := tx.Exec(ctx, strings.ReplaceAll(step, "@", m.schema)); err != nil {
			return Identity{}, err
		}
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	id := m.identity
	id.Format, id.Writer = m.newest, o.Program
	if !m.found {
		id.Store = hex.EncodeToString(random[:])
	}
	err := tx.QueryRow(ctx, `INSERT INTO `+m.schema+`.meta AS m (magic, format, store, created, writer) VALUES ($1, $2, $3, now(), $4)
		ON CONFLICT (one) DO UPDATE SET format = excluded.format, writer = excluded.writer RETURNING created`,
		magic, id.Format, id.Store, id.Writer).Scan(&id.Created)
	return id, err
}

// migrate calls f in a transaction that excludes other changes of the tables, and grants
// the rights.
func migrate(ctx context.Context, address string, o InitOptions, f func(tx pgx.Tx, m migration) error) error {
	t, err := parse(address)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, t.pool.ConnConfig)
	if err != nil {
		return connectError(t.database, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	m := migration{target: t, schema: pgx.Identifier{t.schema}.Sanitize(), steps: o.migrations}
	m.missing = (&Store{database: t.database}).missing()
	if m.steps == nil {
		m.steps = migrations
	}
	m.newest = len(m.steps)
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(schemaLock)); err != nil {
			return err
		}
		var exists bool
		if err := tx.QueryRow(ctx, anyTable, t.schema).Scan(&exists); err != nil {
			return err
		}
		if exists {
			if m.identity, err = readIdentity(ctx, tx, t); err != nil {
				return err
			}
			m.found = true
		}
		if err := f(tx, m); err != nil {
			return err
		}
		if o.DryRun {
			return nil
		}
		return grant(ctx, tx, m.schema, o.Grant)
	})
	if pooler := poolerError(t.database, err); pooler != nil {
		return pooler
	}
	switch {
	case err == nil, errors.As(err, new(*Error)):
		return err
	case code(err) == "42501":
		return &Error{Database: t.database, Reason: ErrDenied, Detail: err.Error(), Remedy: "use the role that owns the database, or grant this role CREATE on the database"}
	case code(err) == "42704" && o.Grant != "":
		return &Error{Database: t.database, Reason: ErrDenied, Detail: fmt.Sprintf("there is no role %q", o.Grant), Remedy: "create the role first with CREATE ROLE … LOGIN"}
	default:
		return fmt.Errorf("changing the tables in %s: %w", t.database, err)
	}
}

// grant lets a role read and write studies.
func grant(ctx context.Context, tx pgx.Tx, schema, role string) error {
	if role == "" {
		return nil
	}
	to := " TO " + pgx.Identifier{role}.Sanitize()
	for _, right := range []string{
		"USAGE ON SCHEMA " + schema,
		"SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + schema,
		"USAGE ON ALL SEQUENCES IN SCHEMA " + schema,
	} {
		if _, err := tx.Exec(ctx, "GRANT "+right+to); err != nil {
			return err
		}
	}
	return nil
}

// querier is a connection, a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readIdentity reads which store the tables belong to.
func readIdentity(ctx context.Context, q querier, t target) (id Identity, err error) {
	var mark string
	err = q.QueryRow(ctx, "SELECT magic, format, store, created, writer FROM "+pgx.Identifier{t.schema}.Sanitize()+".meta").
		Scan(&mark, &id.Format, &id.Store, &id.Created, &id.Writer)
	foreign := func(detail string) error {
		return &Error{Database: t.database, Reason: ErrForeign, Detail: detail, Remedy: "name another schema in the address, such as ?schema=studies"}
	}
	switch c := code(err); {
	case c == "42P01" || c == "42703": // no such table or column
		return id, foreign("the table meta is another program's or missing")
	case errors.Is(err, pgx.ErrNoRows):
		return id, foreign("the table meta is empty")
	case err != nil:
		return id, err
	case mark != magic:
		return id, foreign("the table meta is another program's")
	}
	return id, nil
}

// checkFormat refuses a format other than the newest.
func checkFormat(database string, id Identity, newest int) error {
	switch {
	case id.Format > newest:
		return &Error{
			Database: database, Reason: ErrNewerFormat,
			Detail: fmt.Sprintf("%s wrote format %d, but this program reads format %d", id.Writer, id.Format, newest),
			Remedy: "use that program or a newer one",
		}
	case id.Format < newest:
		return &Error{
			Database: database, Reason: ErrOlderFormat,
			Detail: fmt.Sprintf("%s wrote format %d, but this program reads format %d", id.Writer, id.Format, newest),
			Remedy: "stop all programs that use it, make a backup, and run tuner store upgrade",
		}
	}
	return nil
}

// connectError is the error of a connection that could not be made.
func connectError(database string, err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if err := poolerError(database, err); err != nil {
		return err
	}
	switch c := code(err); {
	case strings.HasPrefix(c, "28"):
		return &Error{Database: database, Reason: ErrDenied, Detail: last(err), Remedy: "check the user of the address, and the password in the file that PGPASSFILE names"}
	case c == "3D000":
		return &Error{Database: database, Reason: ErrMissing, Detail: last(err), Remedy: "create the database with createdb, or correct the address"}
	}
	return &Error{
		Database: database, Reason: store.ErrUnavailable, Detail: last(err),
		Remedy: "check that the database runs and that its address and TLS settings are right",
	}
}

// last returns the text of the last of the attempts to connect.
func last(err error) string {
	text := strings.TrimSpace(err.Error())
	lines := strings.Split(text, "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
