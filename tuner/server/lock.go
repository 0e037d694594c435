package server

import (
	"os"
	"time"

	"github.com/bkbtuner/bkb/internal/atomicfile"
)

// lock waits for the lock on an open file or folder, where the system has such locks. It
// closes the file if ok is false.
func lock(f *os.File, wait time.Duration) (ok bool, err error) {
	for limit := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
		if ok, err = atomicfile.Lock(f, true); ok {
			return true, nil
		}
		if err != nil || time.Now().After(limit) {
			f.Close()
			return false, err
		}
	}
}
