package atomicfile

import "syscall"

// Free returns the bytes that are free on a directory's disk.
func Free(dir string) (free int64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * s.Bsize, true
}
