//go:build unix && !solaris && !aix

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// Lock takes the lock on a file, which ends when the file is closed or the process ends. ok is
// false if another process has it.
func Lock(f *os.File, exclusive bool) (ok bool, err error) {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, os.NewSyscallError("flock", err)
}

// abandoned tells whether no process writes a file any more.
func abandoned(folder *os.Root, name string) bool {
	f, err := folder.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	ok, _ := Lock(f, true)
	return ok
}
