package bolt

import (
	"context"
	"iter"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"go.etcd.io/bbolt"
)

func (s *Store) Create(ctx context.Context, name string, events []study.Event) (store.Info, error) {
	if err := store.CheckName(name); err != nil {
		return store.Info{}, err
	}
	if err := s.beginWrite(ctx); err != nil {
		return store.Info{}, err
	}
	defer s.leave()
	if err := s.look(func(tx *bbolt.Tx) error { return vacant(tx, name) }); err != nil { // before the events are encoded
		return store.Info{}, err
	}
	id := store.StudyID(s.lastID.Add(1))
	records, err := store.EncodeCommit(id, 0, events)
	if err != nil {
		return store.Info{}, err
	}
	err = s.committer.submit(ctx, size(records), func(tx *transaction) error { return tx.create(id, name, records) })
	if err != nil {
		return store.Info{}, err
	}
	return store.Info{ID: id, Name: name, Head: study.Position(len(records))}, nil
}

// beginWrite is enter for calls that write.
func (s *Store) beginWrite(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if s.options.ReadOnly {
		s.leave()
		return ErrReadOnly
	}
	return nil
}

func size(records [][]byte) (n int) {
	for _, r := range records {
		n += len(r)
	}
	return n
}

// vacant refuses a name that is taken.
func vacant(tx *bbolt.Tx, name string) error {
	key := []byte(name)
	row := tx.Bucket(bucketNames).Get(key)
	if row == nil {
		return nil
	}
	id, ok := unsealID(bucketNames, key, row)
	if !ok {
		return corrupt(0, 0, "the entry of its name does not match its checksum")
	}
	return &store.ExistsError{Name: name, Study: id}
}

func (tx *transaction) create(id store.StudyID, name string, records [][]byte) error {
	if err := vacant(tx.Tx, name); err != nil {
		return err
	}
	if tx.studies >= MaxStudies {
		return &store.LimitError{What: "studies", Size: tx.studies + 1, Limit: MaxStudies}
	}
	meta, key := tx.Bucket(bucketMeta), idKey(id)
	last, ok := unsealID(bucketMeta, keyLastID, meta.Get(keyLastID))
	if !ok {
		return corrupt(0, 0, "the last id does not match its checksum")
	}
	must(meta.Put(keyLastID, sealID(bucketMeta, keyLastID, max(last, id))))
	must(tx.Bucket(bucketNames).Put([]byte(name), sealID(bucketNames, []byte(name), id)))
	must(tx.Bucket(bucketStudies).Put(key, seal(bucketStudies, key, []byte(name))))
	log, err := tx.Bucket(bucketLogs).CreateBucket(key)
	must(err)
	appendRecords(log, 0, records)
	tx.studies++
	return nil
}

// must panics with an error that bbolt returns only if this package misuses it.
func must(err error) {
	if err != nil {
		panic(misuseError{err})
	}
}

func (s *Store) Lookup(ctx context.Context, name string) (info store.Info, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		info, err = named(tx, name)
		return err
	})
	return info, err
}

func named(tx *bbolt.Tx, name string) (store.Info, error) {
	key := []byte(name)
	row := tx.Bucket(bucketNames).Get(key)
	if row == nil {
		return store.Info{}, &store.NotFoundError{Name: name}
	}
	id, ok := unsealID(bucketNames, key, row)
	if !ok {
		return store.Info{}, corrupt(0, 0, "the entry of its name does not match its checksum")
	}
	return stat(tx, id)
}

func (s *Store) Stat(ctx context.Context, id store.StudyID) (info store.Info, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		info, err = stat(tx, id)
		return err
	})
	return info, err
}

func stat(tx *bbolt.Tx, id store.StudyID) (store.Info, error) {
	name, err := nameOf(tx, id)
	if err != nil {
		return store.Info{}, err
	}
	_, head, err := logOf(tx, id)
	if err != nil {
		return store.Info{}, err
	}
	return store.Info{ID: id, Name: string(name), Head: head}, nil
}

// listPage is how many studies List reads in one transaction.
const listPage = 256

func (s *Store) List(ctx context.Context, after string) iter.Seq2[store.Info, error] {
	return store.ListPages(after, listPage, func(after string) ([]store.Info, error) { return s.listPage(ctx, after) })
}

func (s *Store) listPage(ctx context.Context, after string) (infos []store.Info, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketNames).Cursor()
		name, _ := c.Seek([]byte(after))
		if string(name) == after {
			name, _ = c.Next()
		}
		for ; name != nil && len(infos) < listPage; name, _ = c.Next() {
			info, err := named(tx, string(name))
			if err != nil {
				return err
			}
			infos = append(infos, info)
		}
		return nil
	})
	return infos, err
}

func (s *Store) Delete(ctx context.Context, id store.StudyID) error {
	if err := s.beginWrite(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.committer.submit(ctx, 0, func(tx *transaction) error { return tx.delete(id) })
}

func (tx *transaction) delete(id store.StudyID) error {
	name, err := nameOf(tx.Tx, id)
	if err != nil {
		return err
	}
	key, logs := idKey(id), tx.Bucket(bucketLogs)
	if logs.Bucket(key) == nil {
		return corrupt(id, 0, "its log is missing")
	}
	must(tx.Bucket(bucketNames).Delete(name))
	tx.summarize(id, nil)
	must(logs.DeleteBucket(key))
	must(tx.Bucket(bucketStudies).Delete(key))
	tx.studies--
	return nil
}
