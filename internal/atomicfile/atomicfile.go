// Package atomicfile replaces files as a whole, and makes names of files from other names.
package atomicfile

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// Write replaces the file at path by what write writes, with a mode. If it fails, the file
// is as it was. Readers see the old or the new one, also after a loss of power.
func Write(path string, mode os.FileMode, write func(io.Writer) error) error {
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return WriteIn(folder, filepath.Base(path), mode, write)
}

// WriteIn is [Write] for a name in a folder. It does not write outside of the folder.
func WriteIn(folder *os.Root, name string, mode os.FileMode, write func(io.Writer) error) error {
	sweep(folder, name)
	f, err := create(folder, name, mode)
	if err != nil {
		return err
	}
	temp := filepath.Base(f.Name())
	defer folder.Remove(temp) // fails if all went well
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		f.Close()
		return err
	}
	if err := errors.Join(w.Flush(), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := folder.Rename(temp, name); err != nil {
		return err
	}
	_ = SyncDir(filepath.Join(folder.Name(), name)) // which some systems cannot, and the file itself is on disk
	return nil
}

// SyncDir makes the names in the directory of path survive a loss of power.
func SyncDir(path string) error {
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

// ending is that of the names of files under construction.
const ending = ".tmp"

// New makes a file beside path for what shall become the file there. The name is one that [Sweep]
// knows, and the file is locked while it is open.
func New(path string, mode os.FileMode) (*os.File, error) {
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return create(folder, filepath.Base(path), mode)
}

func create(folder *os.Root, name string, mode os.FileMode) (*os.File, error) {
	f, err := folder.OpenFile(name+"."+rand.Text()[:10]+ending, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	_, _ = Lock(f, false) // a file that cannot be locked is only swept too early
	return f, nil
}

// Sweep removes what killed processes left of [New] for a path.
func Sweep(path string) {
	if folder, err := os.OpenRoot(filepath.Dir(path)); err == nil {
		defer folder.Close()
		sweep(folder, filepath.Base(path))
	}
}

func sweep(folder *os.Root, name string) {
	dir, err := folder.Open(".")
	if err != nil {
		return
	}
	left, _ := dir.ReadDir(-1)
	dir.Close()
	own := regexp.MustCompile("^" + regexp.QuoteMeta(name) + `\.[A-Z2-7]{10}\` + ending + "$")
	for _, e := range left {
		if own.MatchString(e.Name()) && e.Type().IsRegular() && abandoned(folder, e.Name()) {
			_ = folder.Remove(e.Name())
		}
	}
}
