package bolt

import (
	"fmt"
	"os"
	"time"

	"github.com/bkbtuner/bkb/internal/atomicfile"
)

const lockRetry = 20 * time.Millisecond

// lock takes the lock that bbolt will take again on the same open file, so that
// nothing changes between inspection and use. It returns errLocked after the timeout.
func lock(f *os.File, exclusive bool, timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(lockRetry) {
		switch ok, err := atomicfile.Lock(f, exclusive); {
		case err != nil:
			return fmt.Errorf("locking %s: %w", f.Name(), err)
		case ok:
			return nil
		case !time.Now().Before(deadline):
			return errLocked
		}
	}
}
