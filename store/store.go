package store

import (
	"context"
	"iter"

	"github.com/bkbtuner/bkb/tuner/study"
)

// StudyID identifies a study within its store, for ever: ids begin at 1, grow
// with each creation (not always by one), and are never used again, neither
// after a deletion nor after a restart.
type StudyID uint64

// Info is what a store knows of a study without reading its log.
type Info struct {
	ID   StudyID
	Name string
	Head study.Position // of the last event; at least 1
}

// Record is an event in its place.
type Record struct {
	Position study.Position
	Event    study.Event
}

// Snapshot is a study folded up to a position, in its owner's own encoding.
type Snapshot struct {
	Position study.Position
	Data     []byte
}

// Store keeps the logs of studies.
//
// Concurrency: every method may be called at any time from any goroutine, also
// from within the loop over [Store.Read] or [Store.List]. Calls are
// linearizable: each takes effect at one moment between its start and its end,
// with the two sequences as described at their methods.
//
// Ownership: arguments are copied before a call returns, and results are the
// caller's to keep and change.
//
// Contexts: a context that ends can end a call early. A call that returns the
// context's error has had no effect; a write that can no longer be taken back
// is waited for and reported as what it became.
//
// Errors: besides those named at each method, every method can return
// [ErrClosed], the error of its context, and errors of the medium. A method
// that writes returns an error of the medium only wrapped with [ErrFull]
// (nothing happened) or [ErrUnknownOutcome].
type Store interface {
	// Create makes a study with its first events, at positions 1, 2, …; the
	// first, and no other, is [study.Created]. It is a commit like any other:
	// the study appears with all of its events.
	//
	// Errors: [ExistsError] if a study has this name (to know whether it is an
	// earlier, unanswered try of one's own, compare the request ids),
	// [LimitError], [ErrInvalid].
	Create(ctx context.Context, name string, events []study.Event) (Info, error)

	// Lookup finds the study that has the name now.
	//
	// Errors: [NotFoundError], also for names that no study can have.
	Lookup(ctx context.Context, name string) (Info, error)

	// Stat finds a study by its id.
	//
	// Errors: [NotFoundError].
	Stat(ctx context.Context, id StudyID) (Info, error)

	// List yields the studies whose names sort after the given one, in
	// ascending order of their bytes; the empty name lists them all. A study
	// that exists throughout is yielded once; one created or deleted meanwhile
	// may be yielded or not. An error is yielded last. Ranging over the
	// sequence again lists again.
	List(ctx context.Context, after string) iter.Seq2[Info, error]

	// Delete removes a study with its log and snapshot, and frees its name.
	// Deleting is final: the id is NotFound from then on, which also is what a
	// second Delete returns.
	//
	// Errors: [NotFoundError].
	Delete(ctx context.Context, id StudyID) error

	// Commit appends events to a log whose head is expected: all of them or
	// none, at positions expected+1, expected+2, …, visible at once. A retry
	// after success is a conflict, so a commit never happens twice.
	//
	// Errors: [ConflictError], [NotFoundError], [LimitError], [ErrInvalid] (no
	// events, or [study.Created] among them). If several apply, which one is
	// returned is open.
	Commit(ctx context.Context, id StudyID, expected study.Position, events []study.Event) error

	// Read yields the records from a position on (0 means 1) in order and
	// without gaps. A sequence that ends without an error holds whole commits,
	// at least all that were acknowledged before the loop began; one that
	// begins beyond the head is empty. An error is yielded last, with a zero
	// Record. If the study is deleted meanwhile, the sequence may end with
	// [NotFoundError] or go on to the end. Ranging again reads again.
	//
	// Reading holds no lock and no transaction while the caller's loop body
	// runs, however long that takes.
	//
	// Errors: [NotFoundError], [CorruptError], [NewerFormatError].
	Read(ctx context.Context, id StudyID, from study.Position) iter.Seq2[Record, error]

	// SaveSnapshot replaces the study's snapshot. It needs not be durable, and
	// a caller may ignore its error.
	//
	// Errors: [NotFoundError], [LimitError], [ErrInvalid] (a position beyond
	// the head, or 0).
	SaveSnapshot(ctx context.Context, id StudyID, s Snapshot) error

	// LoadSnapshot returns the snapshot last saved. ok is false if there is
	// none, or it vanished, or it is damaged, or it is ahead of the log: then
	// read the log from its beginning.
	//
	// Errors: [NotFoundError].
	LoadSnapshot(ctx context.Context, id StudyID) (s Snapshot, ok bool, err error)

	// Close waits for calls under way, makes all further calls fail with
	// [ErrClosed] (a sequence that is being read may end regularly), and
	// releases what the store holds. Closing again does nothing.
	Close() error
}
