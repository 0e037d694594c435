//go:build unix

package wire

import (
	"fmt"
	"os"
)

// CheckPrivate refuses a file that others than its owner can read or write.
func CheckPrivate(path string, info os.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has the mode %04o, so that others can read or change it; run: chmod 600 %s", path, mode, path)
	}
	return nil
}
