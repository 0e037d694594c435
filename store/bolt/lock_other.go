//go:build !unix || solaris || aix

package bolt

import (
	"os"
	"time"
)

// lock does nothing, because the engine locks the file right after.
func lock(*os.File, bool, time.Duration) error { return nil }
