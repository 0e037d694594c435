//go:build !unix

package falkon

import "time"

var processStart = time.Now()

// cpuSeconds is wall time, where CPU time is not to be had.
func cpuSeconds() float64 { return time.Since(processStart).Seconds() }
