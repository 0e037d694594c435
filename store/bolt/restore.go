package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/bkbtuner/bkb/internal/atomicfile"
)

// RestoreOptions holds the settings of [Restore].
type RestoreOptions struct {
	// Force replaces an existing file. The old file is kept beside the new one, see
	// Kept in [Restored].
	Force bool
	// DryRun checks everything and changes nothing.
	DryRun      bool
	LockTimeout time.Duration
}

// Restored describes the result of [Restore], or of its dry run.
type Restored struct {
	Backup *Report // from the check of the backup
	// Replaces tells whether a file exists at the path.
	Replaces bool
	// Kept is the path at which the replaced file is kept.
	Kept string
}

// Restore puts a copy of the backup in the file from at path. It checks the copy, and
// then replaces path in one step. If the machine stops at any time, path is either the
// old file or the backup.
//
// It returns a [FileError]. Its reason is [ErrDamaged] if the backup is not sound,
// [ErrAlreadyExists] if path exists and Force is not set, and [ErrInUse] if a process
// has path open.
func Restore(ctx context.Context, from, path string, o RestoreOptions) (restored Restored, err error) {
	report, err := Check(ctx, from, nil)
	if err != nil {
		return restored, err
	}
	if !report.OK() {
		return restored, &FileError{
			Path: from, Reason: ErrDamaged, Detail: report.Problems[0].String(), Remedy: "choose an earlier backup",
		}
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	restored.Backup = report
	old, err := claim(from, path, o)
	if old != nil {
		restored.Replaces = true
		defer old.Close()
	}
	if err != nil || o.DryRun {
		return restored, err
	}
	atomicfile.Sweep(path)
	f, err := atomicfile.New(path, DefaultFileMode)
	if err != nil {
		return restored, err
	}
	defer f.Close()
	temp := f.Name()
	defer func() { err = errors.Join(err, remove(temp)) }()
	if err := copyFile(ctx, from, f); err != nil {
		return restored, err
	}
	copied, err := Check(ctx, temp, nil)
	if err != nil {
		return restored, err
	}
	if !copied.OK() || copied.Events != report.Events || copied.Studies != report.Studies {
		return restored, &FileError{Path: from, Reason: ErrDamaged, Detail: "the copy differs from the backup", Remedy: "check the disk and try again"}
	}
	if restored.Replaces {
		restored.Kept = path + ".replaced-" + time.Now().UTC().Format("20060102T150405.000Z")
		if err := os.Link(path, restored.Kept); err != nil {
			return restored, err
		}
	}
	if err := errors.Join(f.Close(), rename(temp, path, restored.Replaces)); err != nil {
		return restored, err
	}
	return restored, syncDir(path)
}

// claim refuses a path that must not be written to. It returns the file there, locked, also
// with the error of one that Force would replace, and nil if there is none.
func claim(from, path string, o RestoreOptions) (*os.File, error) {
	source, err := os.Stat(from)
	if err != nil {
		return nil, explainOpen(from, err)
	}
	info, err := statFile(path)
	switch {
	case errors.Is(err, ErrMissing):
		return nil, nil
	case err != nil:
		return nil, err
	case os.SameFile(source, info):
		return nil, &FileError{Path: path, Reason: ErrAlreadyExists, Detail: "it is the backup itself", Remedy: "choose another path to restore to"}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, explainOpen(path, err)
	}
	if err = lock(f, true, o.LockTimeout); errors.Is(err, errLocked) {
		err = (&opening{path: path, options: Options{LockTimeout: o.LockTimeout}}).inUse(f)
	} else if err == nil && !o.Force && !o.DryRun {
		err = &FileError{Path: path, Reason: ErrAlreadyExists, Remedy: "--force replaces it and keeps it under another name"}
	}
	return f, err
}

// copyFile makes a durable copy.
func copyFile(ctx context.Context, from string, to *os.File) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if _, err = io.Copy(contextWriter{ctx, to}, in); err == nil {
		err = to.Sync()
	}
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}
