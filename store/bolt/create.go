package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"go.etcd.io/bbolt"
)

// create makes an empty store. If the machine stops at any time, the store is at path
// either whole or not at all. It is built under another name, synced and renamed, and
// its directory is synced. create never replaces a file. If one exists, it returns
// [fs.ErrExist].
func create(path string, o Options) error {
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return &FileError{Path: path, Reason: ErrMissing, Detail: "there is no directory " + filepath.Dir(path), Remedy: "create the directory first"}
	}
	// Another process may be ahead and sweep, so the name is not one of path.
	f, err := atomicfile.New(path+".new", o.FileMode)
	if err == nil {
		defer os.Remove(f.Name()) // fails if all went well
		err = build(f, o)
	}
	if err == nil {
		err = renameNew(f.Name(), path)
	}
	if err != nil {
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) {
			return explainOpen(path, err)
		}
		return fmt.Errorf("creating the study store %s: %w", path, err)
	}
	o.Logger.Info("created a study store", slog.String("path", path))
	return syncDir(path)
}

// build writes an empty store and syncs it.
func build(f *os.File, o Options) error {
	db, err := openNew(f)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error { return initialize(tx, newIdentity(o.Program)) })
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	return syncFile(f.Name())
}

// openNew lets bbolt open a new file, which it closes.
func openNew(f *os.File) (*bbolt.DB, error) {
	return bbolt.Open(f.Name(), 0, &bbolt.Options{
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		OpenFile:       func(string, int, os.FileMode) (*os.File, error) { return f, nil },
	})
}

// initialize creates the buckets and rows of an empty store.
func initialize(tx *bbolt.Tx, identity Identity) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(bucketMeta)
	if err := meta.Put(keyLastID, sealID(bucketMeta, keyLastID, 0)); err != nil {
		return err
	}
	return meta.Put(keyIdentity, identity.row())
}
