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

// RestoreOptions say how to restore a backup.
type RestoreOptions struct {
	// Force replaces a file that is there. It stays beside the new one, under the
	// name that [Restored] tells.
	Force bool
	// DryRun checks everything and changes nothing.
	DryRun      bool
	LockTimeout time.Duration
}

// Restored says what was restored, or would be.
type Restored struct {
	Backup *Report // of its check
	// Replaces tells whether there is a file already.
	Replaces bool
	// Kept is where the file that was replaced is now.
	Kept string
}

// Restore puts a copy of the backup in the file from at path. The copy is checked
// before it takes its place, in one step: whenever the machine stops, path is what
// it was or the backup.
//
// Errors: [FileError]. Its reason is [ErrDamaged] for a backup that is not sound,
// [ErrAlreadyExists] for a file at path without Force, and [ErrInUse] for one that a
// process has open.
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
		err = &FileError{Path: from, Reason: ErrDamaged, Detail: "the copy is not what the backup is", Remedy: "check the disk, and try again"}
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
		return unlock, &FileError{Path: path, Reason: ErrAlreadyExists, Detail: "it is the backup itself", Remedy: "name another file to restore to"}
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
		return func() {}, &FileError{Path: path, Reason: ErrAlreadyExists, Remedy: "--force replaces it, and keeps it under another name"}
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
