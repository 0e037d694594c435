// Package postgres is a [store.Store] in a PostgreSQL database, for studies that several machines
// must reach or that must outlive a disk. docs/store.md describes its addresses and tables.
//
//	_, _, err := postgres.Init(ctx, "postgres://owner@db.example.org/tuner", postgres.InitOptions{Grant: "tuner"})
//	…
//	s, err := postgres.Open(ctx, "postgres://tuner@db.example.org/tuner", postgres.Options{})
//
// # Writing
//
// A commit is one statement. It moves the head of a study if the head is the expected
// one, and appends the records of the studies that moved. Commits of different studies
// that wait at the same time share a statement, and up to four statements are on their
// way at once. A refused commit does not affect the others.
//
// A broken connection does not tell whether its statement was done. The store sends the
// same write again until the database answers. If the head has moved by then, it compares
// the stored records with its own, byte by byte. If they are equal, an earlier try was
// done. The store then makes one more commit before it acknowledges, because a try that
// lost its connection may not have waited for the synchronous standby. If the database
// does not answer for [Options.Settle], the error is [store.ErrUnavailable] if no try can
// have reached it. Otherwise it is a [store.UnknownError], which concerns one study.
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
// LISTEN, so a pooler of sessions or transactions can stand in between.
package postgres
