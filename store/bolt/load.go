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
	var index index
	err := s.look(func(tx *bbolt.Tx) (err error) {
		index, err = loadIndex(tx)
		return err
	})
	if _, isFlaw := err.(flaw); isFlaw {
		return damaged(s.path, "%v", err)
	}
	if err != nil {
		return err
	}
	s.lastID.Store(uint64(index.last))
	s.committer.studies.Store(int64(index.studies))
	if index.graves > 0 {
		s.reaper.Wake()
	}
	return nil
}

// index holds the counts of loadIndex.
type index struct {
	last            store.StudyID
	studies, graves int
}

// loadIndex returns a [flaw] if the buckets do not agree.
func loadIndex(tx *bbolt.Tx) (index, error) {
	x := index{}
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return x, flaw{err: fmt.Errorf("bucket %s is missing", name)}
		}
	}
	last, ok := unsealID(bucketMeta, keyLastID, tx.Bucket(bucketMeta).Get(keyLastID))
	if !ok {
		return x, flaw{bucket: string(bucketMeta), err: fmt.Errorf("the last id does not match its checksum")}
	}
	x.last = last
	var named int
	err := tx.Bucket(bucketNames).ForEach(func(name, row []byte) error {
		named++
		id, ok := unsealID(bucketNames, name, row)
		if !ok {
			return flaw{bucket: string(bucketNames), err: fmt.Errorf("the entry of %q does not match its checksum", name)}
		}
		if other, err := nameOf(tx, id); err != nil || !bytes.Equal(other, name) {
			return flaw{bucket: string(bucketNames), study: id, err: fmt.Errorf("the name %q refers to a study with another name", name)}
		}
		return nil
	})
	if err != nil {
		return x, err
	}
	if x.studies, err = checkRows(tx, bucketStudies, last); err != nil {
		return x, err
	}
	if x.graves, err = checkRows(tx, bucketGraves, last); err != nil {
		return x, err
	}
	if named != x.studies {
		return x, flaw{bucket: string(bucketNames), err: fmt.Errorf("there are %d names of %d studies", named, x.studies)}
	}
	return x, checkLogs(tx, x)
}

// checkRows counts the rows of studies or graves.
func checkRows(tx *bbolt.Tx, bucket []byte, last store.StudyID) (n int, err error) {
	err = tx.Bucket(bucket).ForEach(func(key, row []byte) error {
		n++
		if _, ok := unseal(bucket, key, row); !ok || len(key) != idBytes {
			return flaw{bucket: string(bucket), err: fmt.Errorf("the entry of study %x does not match its checksum", key)}
		}
		if id := keyID(key); id > last || id == 0 {
			return flaw{bucket: string(bucket), study: id, err: fmt.Errorf("the id is larger than the newest id, %d", last)}
		}
		return nil
	})
	return n, err
}

// checkLogs checks that each study and each grave has a log and that there are no other
// logs.
func checkLogs(tx *bbolt.Tx, x index) error {
	var logs int
	studies, graves := tx.Bucket(bucketStudies), tx.Bucket(bucketGraves)
	err := tx.Bucket(bucketLogs).ForEachBucket(func(key []byte) error {
		logs++
		if alive, dead := studies.Get(key) != nil, graves.Get(key) != nil; alive == dead {
			return flaw{bucket: string(bucketLogs), study: keyID(key), err: fmt.Errorf("its study is missing")}
		}
		return nil
	})
	if err == nil && logs != x.studies+x.graves {
		err = flaw{bucket: string(bucketLogs), err: fmt.Errorf("there are %d logs of %d studies", logs, x.studies+x.graves)}
	}
	return err
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
