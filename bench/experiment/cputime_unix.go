//go:build unix

package experiment

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of the process, −1 if it is not known.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return -1
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
