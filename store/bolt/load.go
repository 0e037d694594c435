package bolt

import (
	"bytes"
	"fmt"

	"github.com/bkbtuner/bkb/store"
	"go.etcd.io/bbolt"
)

// load reads the state that the store keeps in memory and compares the buckets. Without
// the comparison a study whose key has a flipped bit would seem not to exist.
func (s *Store) load() error {
	var last store.StudyID
	var studies int
	err := s.look(func(tx *bbolt.Tx) (err error) {
		last, studies, err = loadIndex(tx)
		return err
	})
	if _, isFlaw := err.(flaw); isFlaw {
		return damaged(s.path, "%v", err)
	}
	s.lastID.Store(uint64(last))
	s.committer.studies.Store(int64(studies))
	return err
}

// loadIndex returns the newest id and the number of studies, or a [flaw] if the buckets do
// not agree.
func loadIndex(tx *bbolt.Tx) (last store.StudyID, studies int, err error) {
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return 0, 0, flaw{err: fmt.Errorf("bucket %s is missing", name)}
		}
	}
	last, ok := unsealID(bucketMeta, keyLastID, tx.Bucket(bucketMeta).Get(keyLastID))
	if !ok {
		return 0, 0, indexFlaw(bucketMeta, 0, "the last id does not match its checksum")
	}
	var named, logs int
	err = tx.Bucket(bucketNames).ForEach(func(name, row []byte) error {
		named++
		id, ok := unsealID(bucketNames, name, row)
		if !ok {
			return indexFlaw(bucketNames, 0, "the entry of %q does not match its checksum", name)
		}
		if other, err := nameOf(tx, id); err != nil || !bytes.Equal(other, name) {
			return indexFlaw(bucketNames, id, "the name %q refers to a study with another name", name)
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	err = tx.Bucket(bucketStudies).ForEach(func(key, row []byte) error {
		studies++
		if _, ok := unseal(bucketStudies, key, row); !ok || len(key) != idBytes {
			return indexFlaw(bucketStudies, 0, "the entry of study %x does not match its checksum", key)
		}
		if id := keyID(key); id > last || id == 0 {
			return indexFlaw(bucketStudies, id, "the id is larger than the newest id, %d", last)
		}
		return nil
	})
	if err == nil && named != studies {
		err = indexFlaw(bucketNames, 0, "there are %d names of %d studies", named, studies)
	}
	if err != nil {
		return 0, 0, err
	}
	err = tx.Bucket(bucketLogs).ForEachBucket(func(key []byte) error {
		logs++
		if tx.Bucket(bucketStudies).Get(key) == nil {
			return indexFlaw(bucketLogs, keyID(key), "its study is missing")
		}
		return nil
	})
	if err == nil && logs != studies {
		err = indexFlaw(bucketLogs, 0, "there are %d logs of %d studies", logs, studies)
	}
	return last, studies, err
}

func indexFlaw(bucket []byte, id store.StudyID, format string, args ...any) error {
	return flaw{bucket: string(bucket), study: id, err: fmt.Errorf(format, args...)}
}

// nameOf returns the name of a study. The name is valid only within the transaction.
// The error is a [store.NotFoundError] or a [store.CorruptError].
func nameOf(tx *bbolt.Tx, id store.StudyID) ([]byte, error) {
	key := idKey(id)
	row := tx.Bucket(bucketStudies).Get(key)
	if row == nil {
		return nil, &store.NotFoundError{Study: id}
	}
	name, ok := unseal(bucketStudies, key, row)
	if !ok {
		return nil, corrupt(id, 0, "its entry does not match its checksum")
	}
	return name, nil
}
