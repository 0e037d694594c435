package backups

import "golang.org/x/sys/unix"

// freeBytes is the room that is left on a directory's disk.
func freeBytes(dir string) (free int64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * s.Bsize, true
}
