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
func Restore(ctx context.Context, from, path string, o RestoreOptions) (Restored, error) {
	report, err := Check(ctx, from, nil)
	if err != nil {
		return Restored{}, err
	}
	if !report.OK() {
		return Restored{}, &FileError{
			Path: from, Reason: ErrDamaged, Detail: report.Problems[0].String(), Remedy: "choose an earlier backup",
		}
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	restored := Restored{Backup: report}
	unlock, err := claim(from, path, o, &restored)
	if err != nil {
		return restored, err
	}
	defer unlock()
	if o.DryRun {
		return restored, nil
	}
	temp := temporary(path, "restore")
	if err := copyFile(ctx, from, temp); err != nil {
		return restored, errors.Join(err, remove(temp))
	}
	copied, err := Check(ctx, temp, nil)
	if err == nil && (!copied.OK() || copied.Events != report.Events || copied.Studies != report.Studies) {
		err = &FileError{Path: from, Reason: ErrDamaged, Detail: "the copy differs from the backup", Remedy: "check the disk and try again"}
	}
	if err != nil {
		return restored, errors.Join(err, remove(temp))
	}
	if restored.Replaces {
		restored.Kept = path + ".replaced-" + time.Now().UTC().Format("20060102T150405.000Z")
		if err := os.Link(path, restored.Kept); err != nil {
			return restored, errors.Join(err, remove(temp))
		}
	}
	if err := rename(temp, path, restored.Replaces); err != nil {
		return restored, errors.Join(err, remove(temp))
	}
	return restored, syncDir(path)
}

// claim refuses a path that must not be written to, and locks the file there.
func claim(from, path string, o RestoreOptions, restored *Restored) (unlock func(), err error) {
	unlock = func() {}
	source, err := os.Stat(from)
	if err != nil {
		return unlock, explainOpen(from, err)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return unlock, nil
	}
	if err != nil {
		return unlock, explainOpen(path, err)
	}
	if _, err := statFile(path); err != nil {
		return unlock, err
	}
	if os.SameFile(source, info) {
		return unlock, &FileError{Path: path, Reason: ErrAlreadyExists, Detail: "it is the backup itself", Remedy: "choose another path to restore to"}
	}
	restored.Replaces = true
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return unlock, explainOpen(path, err)
	}
	unlock = func() { _ = f.Close() }
	if err := lock(f, true, o.LockTimeout); err != nil {
		unlock()
		if errors.Is(err, errLocked) {
			return func() {}, (&opening{path: path, options: Options{LockTimeout: o.LockTimeout}}).inUse(f)
		}
		return func() {}, err
	}
	if !o.Force && !o.DryRun {
		unlock()
		return func() {}, &FileError{Path: path, Reason: ErrAlreadyExists, Remedy: "--force replaces it and keeps it under another name"}
	}
	return unlock, nil
}

// copyFile makes a durable copy under a new name.
func copyFile(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, DefaultFileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(contextWriter{ctx, out}, in)
	if err == nil {
		err = out.Sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}
