package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/store/verify"
	"go.etcd.io/bbolt"
)

// CompactOptions holds the settings of [Compact].
type CompactOptions struct {
	// Keep is a path for the original in the same file system, at which there must be
	// no file yet. If empty, the original is removed.
	Keep     string
	Progress verify.Progress // of the check
	Open     Options         // uses LockTimeout and Logger
}

// compactBytes is how many bytes one transaction of a compaction writes.
const compactBytes = 4 << 20

// Compact rewrites the file at path without the free space that deleted and replaced
// data left, and returns its sizes in bytes. No process may have the file open. Compact
// checks the original, compares the copy with it and then replaces it in one step. If the
// machine stops at any time, path is one or the other.
func Compact(ctx context.Context, path string, options CompactOptions) (before, after int64, err error) {
	o := options.Open
	o.MustExist, o.ReadOnly, o.MaxSize = true, false, -1
	original, err := Open(path, o)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, original.Close()) }()
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	// The original is locked, and the next process that opens it sweeps.
	f, err := atomicfile.New(path, info.Mode().Perm())
	if err != nil {
		return 0, 0, err
	}
	temp := f.Name()
	defer os.Remove(temp)                                // fails if all went well
	defer context.AfterFunc(ctx, func() { f.Close() })() // so that writing ends
	if err := original.rewrite(ctx, f, options.Progress); err != nil {
		_ = f.Close()
		return 0, 0, fmt.Errorf("compacting %s (the original is unchanged): %w", path, err)
	}
	compacted, err := os.Stat(temp)
	if err != nil {
		return 0, 0, err
	}
	if options.Keep != "" {
		if err := renameError(options.Keep, os.Link(path, options.Keep)); err != nil {
			return 0, 0, err
		}
		if err := atomicfile.SyncDir(options.Keep); err != nil {
			return 0, 0, err
		}
	}
	return info.Size(), compacted.Size(), errors.Join(os.Rename(temp, path), atomicfile.SyncDir(path))
}

// rewrite makes a new file an equal of a sound store.
func (s *Store) rewrite(ctx context.Context, f *os.File, progress verify.Progress) error {
	report, err := s.Check(ctx, &verify.Options{Progress: progress})
	if err == nil && !report.OK() {
		err = fmt.Errorf("%w: %v", ErrDamaged, report.Problems[0])
	}
	if err != nil {
		return err
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	err = errors.Join(f.Chmod(info.Mode().Perm()), build(f, func(db *bbolt.DB) error {
		return guarded(func() error { return bbolt.Compact(db, s.db, compactBytes) })
	}))
	if err != nil {
		return errors.Join(ctx.Err(), err)
	}
	other, err := Open(f.Name(), Options{ReadOnly: true, MustExist: true})
	if err != nil {
		return err
	}
	err = s.look(func(a *bbolt.Tx) error {
		return other.look(func(b *bbolt.Tx) error {
			if !same(ctx, a.Cursor().Bucket(), b.Cursor().Bucket()) {
				return errors.Join(ctx.Err(), errors.New("the copy differs from it"))
			}
			return nil
		})
	})
	return errors.Join(err, other.Close())
}

// same compares two buckets with all that is in them.
func same(ctx context.Context, x, y *bbolt.Bucket) bool {
	if y == nil || x.Sequence() != y.Sequence() || ctx.Err() != nil {
		return false
	}
	c, d := x.Cursor(), y.Cursor()
	k, v := c.First()
	l, w := d.First()
	for k != nil && bytes.Equal(k, l) && bytes.Equal(v, w) && (v != nil || same(ctx, x.Bucket(k), y.Bucket(k))) {
		k, v = c.Next()
		l, w = d.Next()
	}
	return k == nil && l == nil
}
