//go:build planted

package planted

import (
	"os"
	"sync/atomic"
)

// now is the bug that is switched on. It is nil before the first call of Is.
var now atomic.Pointer[Bug]

// Is tells whether a bug is switched on, by [Set] or else by BKB_PLANTED.
func Is(b Bug) bool {
	set := now.Load()
	if set == nil {
		set = new(Bug)
		*set = Bug(os.Getenv("BKB_PLANTED"))
		now.CompareAndSwap(nil, set)
	}
	return *set == b
}

// Set switches on a bug. The empty bug switches off the current one.
func Set(b Bug) { now.Store(&b) }
