//go:build !planted

package planted

// Is tells whether a bug is switched on. It is always false.
func Is(Bug) bool { return false }
