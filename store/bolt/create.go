package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

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
	temp := temporary(path, "new")
	err := build(temp, o)
	if err == nil {
		err = renameNew(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) {
			return explainOpen(path, err)
		}
		return fmt.Errorf("creating the study store %s: %w", path, err)
	}
	o.Logger.Info("created a study store", slog.String("path", path))
	return syncDir(path)
}

// build writes an empty store and syncs it.
func build(path string, o Options) error {
	db, err := openNew(path, o.FileMode)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error { return initialize(tx, newIdentity(o.Program)) })
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	return syncFile(path)
}

// openNew lets the engine open a file that must not exist yet.
func openNew(path string, mode os.FileMode) (*bbolt.DB, error) {
	return bbolt.Open(path, mode, &bbolt.Options{
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			return os.OpenFile(path, flag|os.O_EXCL, mode)
		},
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
