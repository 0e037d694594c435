// Package postgres is a [store.Store] in a PostgreSQL database, for studies that several
// machines must reach or that must outlive a disk.
//
//	_, _, err := postgres.Init(ctx, "postgres://owner@db.example.org/tuner", postgres.InitOptions{Grant: "tuner"})
//	…
//	s, err := postgres.Open(ctx, "postgres://tuner@db.example.org/tuner", postgres.Options{})
//
// An address is a URL of libpq, and libpq's environment and password file count too. The
// parameter schema names the schema of the tables, bkb without it. A connection to
// another machine checks the server's certificate and name, unless the address has
// another sslmode. An address with several hosts leads to the primary among them.
//
// # Tables
//
// docs/store.md describes the tables. [Init] and [Upgrade] make and change them, under a
// lock and with a role that may. [Open] makes nothing, and needs a role that can only
// read and write rows. Records and summaries are those of every store, with checksums of
// their own, so that damage within the database is noticed.
//
// # Writing
//
// A commit is one statement. It moves the head of a study if the head is the expected
// one, and appends the records of the studies that moved. Commits of different studies
// that wait at the same time share a statement, and up to four statements are on their
// way at once. A refused commit does not affect the others.
//
// # When a connection breaks
//
// A broken connection does not tell whether its statement was done. The store sends the
// same write again until the database answers. If the head has moved by then, it compares
// the stored records with its own, byte by byte. If they are equal, an earlier try was
// done. The store then makes one more commit before it acknowledges, because a try that
// lost its connection may not have waited for the synchronous standby. If the database
// does not answer for [Options.Settle], there are two errors:
//
//   - [store.ErrUnavailable] if no try can have reached the database.
//   - [store.UnknownError] otherwise. It concerns one study, and the store goes on.
//
// A deleted study leaves a grave for a day, so that a late try cannot create it again.
//
// # What an acknowledged write survives
//
// [Open] refuses a database with fsync or synchronous_commit off, and so does every new
// connection, because the address may lead to another server by then. [Durability] says
// what the other settings promise. Only a synchronous standby keeps acknowledged writes
// over the loss of the primary.
//
// The store uses no session state, no advisory locks but in [Init] and [Upgrade], and no
// LISTEN, so a pooler of sessions or transactions can stand in between. One of transactions
// that does not support prepared statements needs default_query_exec_mode=exec in the
// address, and [Open] and the other calls say so with [ErrPooler].
package postgres
