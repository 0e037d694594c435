package lease

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is the time since the machine was booted. Unlike the monotonic clock of Go it
// continues while the machine is suspended.
func bootTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(fmt.Sprintf("lease: every Linux since 2.6.39 has CLOCK_BOOTTIME, and this one returned %v", err))
	}
	return time.Duration(now.Nano())
}
