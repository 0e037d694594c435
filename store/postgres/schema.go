package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

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
	id, from, err := migrate(ctx, address, o, false)
	return id, from == 0 && err == nil, err
}

// Upgrade brings the tables of a store to the format of this program. from is the format
// that they had. Stop older programs first, because they refuse the new format.
func Upgrade(ctx context.Context, address string, o InitOptions) (id Identity, from int, err error) {
	return migrate(ctx, address, o, true)
}

// migrate makes the tables, or upgrades those that there are, in a transaction that
// excludes other changes of them. from is the format that they had, or 0.
func migrate(ctx context.Context, address string, o InitOptions, upgrade bool) (id Identity, from int, err error) {
	t, err := parse(address)
	if err != nil {
		return id, 0, err
	}
	conn, err := pgx.ConnectConfig(ctx, t.pool.ConnConfig)
	if err != nil {
		return id, 0, connectError(t.database, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	registerTypes(conn)
	steps := o.migrations
	if steps == nil {
		steps = migrations
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(schemaLock)); err != nil {
			return err
		}
		var exists bool
		if err := tx.QueryRow(ctx, anyTable, t.schema).Scan(&exists); err != nil {
			return err
		}
		if exists {
			if id, err = readIdentity(ctx, tx, t); err != nil {
				return err
			}
			from = id.Format
		}
		switch {
		case upgrade && !exists:
			return missing(t.database)
		case exists && (!upgrade || from >= len(steps)):
			err = checkFormat(t.database, id, len(steps))
		case o.DryRun:
			id.Format = len(steps)
		default:
			err = apply(ctx, tx, t.quoted(), steps, o.Program, &id)
		}
		if err != nil || o.DryRun {
			return err
		}
		return grant(ctx, tx, t.quoted(), o.Grant)
	})
	switch own := ownError(t.database, err); {
	case err == nil || own != nil:
		return id, from, own
	case code(err) == "42501":
		return id, from, refuse(t.database, ErrDenied, err.Error(), "use the role that owns the database, or grant this role CREATE on the database")
	case code(err) == "42704" && o.Grant != "":
		return id, from, refuse(t.database, ErrDenied, fmt.Sprintf("there is no role %q", o.Grant), "create the role first with CREATE ROLE … LOGIN")
	default:
		return id, from, fmt.Errorf("changing the tables in %s: %w", t.database, err)
	}
}

// apply runs the steps from the format that there is.
func apply(ctx context.Context, tx pgx.Tx, schema string, steps []string, program string, id *Identity) error {
	newest := len(steps)
	if id.Store == "" {
		var random [16]byte
		_, _ = rand.Read(random[:]) // never fails
		id.Store = hex.EncodeToString(random[:])
		steps = append([]string{"CREATE SCHEMA IF NOT EXISTS @"}, steps...)
	} else {
		steps = steps[id.Format:]
	}
	for _, step := range steps {
		if _, err := tx.Exec(ctx, strings.ReplaceAll(step, "@", schema)); err != nil {
			return err
		}
	}
	id.Writer = program
	return tx.QueryRow(ctx, `INSERT INTO `+schema+`.meta AS m (magic, format, store, created, writer) VALUES ($1, $2, $3, now(), $4)
		ON CONFLICT (one) DO UPDATE SET format = excluded.format, writer = excluded.writer RETURNING format, created`,
		magic, newest, id.Store, id.Writer).Scan(&id.Format, &id.Created)
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

// readIdentity reads which store the tables belong to. q is a connection or a transaction.
func readIdentity(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, t target,
) (id Identity, err error) {
	var mark string
	err = q.QueryRow(ctx, "SELECT magic, format, store, created, writer FROM "+t.quoted()+".meta").
		Scan(&mark, &id.Format, &id.Store, &id.Created, &id.Writer)
	detail := ""
	switch c := code(err); {
	case c == "42P01" || c == "42703": // no such table or column
		detail = "the table meta is another program's or missing"
	case errors.Is(err, pgx.ErrNoRows):
		detail = "the table meta is empty"
	case err != nil:
		return id, err
	case mark != magic:
		detail = "the table meta is another program's"
	default:
		return id, nil
	}
	return id, refuse(t.database, ErrForeign, detail, "name another schema in the address, such as ?schema=studies")
}

// checkFormat refuses a format other than the newest.
func checkFormat(database string, id Identity, newest int) error {
	detail := fmt.Sprintf("%s wrote format %d, but this program reads format %d", id.Writer, id.Format, newest)
	switch {
	case id.Format > newest:
		return refuse(database, ErrNewerFormat, detail, "use that program or a newer one")
	case id.Format < newest:
		return refuse(database, ErrOlderFormat, detail, "stop all programs that use it, make a backup, and run tuner store upgrade")
	}
	return nil
}
