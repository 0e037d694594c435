package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"go.etcd.io/bbolt"
)

// Open opens the store at path. If there is no file, it creates one unless the options
// forbid it. Before bbolt opens the file, Open locks and identifies it and checks
// every page in use, which takes about 40 ms per 100 MB in the page cache. Then it
// compares names, studies and logs with each other.
//
// The error is a [FileError], which names the problem and the remedy.
func Open(path string, options Options) (*Store, error) {
	o := options.withDefaults()
	for range creationTries {
		s, err := openExisting(path, o, o.reserve())
		if errors.Is(err, syscall.ENOMEM) {
			o.Logger.Warn("not enough address space for the file to grow, for example because of ulimit -v; "+
				"writes that grow the file wait for reads and backups in progress; raise that limit", slog.String("path", path), slog.Int("bytes", o.reserve()))
			s, err = openExisting(path, o, 0)
		}
		if !errors.Is(err, ErrMissing) || o.MustExist || o.ReadOnly {
			return s, err
		}
		if err := create(path, o); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return nil, fileError(path, ErrMissing, "it disappears after its creation, or is a dangling link", "look for another program that deletes files in that directory")
}

// creationTries bounds the race with processes that create and delete the file.
const creationTries = 3

func openExisting(path string, o Options, reserve int) (*Store, error) {
	f, err := lockFile(path, !o.ReadOnly, o.LockTimeout)
	if err != nil {
		return nil, err
	}
	seen, err := inspect(context.Background(), path, f, func(flaw) {})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var db *bbolt.DB
	err = guarded(func() (err error) {
		db, err = openFile(f, o.forBbolt(reserve))
		return err
	})
	if err != nil {
		_ = f.Close() // already closed by bbolt, unless it panicked
		if errors.Is(err, ErrDamaged) {
			return nil, damaged(path, "%v", err)
		}
		return nil, explainOpen(path, err)
	}
	s := newStore(path, o, f, db, seen)
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	if m := seen.meta; m.lost {
		o.Logger.Error("one of the two meta pages was damaged, and the other one is used. If the damaged page was the newer one, "+
			"as after a loss of power during a commit, the last commit is lost; run tuner check when no process uses the file",
			slog.String("path", path), slog.Uint64("transaction", m.txid), slog.Uint64("transaction of the damaged page", m.lostTx))
	}
	if !o.ReadOnly {
		atomicfile.Sweep(path) // of a killed Compact or Restore
	}
	s.start()
	return s, nil
}

// openFile lets bbolt open a file, which it closes.
func openFile(f *os.File, o *bbolt.Options) (*bbolt.DB, error) {
	o.OpenFile = func(string, int, os.FileMode) (*os.File, error) { return f, nil }
	return bbolt.Open(f.Name(), 0, o)
}

// lockFile opens the file at path with the lock that bbolt will take again on the same
// open file, so that nothing changes between inspection and use.
func lockFile(path string, exclusive bool, timeout time.Duration) (*os.File, error) {
	if _, err := statFile(path); err != nil {
		return nil, err
	}
	flag := os.O_RDONLY
	if exclusive {
		flag = os.O_RDWR
	}
	for deadline := time.Now().Add(timeout); ; {
		f, err := os.OpenFile(path, flag, 0)
		if err != nil {
			return nil, explainOpen(path, err)
		}
		same, err := lock(f, exclusive, deadline)
		if err == nil && same {
			return f, nil
		}
		_ = f.Close()
		if errors.Is(err, ErrInUse) {
			return nil, inUse(path, timeout)
		}
		if err != nil {
			return nil, err
		}
	}
}

// lock waits for the lock of a file. same is false if another file has replaced it.
func lock(f *os.File, exclusive bool, deadline time.Time) (same bool, err error) {
	if name := networkFileSystem(f); name != "" {
		return false, fileError(f.Name(), ErrNetworkDrive, name+" cannot guarantee that acknowledged data are on disk",
			"move the file to a local disk of the machine that serves it")
	}
	for ; ; time.Sleep(20 * time.Millisecond) {
		switch ok, err := atomicfile.Lock(f, exclusive); {
		case err != nil:
			return false, fmt.Errorf("locking %s: %w", f.Name(), err)
		case ok:
			info, err := f.Stat()
			if err != nil {
				return false, err
			}
			current, err := os.Stat(f.Name())
			return err == nil && os.SameFile(info, current), err
		case !time.Now().Before(deadline):
			return false, ErrInUse
		}
	}
}

// inUse names the process that has the file open, if the system says.
func inUse(path string, waited time.Duration) error {
	e := fileError(path, ErrInUse, "", "stop that process, or use the server that has the store open")
	if waited > 0 {
		e.Detail = fmt.Sprintf("waited %v", waited.Round(time.Millisecond))
	}
	if info, err := os.Stat(path); err == nil {
		if e.PID, e.Name = holder(info); e.PID != 0 {
			e.Detail = strings.TrimSuffix(fmt.Sprintf("%s has it open; %s", e.Process(), e.Detail), "; ")
		}
	}
	return e
}

// inspection holds the properties of a file before bbolt opens it.
type inspection struct {
	meta     metaState
	pages    int // in use
	identity Identity
}

// inspect checks without bbolt that a file is whole, belongs to this program, has a format that
// this program reads, and is sound in every page in use. It shows each flaw to found.
func inspect(ctx context.Context, path string, f *os.File, found func(flaw)) (x inspection, err error) {
	info, err := f.Stat()
	if err != nil {
		return x, err
	}
	x.meta = readMeta(f)
	const truncated = "restore the latest backup, or copy the whole file again if this is a copy"
	const foreign = "give the path of a study store, or a path without a file"
	switch m, size := x.meta, info.Size(); {
	case size == 0:
		return x, fileError(path, ErrEmpty, "a store is never empty, so its contents were lost", "restore a backup, or delete the file to begin with an empty store")
	case !m.sound && !m.ofBbolt:
		return x, fileError(path, ErrForeign, "it does not begin like a store", foreign)
	case !m.sound && size < 2*minPageSize:
		return x, fileError(path, ErrTruncated, fmt.Sprintf("it has %d bytes", size), truncated)
	case !m.sound:
		return x, damaged(path, "both meta pages are damaged")
	case size < m.bytes():
		return x, fileError(path, ErrTruncated, fmt.Sprintf("it has %d bytes, must have at least %d", size, m.bytes()), truncated)
	}
	var first *flaw
	var row []byte
	x.pages, row, err = walk(ctx, f, x.meta.metaPage, func(fault flaw) {
		if first == nil {
			first = &fault
		}
		found(fault)
	})
	if err != nil {
		return x, err
	}
	id, ours, sound := parseIdentity(row)
	x.identity = id
	switch {
	case row == nil && (first == nil || first.place), sound && !ours:
		return x, fileError(path, ErrForeign, "it is a bbolt database of another program", foreign)
	case row == nil:
		return x, damagedBy(path, *first)
	case !sound:
		return x, damaged(path, "the identity record does not match its checksum")
	case id.Format > Format:
		return x, fileError(path, ErrNewerFormat,
			fmt.Sprintf("%s wrote format %d, but this program (%s) reads up to format %d", id.Writer, id.Format, programVersion(), Format),
			"use that program or a newer one, or restore a backup from before the upgrade")
	case id.Format < 1:
		return x, damaged(path, "it has format %d, which does not exist", id.Format)
	case first != nil:
		return x, damagedBy(path, *first)
	}
	return x, nil
}

// OpenWhenFree is [Open], whose wait for another process ends with ctx. waiting, if not
// nil, is called after a second of waiting.
func OpenWhenFree(ctx context.Context, path string, o Options, waiting func(*FileError)) (st *Store, err error) {
	err = WhenFree(ctx, o.LockTimeout, waiting, func(turn time.Duration) error {
		o.LockTimeout = turn
		st, err = Open(path, o)
		return err
	})
	return st, err
}

// WhenFree calls open until the file is not in use, for at most a time. open waits for
// turn, which is short, so that the end of ctx has an effect in between.
func WhenFree(ctx context.Context, atMost time.Duration, waiting func(*FileError), open func(turn time.Duration) error) error {
	start := time.Now()
	for {
		turn := min(atMost-time.Since(start), 250*time.Millisecond)
		if turn <= 0 {
			turn = -1
		}
		err := open(turn)
		used, _ := errors.AsType[*FileError](err)
		switch {
		case !errors.Is(err, ErrInUse):
			return err
		case turn < 0 && atMost > 0:
			return fmt.Errorf("%w; waited %v", err, atMost)
		case turn < 0:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case waiting != nil && used != nil && time.Since(start) >= time.Second:
			waiting(used)
			waiting = nil
		}
	}
}

// create makes an empty store. If the machine stops at any time, the store is at path either
// whole or not at all. It is built under another name, synced and renamed, and its directory is
// synced. create never replaces a file. If one exists, it returns [fs.ErrExist].
func create(path string, o Options) error {
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fileError(path, ErrMissing, "there is no directory "+filepath.Dir(path), "create the directory first")
	}
	// Another process may be ahead and sweep, so the name is not one of path.
	f, err := atomicfile.New(path+".new", fileMode)
	if err == nil {
		defer os.Remove(f.Name()) // fails if all went well
		err = build(f, func(db *bbolt.DB) error {
			return db.Update(func(tx *bbolt.Tx) error { return initialize(tx, newIdentity()) })
		})
	}
	if err == nil {
		err = renameNew(f.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) {
		return explainOpen(path, err)
	}
	if err != nil {
		return fmt.Errorf("creating the study store %s: %w", path, err)
	}
	o.Logger.Info("created a study store", slog.String("path", path))
	return atomicfile.SyncDir(path)
}

// build fills a new file, which it closes, and makes it survive a loss of power.
func build(f *os.File, fill func(db *bbolt.DB) error) error {
	db, err := openFile(f, &bbolt.Options{
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
	})
	if err != nil {
		return err
	}
	if err := errors.Join(fill(db), db.Close()); err != nil {
		return err
	}
	written, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(written.Sync(), written.Close())
}

// initialize creates the buckets and rows of an empty store.
func initialize(tx *bbolt.Tx, identity Identity) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(bucketMeta)
	return errors.Join(meta.Put(keyLastID, sealID(bucketMeta, keyLastID, 0)), meta.Put(keyIdentity, identity.row()))
}

// linkNew renames a file unless the new path exists. A crash in between leaves both
// names on one file.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
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
