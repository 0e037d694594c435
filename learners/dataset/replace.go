package dataset

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// checkChunkFile refuses a chunk file that would replace something else, such as an
// input, a device, or a file that is neither empty nor a chunk file.
func checkChunkFile(path string, inputs []string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return &FileError{File: path, Reason: "it cannot be replaced", Err: errors.Unwrap(err)}
	}
	for _, in := range inputs {
		if other, err := os.Stat(in); err == nil && os.SameFile(info, other) {
			return &FileError{File: path, Reason: "it is an input and cannot also be the chunk file; name another file"}
		}
	}
	switch {
	case info.IsDir():
		return &FileError{File: path, Reason: "it is a directory; name a file for the chunks"}
	case !info.Mode().IsRegular():
		return &FileError{File: path, Reason: "it is not a regular file and cannot be the chunk file; name another file"}
	case info.Size() == 0:
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return &FileError{File: path, Reason: "it cannot be opened", Err: errors.Unwrap(err)}
	}
	defer f.Close()
	head := make([]byte, len(chunkMagic))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != chunkMagic {
		return &FileError{File: path, Reason: "it exists and is not a chunk file; remove it, or name another file for the chunks"}
	}
	return nil
}
