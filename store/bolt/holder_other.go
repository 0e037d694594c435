//go:build !linux

package bolt

import "io/fs"

// holder knows nothing here.
func holder(fs.FileInfo) (pid int, name string) { return 0, "" }
