//go:build !unix

package experiment

import "time"

// cpuTime returns the CPU time of the process, −1 if it is not known.
func cpuTime() time.Duration { return -1 }
