package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Replaceable returns why the file at path may not be replaced, with the remedy, or "" if it
// may. It may if there is none, or if it is empty or starts with magic, as what does, and is
// none of the inputs.
func Replaceable(path, what, magic string, inputs []string) (reason string, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	for _, in := range inputs {
		if other, err := os.Stat(in); err == nil && os.SameFile(info, other) {
			return "it is a file of the data and cannot also be the " + what + "; name another file", nil
		}
	}
	switch {
	case info.IsDir():
		return "it is a directory; name a file for the " + what, nil
	case !info.Mode().IsRegular():
		return "it is no regular file; name another file for the " + what, nil
	case info.Size() == 0:
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != magic {
		return "it exists and is no " + what + "; remove it, or name another file", nil
	}
	return "", nil
}
