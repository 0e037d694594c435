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
	// ErrInvalid is wrapped by the refusal of an argument that no store can
	// take: an illegal name, a commit of no events, an event that the codec
	// cannot carry. Nothing was done; the same call can never succeed.
	ErrInvalid = errors.New("invalid argument to the store")
	// ErrReadOnly is wrapped by the refusal to write to a store that was opened
	// for reading only. Nothing was written.
	ErrReadOnly = errors.New("the store was opened for reading only")
	// ErrDamaged is wrapped by an error about the medium as a whole: stored
	// data are not what was written, or cannot be read. A [CorruptError] is
	// about one study. Nothing was written. A store that has returned it may
	// return it for every later call.
	ErrDamaged = errors.New("the store is damaged")
)

// Errors of calls that write.
var (
	// ErrFull is wrapped by the refusal of a write for which there is no room
	// on the medium. Nothing was written; reading goes on; the same call can
	// succeed once there is room.
	ErrFull = errors.New("the store is full")
	// ErrUnknownOutcome is wrapped by any error after which the store does not
	// know whether the write happened, or will be found to have happened when
	// the store is opened again. The caller must not report failure: it reads
	// the study again, after reopening the store if need be, and compares. A
	// store that has returned it may return it for every later call.
	ErrUnknownOutcome = errors.New("the outcome of the write is unknown")
)

// NotFoundError is returned for a study that does not exist, because it was
// deleted or because it never did.
type NotFoundError struct {
	Study StudyID // what was asked for; 0 if it was a name
	Name  string  // what was asked for; empty if it was an id
}

func (e *NotFoundError) Error() string {
	if e.Name != "" {
		return fmt.Sprintf("there is no study named %q", e.Name)
	}
	return fmt.Sprintf("there is no study with id %d (any more)", e.Study)
}

// ExistsError refuses to create a study whose name is taken.
type ExistsError struct {
	Name  string
	Study StudyID // the study that has the name
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("a study named %q exists already (id %d)", e.Name, e.Study)
}

// ConflictError refuses a commit whose caller did not know the whole log.
// Nothing was written: read on from Expected+1 and decide again.
type ConflictError struct {
	Study    StudyID
	Expected study.Position // where the caller took the head to be
	Actual   study.Position // where it was
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the log of study %d ends at position %d, not at %d: somebody else wrote to it", e.Study, e.Actual, e.Expected)
}

// LimitError refuses what is larger than this package's limits allow. Nothing
// was done.
type LimitError struct {
	What        string // record, commit, snapshot or studies
	Size, Limit int
}

func (e *LimitError) Error() string {
	if e.What == "studies" {
		return fmt.Sprintf("the store holds at most %d studies; delete some", e.Limit)
	}
	return fmt.Sprintf("a %s of %d bytes is beyond the limit of %d", e.What, e.Size, e.Limit)
}

// CorruptError reports a stored record that is not what was written. The
// records before it are sound.
type CorruptError struct {
	Study    StudyID
	Position study.Position // of the record; 0 for damage outside the log
	Reason   string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("study %d is damaged at position %d: %s", e.Study, e.Position, e.Reason)
}

// NewerFormatError reports a sound record in a format that this program is too
// old to read.
type NewerFormatError struct {
	Study    StudyID
	Position study.Position
	Format   int // of the record; this program reads up to [Format]
}

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("study %d was written by a newer version of this program (format %d at position %d; this one reads up to format %d): upgrade it",
		e.Study, e.Format, e.Position, Format)
}
