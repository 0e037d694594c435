package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"go.etcd.io/bbolt"
)

// Backup writes a copy of the store at one moment to w. You can open the copy as a store. Reading
// and writing continue meanwhile, but the space that they free is not reused until the copy is
// done. The file therefore grows if w is slow.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(contextWriter{ctx, w})
		return err
	})
	if errors.Is(err, io.EOF) {
		err = damaged(s.path, "it was truncated while in use")
	}
	if err != nil {
		return fmt.Errorf("copying the study store %s: %w", s.path, err)
	}
	return nil
}

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
		return restored, fileError(from, ErrDamaged, report.Problems[0].String(), "choose an earlier backup")
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
	f, err := atomicfile.New(path, fileMode)
	if err != nil {
		return restored, err
	}
	temp := f.Name()
	defer os.Remove(temp) // fails if all went well
	if err := errors.Join(copyFile(ctx, from, f), f.Close()); err != nil {
		return restored, fmt.Errorf("copying %s: %w", from, err)
	}
	copied, err := Check(ctx, temp, nil)
	if err != nil {
		return restored, err
	}
	if !copied.OK() || copied.Events != report.Events || copied.Studies != report.Studies {
		return restored, fileError(from, ErrDamaged, "the copy differs from the backup", "check the disk and try again")
	}
	if restored.Replaces {
		restored.Kept = path + ".replaced-" + time.Now().UTC().Format("20060102T150405.000Z")
		err = errors.Join(os.Link(path, restored.Kept), os.Rename(temp, path))
	} else {
		err = renameError(path, renameNew(temp, path))
	}
	if err != nil {
		return restored, err
	}
	return restored, atomicfile.SyncDir(path)
}

// claim refuses a path that must not be written to. It returns the file there, locked, also
// with the error of one that Force would replace, and nil if there is none.
func claim(from, path string, o RestoreOptions) (*os.File, error) {
	source, err := os.Stat(from)
	if err != nil {
		return nil, explainOpen(from, err)
	}
	if there, err := os.Stat(path); err == nil && os.SameFile(source, there) {
		return nil, fileError(path, ErrAlreadyExists, "it is the backup itself", "choose another path to restore to")
	}
	f, err := lockFile(path, true, o.LockTimeout)
	switch {
	case errors.Is(err, ErrMissing):
		return nil, nil
	case err == nil && !o.Force && !o.DryRun:
		err = fileError(path, ErrAlreadyExists, "", "--force replaces it and keeps it under another name")
	}
	return f, err
}

// copyFile makes a durable copy.
func copyFile(ctx context.Context, from string, to *os.File) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err = io.Copy(contextWriter{ctx, to}, in); err != nil {
		return err
	}
	return to.Sync()
}

// renameError explains that a file is in the way.
func renameError(path string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fileError(path, ErrAlreadyExists, "", "choose another path or move that file away")
	}
	return err
}
