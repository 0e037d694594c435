//go:build unix && !solaris && !aix

package bolt

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const lockRetry = 20 * time.Millisecond

// lock takes the lock that the engine will take again on the same open file, so that
// nothing changes between inspection and use. It returns errLocked after the timeout.
func lock(f *os.File, exclusive bool, timeout time.Duration) error {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(lockRetry) {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		if !time.Now().Before(deadline) {
			return errLocked
		}
	}
}
