//go:build !unix

package falkon

import "time"

var processStart = time.Now()

// cpuSeconds returns wall time, where CPU time is not available.
func cpuSeconds() float64 { return time.Since(processStart).Seconds() }
