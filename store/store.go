package store

import (
	"context"
	"iter"

	"github.com/bkbtuner/bkb/tuner/study"
)

// StudyID identifies a study within its store. Ids begin at 1 and grow with each creation, not
// always by one. An id is never used again, neither after a deletion nor after a restart.
type StudyID uint64

// Info is the part of a study that a store knows without reading its log.
type Info struct {
	ID   StudyID
	Name string
	Head study.Position // position of the last event, at least 1
}

// Record is an event with its position in the log.
type Record struct {
	Position study.Position
	Event    study.Event
}

// Store keeps the logs of studies.
//
// Every method may be called at any time from any goroutine, also inside the loop over
// [Store.Read] or [Store.List]. Calls are linearizable, which means that each takes
// effect at one moment between its start and its end. The two sequences are the
// exceptions that their methods describe.
//
// Arguments are copied before a call returns. The caller may keep and change the results.
//
// A context that ends can end a call early. A call that returns the context's error has had no
// effect. If a write can no longer be stopped, the call waits for it and reports its outcome.
//
// Besides the errors named at each method, every method can return [ErrClosed], the error of its
// context, and errors of the medium. A method that writes wraps every error of the medium with
// [ErrFull], after which nothing was written, or with [ErrUnknownOutcome].
type Store interface {
	// Create makes a study with its first events, at positions 1, 2, …. The first event, and no
	// other, is [study.Created]. As with any commit, the study appears with all of its events.
	//
	// It returns an [ExistsError] if a study has this name, a [LimitError], or
	// [ErrInvalid]. To find out whether the existing study comes from your own
	// unanswered attempt, compare the request ids.
	Create(ctx context.Context, name string, events []study.Event) (Info, error)

	// Lookup finds the study that has the name now. It returns a [NotFoundError] if
	// there is none, also for an invalid name.
	Lookup(ctx context.Context, name string) (Info, error)

	// Stat finds a study by its id. It returns a [NotFoundError] if there is none.
	Stat(ctx context.Context, id StudyID) (Info, error)

	// List yields the studies whose names sort after the given one, in ascending order of their
	// bytes. The empty name lists all studies. A study that exists throughout is yielded once. A
	// study that is created or deleted meanwhile may be yielded or not. An error is yielded last.
	// You can range over the sequence again to list again.
	List(ctx context.Context, after string) iter.Seq2[Info, error]

	// Delete removes a study with its log, and frees its name. The id is
	// not found from then on, so a second Delete returns a [NotFoundError].
	Delete(ctx context.Context, id StudyID) error

	// Commit appends events to a log whose head is expected. It appends all of them or
	// none, at positions expected+1, expected+2, …, and they become visible at once.
	// Repeating a successful commit is a conflict, so a commit never happens twice.
	//
	// It returns a [ConflictError], a [NotFoundError], a [LimitError], or [ErrInvalid]
	// if there are no events or [study.Created] is among them. If several apply, it may
	// return any of them.
	//
	// summary describes the study after the events, see [Summary]. It is stored together
	// with them. If it is nil, the study has no summary afterwards.
	Commit(ctx context.Context, id StudyID, expected study.Position, events []study.Event, summary []byte) error

	// Read yields the records from a position on, in order and without gaps. Position 0
	// means 1. A sequence that ends without an error holds whole commits, at least all
	// that were acknowledged before the loop began. If it begins beyond the head, it is
	// empty. An error is yielded last, with a zero Record. It is a [NotFoundError], a
	// [CorruptError] or a [NewerFormatError]. If the study is deleted meanwhile, the
	// sequence may end with a [NotFoundError] or continue to the end. You can range
	// over the sequence again to read again.
	//
	// Reading holds no lock and no transaction while the body of the caller's loop runs.
	Read(ctx context.Context, id StudyID, from study.Position) iter.Seq2[Record, error]

	// Summaries returns the summaries of studies, in the order of the ids. It leaves out
	// studies that do not exist and studies without a sound summary at the head of their
	// log. Read the logs of these.
	Summaries(ctx context.Context, ids []StudyID) ([]Summary, error)

	// SaveSummaries stores summaries that were computed from logs. It leaves out a summary
	// whose position is not the head of its log. It need not be durable, and you may
	// ignore the error. It returns a [LimitError].
	SaveSummaries(ctx context.Context, list []Summary) error

	// Close waits for calls in progress and releases the resources of the store. All
	// later calls return [ErrClosed], but a sequence that is being read may end without
	// an error. A second Close does nothing.
	Close() error
}
