package bolt

import (
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/store"
)

// The reasons why a file is not opened, each wrapped by a [FileError]. If permission is
// missing, the reason is [fs.ErrPermission].
var (
	ErrMissing       = errors.New("there is no store")
	ErrInUse         = errors.New("another process is using the store")
	ErrNotFile       = errors.New("not a regular file")
	ErrEmpty         = errors.New("the file is empty")
	ErrForeign       = errors.New("not a store of this program")
	ErrNewerFormat   = errors.New("the store was written by a newer version of this program")
	ErrTruncated     = errors.New("the file is truncated")
	ErrDamaged       = store.ErrDamaged
	ErrNetworkDrive  = errors.New("the file is on a network file system")
	ErrAlreadyExists = errors.New("the file already exists")
	ErrNoMemory      = errors.New("there is not enough memory for the file")
)

// ErrMoved is the reason of a [FileError] about a file in use that is no longer at its
// path.
var ErrMoved = errors.New("the file was removed, renamed or replaced while it was in use")

// ErrReadOnly is returned for writes to a store that was opened for reading.
var ErrReadOnly = store.ErrReadOnly

// FileError names the problem with a file and the remedy.
type FileError struct {
	Path   string
	Reason error  // one of this package's errors, or one of package fs
	Detail string // the finding, may be empty
	Remedy string // what the user can do
	PID    int    // for [ErrInUse], the process that has the file open, 0 if unknown
	Name   string // the name of this process

	cause error // error of the system besides Reason, may be nil
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

const remedyDamaged = "restore the latest backup and keep a copy of this file, because an expert can read most of it"

func damaged(path, format string, args ...any) *FileError {
	return &FileError{Path: path, Reason: ErrDamaged, Detail: fmt.Sprintf(format, args...), Remedy: remedyDamaged}
}
