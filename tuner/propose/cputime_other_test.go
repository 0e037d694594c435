//go:build !unix

package propose

import "time"

func cpuTime() time.Duration { return 0 }
