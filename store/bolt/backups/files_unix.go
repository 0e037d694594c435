//go:build unix && !solaris && !aix

package backups

import (
	"os"

	"golang.org/x/sys/unix"
)

// hold marks a file as being written for as long as it is open. The check of the
// copy takes the same lock.
func hold(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) }

// abandoned tells whether no process writes a file any more.
func abandoned(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
