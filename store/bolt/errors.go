package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

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

// ErrMoved is the reason of a [FileError] about a file in use that is no longer at its path.
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
}

func fileError(path string, reason error, detail, remedy string) *FileError {
	return &FileError{Path: path, Reason: reason, Detail: detail, Remedy: remedy}
}

func (e *FileError) Error() string {
	text := e.Path + ": " + e.Reason.Error()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return fmt.Sprintf("%s (%s)", text, e.Remedy)
}

func (e *FileError) Unwrap() error { return e.Reason }

// Process names the process that has the file open, for [ErrInUse].
func (e *FileError) Process() string {
	if e.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d (%s)", e.PID, e.Name)
}

func damaged(path, format string, args ...any) *FileError {
	return fileError(path, ErrDamaged, fmt.Sprintf(format, args...), "restore the latest backup and keep a copy of this file, because an expert can read most of it")
}

// damagedBy returns the error about a flaw. If the flaw is inside a study,
// [errors.AsType] finds a [store.CorruptError] in it.
func damagedBy(path string, f flaw) error {
	e := damaged(path, "%v", f)
	if f.study != 0 {
		e.Reason = fmt.Errorf("%w: %w", ErrDamaged, &store.CorruptError{Study: f.study, Reason: f.err.Error()})
		e.Detail = ""
	}
	return e
}

// statFile refuses a path that is not a regular file.
func statFile(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, explainOpen(path, err)
	case info.IsDir():
		return nil, fileError(path, ErrNotFile, "it is a directory", "give the path of a file")
	case !info.Mode().IsRegular():
		return nil, fileError(path, ErrNotFile, "it is a device, pipe or socket", "give the path of a file")
	}
	return info, nil
}

// explainOpen turns errors of the operating system into a [FileError].
func explainOpen(path string, err error) error {
	switch {
	case os.IsNotExist(err):
		return fileError(path, ErrMissing, "", "check the path, or create the store first")
	case os.IsPermission(err):
		return fileError(path, fs.ErrPermission, err.Error(), "run as the owner of the file, or give yourself permission to read and write it")
	case errors.Is(err, syscall.ENOMEM):
		return fileError(path, fmt.Errorf("%w: %w", ErrNoMemory, err), "",
			"raise the limit on address space (ulimit -v), because the whole file is mapped, or delete studies and compact the file on a machine with more memory")
	default:
		return fmt.Errorf("opening the study store %s: %w", path, err)
	}
}
