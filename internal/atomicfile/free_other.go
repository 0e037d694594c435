//go:build !linux

package atomicfile

// Free is not known here.
func Free(string) (free int64, ok bool) { return 0, false }
