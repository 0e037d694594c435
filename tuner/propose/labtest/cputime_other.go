//go:build !unix

package labtest

import "time"

// CPUTime is unknown here.
func CPUTime() time.Duration { return 0 }
