//go:build !linux

package bolt

import "os"

// networkFileSystem cannot tell here.
func networkFileSystem(*os.File) string { return "" }

// renameNew renames a file unless there is one at the new path already, which
// it reports as [fs.ErrExist].
func renameNew(from, to string) error { return linkNew(from, to) }
