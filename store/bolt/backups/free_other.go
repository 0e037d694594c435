//go:build !linux

package backups

// freeBytes is not known here.
func freeBytes(string) (free int64, ok bool) { return 0, false }
