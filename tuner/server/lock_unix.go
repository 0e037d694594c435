//go:build unix && !solaris && !aix

package server

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockFile waits for an exclusive lock on a file beside the one to change.
func lockFile(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
	}
}

// lockFolder locks a folder, and needs no file for it. It waits for a while. A folder that
// cannot be read is not locked.
func lockFolder(path string, wait time.Duration) (unlock func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return func() error { return nil }, nil
	}
	for limit := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return f.Close, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR), time.Now().After(limit):
			f.Close()
			return nil, fmt.Errorf("%w: the folder is locked by another process: %w", inUse(path), err)
		}
	}
}
