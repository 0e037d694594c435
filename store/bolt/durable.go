package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// linkNew renames a file unless the new path exists. A crash in between leaves both
// names on one file.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// syncFile makes the contents of a file survive a loss of power.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncDir makes the names in the directory of path survive a loss of power.
func syncDir(path string) error {
	if runtime.GOOS == "windows" { // which has no such call and does not need it
		return nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("syncing the directory of %s: %w", path, err)
	}
	return nil
}
