package bolt

import (
	"context"
	"slices"

	"github.com/bkbtuner/bkb/store"
	"go.etcd.io/bbolt"
)

// SaveSnapshot implements [store.Store]. The snapshot is as durable as any other write.
func (s *Store) SaveSnapshot(ctx context.Context, id store.StudyID, snapshot store.Snapshot) error {
	if err := s.beginWrite(ctx); err != nil {
		return err
	}
	defer s.leave()
	var info store.Info
	err := s.look(func(tx *bbolt.Tx) (err error) {
		info, err = stat(tx, id)
		return err
	})
	if err != nil {
		return err
	}
	encoded, err := store.EncodeSnapshot(id, info.Head, snapshot)
	if err != nil {
		return err
	}
	return s.committer.submit(ctx, len(encoded), func(tx *transaction) error { return tx.save(id, encoded) })
}

// save replaces the snapshot of a study. The snapshot is cut into chunks, because the
// engine needs contiguous pages for one value.
func (tx *transaction) save(id store.StudyID, encoded []byte) error {
	if _, err := nameOf(tx.Tx, id); err != nil {
		return err
	}
	key, snapshots := idKey(id), tx.Bucket(bucketSnapshots)
	if snapshots.Bucket(key) != nil {
		must(snapshots.DeleteBucket(key))
	}
	chunks, err := snapshots.CreateBucket(key)
	must(err)
	chunks.FillPercent = 1
	i := 0
	for chunk := range slices.Chunk(encoded, chunkBytes) {
		must(chunks.Put(chunkKey(i), chunk))
		i++
	}
	return nil
}

// LoadSnapshot implements [store.Store].
func (s *Store) LoadSnapshot(ctx context.Context, id store.StudyID) (snapshot store.Snapshot, ok bool, err error) {
	var info store.Info
	var encoded []byte
	err = s.view(ctx, func(tx *bbolt.Tx) (err error) {
		if info, err = stat(tx, id); err != nil {
			return err
		}
		if chunks := tx.Bucket(bucketSnapshots).Bucket(idKey(id)); chunks != nil {
			encoded = join(chunks)
		}
		return nil
	})
	if err != nil {
		return store.Snapshot{}, false, err
	}
	snapshot, ok = store.DecodeSnapshot(id, info.Head, encoded)
	return snapshot, ok, nil
}

// join copies the chunks of a snapshot.
func join(chunks *bbolt.Bucket) (encoded []byte) {
	c := chunks.Cursor()
	for key, chunk := c.First(); key != nil; key, chunk = c.Next() {
		encoded = append(encoded, chunk...)
	}
	return encoded
}
