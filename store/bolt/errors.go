package bolt

import (
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/store"
)

// Why a file is not opened; each is wrapped by a [FileError]. Missing
// permission is [fs.ErrPermission] likewise.
var (
	ErrMissing       = errors.New("there is no store")
	ErrInUse         = errors.New("another process is using the store")
	ErrNotFile       = errors.New("not a regular file")
	ErrEmpty         = errors.New("the file is empty")
	ErrForeign       = errors.New("not a store of this program")
	ErrNewerFormat   = errors.New("the store was written by a newer version of this program")
	ErrTruncated     = errors.New("the file was cut short")
	ErrDamaged       = store.ErrDamaged
	ErrNetworkDrive  = errors.New("the file is on a network file system")
	ErrAlreadyExists = errors.New("there is a file already")
	ErrNoMemory      = errors.New("memory for the file cannot be had")
)

// ErrMoved is the reason of a [FileError] about a file in use that is no longer
// at its path.
var ErrMoved = errors.New("the file was removed, renamed or replaced while it was in use")

// ErrReadOnly is returned for writes to a store that was opened for reading.
var ErrReadOnly = store.ErrReadOnly

// FileError says what is wrong with a file and what to do about it.
type FileError struct {
	Path   string
	Reason error  // one of this package's errors, or one of package fs
	Detail string // what was found; may be empty
	Remedy string // what the person in front of it can do
	PID    int    // of [ErrInUse]: the process that has it; 0 if that is not known

	cause error // beside Reason, what the system said; may be nil
}

func (e *FileError) Error() string {
	text := e.Path + ": " + e.Reason.Error()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return fmt.Sprintf("%s (%s)", text, e.Remedy)
}

func (e *FileError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.cause}
}

const remedyDamaged = "restore the latest backup; keep a copy of this file: most of it can be read by an expert"

func damaged(path, format string, args ...any) *FileError {
	return &FileError{Path: path, Reason: ErrDamaged, Detail: fmt.Sprintf(format, args...), Remedy: remedyDamaged}
}
