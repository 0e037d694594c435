package store

import (
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Errors of any call.
var (
	// ErrClosed is returned for every call after [Store.Close].
	ErrClosed = errors.New("the store is closed")
	// ErrInvalid is wrapped by the refusal of an argument that no store can take, such as
	// an illegal name or a commit of no events. The same call can never succeed.
	ErrInvalid = errors.New("invalid argument to the store")
	// ErrReadOnly is wrapped by the refusal to write to a store opened for reading only.
	ErrReadOnly = errors.New("the store was opened for reading only")
	// ErrDamaged is wrapped by an error about the medium as a whole, whose data cannot
	// be read or differ from those written. Nothing was written. A store that has
	// returned it may do so for every later call. A [CorruptError] is about one study.
	ErrDamaged = errors.New("the store is damaged")
	// ErrUnavailable is wrapped by an error about a medium that cannot be reached now.
	// Nothing was written, and the same call can succeed later.
	ErrUnavailable = errors.New("the store cannot be reached")
)

// Errors of calls that write.
var (
	// ErrFull is wrapped by the refusal of a write for which the medium has no space.
	// Nothing was written, and reading continues.
	ErrFull = errors.New("the store is full")
	// ErrUnknownOutcome is wrapped by an error after which the store does not know
	// whether the write happened. The caller must read the study again, after reopening
	// the store if necessary, and compare. A store that has returned it may do so for
	// every later call, unless the error is an [UnknownError].
	ErrUnknownOutcome = errors.New("the outcome of the write is unknown")
)

// UnknownError is an [ErrUnknownOutcome] that concerns one study. The store serves all
// other calls. The caller must read the study again.
type UnknownError struct {
	Study StudyID
	Err   error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%v (study %d): %v", ErrUnknownOutcome, e.Study, e.Err)
}

func (e *UnknownError) Unwrap() []error { return []error{ErrUnknownOutcome, e.Err} }

// NotFoundError is returned for a study that was deleted or never existed.
type NotFoundError struct {
	Study StudyID // id that was asked for, 0 if it was a name
	Name  string  // name that was asked for, empty if it was an id
}

func (e *NotFoundError) Error() string {
	if e.Name != "" {
		return fmt.Sprintf("there is no study named %q", e.Name)
	}
	return fmt.Sprintf("no study has id %d; it may have been deleted", e.Study)
}

// ExistsError refuses to create a study whose name is taken.
type ExistsError struct {
	Name  string
	Study StudyID // the study that has the name
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("a study named %q already exists (id %d)", e.Name, e.Study)
}

// ConflictError refuses a commit because the log has events that the caller did not
// know. Nothing was written. Read from Expected+1 on and decide again.
type ConflictError struct {
	Study    StudyID
	Expected study.Position // head that the caller expected
	Actual   study.Position // head of the log
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the log of study %d ends at position %d, not at %d: another client wrote to it", e.Study, e.Actual, e.Expected)
}

// LimitError refuses an argument beyond this package's limits. Nothing was done.
type LimitError struct {
	What        string // record, commit, summary or studies
	Size, Limit int
}

func (e *LimitError) Error() string {
	if e.What == "studies" {
		return fmt.Sprintf("the store holds at most %d studies; delete some", e.Limit)
	}
	return fmt.Sprintf("a %s of %d bytes exceeds the limit of %d", e.What, e.Size, e.Limit)
}

// CorruptError reports a stored record that differs from the one written. The records
// before it are sound.
type CorruptError struct {
	Study    StudyID
	Position study.Position // of the record, 0 for damage outside the log
	Reason   string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("study %d is damaged at position %d: %s", e.Study, e.Position, e.Reason)
}

// NewerFormatError reports a sound record in a format newer than this program reads.
type NewerFormatError struct {
	Study    StudyID
	Position study.Position
	Format   int // of the record, beyond [Format]
}

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("study %d was written by a newer version of this program (format %d at position %d; this one reads up to format %d): upgrade it",
		e.Study, e.Format, e.Position, Format)
}
