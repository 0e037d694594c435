package bolt

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// networkFileSystem returns the name of the network file system that a file is on. It
// is empty for any file system not known to lose locks, mappings or syncs.
func networkFileSystem(f *os.File) string {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return ""
	}
	return networkFileSystemName(int64(s.Type))
}

func networkFileSystemName(kind int64) string {
	switch uint32(kind) {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "SMB/CIFS"
	default:
		return ""
	}
}

// renameNew renames a file. If the new path exists, it returns [fs.ErrExist].
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		return linkNew(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
