//go:build unix

package propose

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of the process, including the garbage collector, and 0 if it
// is unknown.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
