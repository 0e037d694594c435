//go:build !linux

package lease

import "time"

var started = time.Now()

// bootTime is the time since the program started by the monotonic clock of Go. On some
// systems that clock stops while the machine is suspended. Then another server may own a
// study before this one knows, and only its answers from memory can be old, because the
// store refuses its writes.
func bootTime() time.Duration { return time.Since(started) }
