//go:build unix

package wire

import (
	"fmt"
	"os"
	"syscall"
)

// CheckPrivate refuses a file that users other than its owner can read or write.
func CheckPrivate(path string, info os.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has the mode %04o, so that others can read or change it; run: chmod 600 %s", path, mode, path)
	}
	return nil
}

// CheckKey refuses the key of a certificate that users other than its owner can read or
// write. A key that root owns may be readable by the group of a process that is not root,
// because container platforms provide secrets in this way.
func CheckKey(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	forbidden := os.FileMode(0o077)
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid == 0 && os.Geteuid() != 0 {
		forbidden = 0o037
	}
	if mode := info.Mode().Perm(); mode&forbidden != 0 {
		return fmt.Errorf("the key %s has the mode %04o, so that others can read or change it; run: chmod 600 %s", path, mode, path)
	}
	return nil
}
