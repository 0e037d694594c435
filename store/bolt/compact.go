package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	Progress verify.Progress // of the check at the end
	Open     Options         // uses LockTimeout and Logger
}

// compactBytes is how many bytes one transaction of a compaction writes.
const compactBytes = 4 << 20

// Compact rewrites the file at path without the free space that deleted and replaced
// data left, and returns its sizes in bytes. No process may have the file open. Compact
// checks the copy, compares it with the original and then replaces the original in one
// step. If the machine stops at any time, path is one or the other.
func Compact(ctx context.Context, path string, options CompactOptions) (before, after int64, err error) {
	o := options.Open
	o.MustExist, o.ReadOnly, o.tuning.noReaping = true, false, true
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
	defer func() { err = errors.Join(err, remove(temp)) }()
	if err := errors.Join(f.Chmod(info.Mode().Perm()), original.rewrite(ctx, f)); err != nil {
		return 0, 0, err
	}
	if err := original.compare(ctx, temp, options.Progress); err != nil {
		return 0, 0, fmt.Errorf("compacting %s (the original is unchanged): %w", path, err)
	}
	compacted, err := os.Stat(temp)
	if err != nil {
		return 0, 0, err
	}
	return info.Size(), compacted.Size(), exchange(temp, path, options.Keep)
}

// exchange replaces the original by the copy.
func exchange(temp, path, keep string) error {
	if keep != "" {
		err := os.Link(path, keep)
		if errors.Is(err, fs.ErrExist) {
			err = &FileError{Path: keep, Reason: ErrAlreadyExists, Remedy: "choose another path or move that file away"}
		}
		if err != nil {
			return err
		}
		if err := syncDir(keep); err != nil {
			return err
		}
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(path)
}

// rewrite copies all data that are not deleted into a new file.
func (s *Store) rewrite(ctx context.Context, f *os.File) error {
	db, err := openNew(f)
	if err != nil {
		return err
	}
	c := copier{ctx: ctx, to: db}
	err = s.view(ctx, func(tx *bbolt.Tx) error { return c.copy(tx) })
	if err = errors.Join(err, c.end(err == nil), db.Close()); err != nil {
		return fmt.Errorf("compacting %s: %w", s.path, err)
	}
	return syncFile(f.Name())
}

// copier copies buckets in transactions of bounded size.
type copier struct {
	ctx   context.Context
	to    *bbolt.DB
	tx    *bbolt.Tx
	bytes int
}

func (c *copier) copy(from *bbolt.Tx) error {
	if err := c.begin(); err != nil {
		return err
	}
	graves := from.Bucket(bucketGraves)
	for _, name := range buckets {
		if _, err := c.tx.CreateBucket(name); err != nil {
			return err
		}
		bucket := from.Bucket(name)
		err := bucket.ForEach(func(key, value []byte) error {
			if graves.Get(key) != nil || bytes.Equal(name, bucketGraves) {
				return nil
			}
			if value != nil {
				return c.put([][]byte{name}, 0, key, value)
			}
			return c.bucket(name, key, bucket.Bucket(key))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket copies a log.
func (c *copier) bucket(parent, key []byte, from *bbolt.Bucket) error {
	if _, err := c.tx.Bucket(parent).CreateBucket(key); err != nil {
		return err
	}
	return from.ForEach(func(k, v []byte) error { return c.put([][]byte{parent, key}, from.Sequence(), k, v) })
}

// put copies one value, which stays valid while the original is being read.
func (c *copier) put(path [][]byte, sequence uint64, key, value []byte) error {
	if c.bytes += len(key) + len(value); c.bytes > compactBytes {
		if err := c.end(true); err != nil {
			return err
		}
		if err := c.begin(); err != nil {
			return err
		}
	}
	b := c.tx.Bucket(path[0])
	for _, name := range path[1:] {
		b = b.Bucket(name)
		if err := b.SetSequence(sequence); err != nil {
			return err
		}
	}
	b.FillPercent = 1
	return b.Put(key, value)
}

func (c *copier) begin() (err error) {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.bytes = 0
	c.tx, err = c.to.Begin(true)
	return err
}

func (c *copier) end(commit bool) error {
	tx := c.tx
	if c.tx = nil; tx == nil {
		return nil
	}
	if commit {
		return tx.Commit()
	}
	return tx.Rollback()
}

// compare checks the copy and compares it with the original record by record.
func (s *Store) compare(ctx context.Context, path string, progress verify.Progress) error {
	other, err := Open(path, Options{ReadOnly: true, MustExist: true})
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }()
	report, err := other.Check(ctx, &verify.Options{Progress: progress})
	if err != nil {
		return err
	}
	if !report.OK() {
		return fmt.Errorf("the copy is not sound (check the original): %v", report.Problems[0])
	}
	return s.look(func(a *bbolt.Tx) error {
		return other.look(func(b *bbolt.Tx) error { return sameContents(ctx, a, b) })
	})
}

// sameContents compares all data that are not deleted.
func sameContents(ctx context.Context, a, b *bbolt.Tx) error {
	graves := a.Bucket(bucketGraves)
	for _, name := range buckets {
		if bytes.Equal(name, bucketGraves) {
			continue
		}
		x, y := a.Bucket(name), b.Bucket(name)
		err := x.ForEach(func(key, value []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			same := bytes.Equal(value, y.Get(key))
			if value == nil && graves.Get(key) == nil {
				same = sameBucket(x.Bucket(key), y.Bucket(key))
			}
			if !same {
				return fmt.Errorf("the copy differs in bucket %s at %x", name, key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if x, y := a.Bucket(bucketStudies).Inspect().KeyN, b.Bucket(bucketStudies).Inspect().KeyN; x != y {
		return fmt.Errorf("the copy has %d studies instead of %d", y, x)
	}
	return nil
}

func sameBucket(x, y *bbolt.Bucket) bool {
	if y == nil || x.Sequence() != y.Sequence() {
		return false
	}
	c, d := x.Cursor(), y.Cursor()
	k, v := c.First()
	l, w := d.First()
	for k != nil && bytes.Equal(k, l) && bytes.Equal(v, w) {
		k, v = c.Next()
		l, w = d.Next()
	}
	return k == nil && l == nil
}
