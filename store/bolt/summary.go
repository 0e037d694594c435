package bolt

import (
	"context"

	"github.com/bkbtuner/bkb/store"
	"go.etcd.io/bbolt"
)

// summarize replaces the summary of a study. Nil removes it.
func (tx *transaction) summarize(id store.StudyID, encoded []byte) {
	if encoded == nil {
		must(tx.Bucket(bucketSummaries).Delete(idKey(id)))
		return
	}
	must(tx.Bucket(bucketSummaries).Put(idKey(id), encoded))
}

func (s *Store) Summaries(ctx context.Context, ids []store.StudyID) (list []store.Summary, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		summaries := tx.Bucket(bucketSummaries)
		for _, id := range ids {
			encoded := summaries.Get(idKey(id))
			if encoded == nil {
				continue
			}
			log, head, err := logOf(tx, id)
			if err != nil {
				continue // reading the log says what is wrong
			}
			if sum, ok := store.DecodeSummary(id, head, encoded, log.Get(posKey(1))); ok {
				list = append(list, sum)
			}
		}
		return nil
	})
	return list, err
}

func (s *Store) SaveSummaries(ctx context.Context, list []store.Summary) error {
	if err := s.beginWrite(ctx); err != nil {
		return err
	}
	defer s.leave()
	if len(list) == 0 {
		return nil
	}
	bytes, encoded := 0, make([][]byte, len(list))
	for i, sum := range list {
		var err error
		if encoded[i], err = store.EncodeSummary(sum.Study, sum.Position, sum.Data); err != nil {
			return err
		}
		bytes += len(encoded[i])
	}
	return s.committer.submit(ctx, bytes, func(tx *transaction) error {
		for i, sum := range list {
			if _, err := logAt(tx.Tx, sum.Study, sum.Position); err == nil {
				tx.summarize(sum.Study, encoded[i])
			}
		}
		return nil
	})
}
