package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/bkbtuner/bkb/store"
)

// inspection holds the properties of a file before bbolt opens it.
type inspection struct {
	meta     metaState
	identity Identity
}

// inspect checks without bbolt that a file is whole, belongs to this program and
// has a format that this program reads. It does not read the tree.
func inspect(path string, f io.ReaderAt, size int64) (inspection, error) {
	if size == 0 {
		return inspection{}, &FileError{
			Path: path, Reason: ErrEmpty, Detail: "a store is never empty, so its contents were lost",
			Remedy: "restore a backup, or delete the file to begin with an empty store",
		}
	}
	meta := readMeta(f)
	switch {
	case !meta.sound && !meta.ofBbolt:
		return inspection{}, foreign(path, "it does not begin like a store")
	case !meta.sound && size < 2*minPageSize:
		return inspection{}, truncated(path, fmt.Sprintf("it has %d bytes", size))
	case !meta.sound:
		return inspection{}, damaged(path, "both meta pages are damaged")
	case size < meta.bytes():
		return inspection{}, truncated(path, fmt.Sprintf("it has %d bytes, must have at least %d", size, meta.bytes()))
	}
	reader := pageReader{r: f, metaPage: meta.metaPage}
	row, found, err := reader.findIdentity()
	if err != nil {
		return inspection{}, damaged(path, "%v", err)
	}
	if !found {
		return inspection{}, foreign(path, "it is a bbolt database of another program")
	}
	identity, ours, sound := parseIdentity(row)
	switch {
	case !ours && sound:
		return inspection{}, foreign(path, "it is a bbolt database of another program")
	case !sound:
		return inspection{}, damaged(path, "the identity record does not match its checksum")
	case identity.Format > Format:
		return inspection{}, &FileError{
			Path: path, Reason: ErrNewerFormat,
			Detail: fmt.Sprintf("%s wrote format %d, but this program (%s) reads up to format %d", identity.Writer, identity.Format, programVersion(), Format),
			Remedy: "use that program or a newer one, or restore a backup from before the upgrade",
		}
	case identity.Format < 1:
		return inspection{}, damaged(path, "it has format %d, which does not exist", identity.Format)
	}
	return inspection{meta: meta, identity: identity}, nil
}

// inspectTree reads every page that is in use and returns the first flaw.
func inspectTree(ctx context.Context, path string, r pageReader) error {
	_, err := walk(ctx, r, func(flaw) bool { return false })
	if f, ok := err.(flaw); ok {
		return damagedBy(path, f)
	}
	return err
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

func foreign(path, detail string) error {
	return &FileError{Path: path, Reason: ErrForeign, Detail: detail, Remedy: "give the path of a study store, or a path without a file"}
}

func truncated(path, detail string) error {
	return &FileError{Path: path, Reason: ErrTruncated, Detail: detail, Remedy: "restore the latest backup, or copy the whole file again if this is a copy"}
}

// statFile refuses a path that is not a regular file.
func statFile(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, explainOpen(path, err)
	}
	if !info.Mode().IsRegular() {
		kind := "it is a device, pipe or socket"
		if info.IsDir() {
			kind = "it is a directory"
		}
		return nil, &FileError{Path: path, Reason: ErrNotFile, Detail: kind, Remedy: "give the path of a file"}
	}
	return info, nil
}

// explainOpen turns errors of the operating system into a [FileError].
func explainOpen(path string, err error) error {
	switch {
	case os.IsNotExist(err):
		return &FileError{Path: path, Reason: ErrMissing, Remedy: "check the path, or create the store first"}
	case os.IsPermission(err):
		return &FileError{
			Path: path, Reason: fs.ErrPermission, Detail: err.Error(),
			Remedy: "run as the owner of the file, or give yourself permission to read and write it",
		}
	case errors.Is(err, syscall.ENOMEM):
		return &FileError{
			Path: path, Reason: ErrNoMemory, Detail: err.Error(),
			Remedy: "raise the limit on address space (ulimit -v), because the whole file is mapped, or delete studies and compact the file on a machine with more memory",
			cause:  err,
		}
	default:
		return fmt.Errorf("opening the study store %s: %w", path, err)
	}
}
