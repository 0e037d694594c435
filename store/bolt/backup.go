package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"go.etcd.io/bbolt"
)

// Backup writes a copy of the store at one moment to w.
// You can open the copy as a store. Reading and writing continue meanwhile, but the
// space that they free is not reused until the copy is done. The file therefore grows
// if w is slow.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(contextWriter{ctx, w})
		return err
	})
	if errors.Is(err, io.EOF) {
		err = damaged(s.path, "it was truncated while in use")
	}
	if err != nil {
		return fmt.Errorf("copying the study store %s: %w", s.path, err)
	}
	return nil
}

// rename renames a file. It replaces an existing file only if replace is set.
func rename(from, to string, replace bool) error {
	if replace {
		return os.Rename(from, to)
	}
	err := renameNew(from, to)
	if errors.Is(err, fs.ErrExist) {
		return &FileError{Path: to, Reason: ErrAlreadyExists, Remedy: "choose another path or move that file away"}
	}
	return err
}

// remove removes a file. It is no error if the file does not exist.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// contextWriter refuses to write after its context ended.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w contextWriter) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(b)
}
