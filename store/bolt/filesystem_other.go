//go:build !linux

package bolt

import "os"

// networkFileSystem always returns "", because it cannot tell on this system.
func networkFileSystem(*os.File) string { return "" }

// renameNew renames a file. If the new path exists, it returns [fs.ErrExist].
func renameNew(from, to string) error { return linkNew(from, to) }
