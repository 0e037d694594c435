//go:build unix && !solaris && !aix

package server

import (
	"errors"
	"os"
	"syscall"
)

// lockFile waits for an exclusive lock on a file beside the one to change.
func lockFile(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return lock(f)
}

// lockFolder locks a folder, and needs no file for it.
func lockFolder(path string) (unlock func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return lock(f)
}

func lock(f *os.File) (unlock func() error, err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
	}
}
