package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/bkbtuner/bkb/internal/planted"
	"go.etcd.io/bbolt"
)

// create makes an empty store that is at path whole or not at all, whenever
// the machine stops: built under another name, synced, renamed, and its
// directory synced. It never replaces a file and reports one that is there as
// [fs.ErrExist].
func create(path string, o Options) error {
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return &FileError{Path: path, Reason: ErrMissing, Detail: "nor is there a directory " + filepath.Dir(path), Remedy: "make the directory first"}
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
	if planted.Is(planted.CreateNoSync) {
		return nil
	}
	return syncFile(path)
}

// openNew opens a file of the engine that must not exist yet.
func openNew(path string, mode os.FileMode) (*bbolt.DB, error) {
	return bbolt.Open(path, mode, &bbolt.Options{
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		NoSync:         planted.Is(planted.CreateNoSync),
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			return os.OpenFile(path, flag|os.O_EXCL, mode)
		},
	})
}

// initialize makes the buckets and the rows that every store has.
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
