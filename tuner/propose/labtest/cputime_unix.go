//go:build unix

package labtest

import (
	"syscall"
	"time"
)

// CPUTime is that of the process, with what the collector takes; 0 if unknown.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
