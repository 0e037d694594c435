//go:build !unix || solaris || aix

package server

import "time"

// lockFile does nothing, as this system has no such locks. Change token files one at a
// time.
func lockFile(string) (unlock func() error, err error) {
	return func() error { return nil }, nil
}

func lockFolder(path string, _ time.Duration) (unlock func() error, err error) { return lockFile(path) }
