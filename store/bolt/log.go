package bolt

import (
	"context"
	"iter"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"go.etcd.io/bbolt"
)

// The most that Read takes from one transaction. A larger record is read alone.
const (
	readRecords = 512
	readBytes   = 256 << 10
)

func (s *Store) Commit(ctx context.Context, id store.StudyID, expected study.Position, events []study.Event, summary []byte) error {
	if err := s.beginWrite(ctx); err != nil {
		return err
	}
	defer s.leave()
	at := func(tx *bbolt.Tx) error {
		_, err := logAt(tx, id, expected)
		return err
	}
	if err := s.look(at); err != nil { // before the events are encoded
		return err
	}
	records, err := store.EncodeCommit(id, expected, events)
	if err != nil {
		return err
	}
	shown, err := store.EncodeSummary(id, expected+study.Position(len(events)), summary)
	if err != nil {
		return err
	}
	return s.committer.submit(ctx, size(records)+len(shown), func(tx *transaction) error {
		log, err := logAt(tx.Tx, id, expected)
		if err != nil {
			return err
		}
		appendRecords(log, expected, records)
		tx.summarize(id, shown)
		return nil
	})
}

// logOf returns a study's log and its head. The head is kept twice, as the key of the
// last record and as the bucket's sequence. If they differ, records are missing.
func logOf(tx *bbolt.Tx, id store.StudyID) (*bbolt.Bucket, study.Position, error) {
	log := tx.Bucket(bucketLogs).Bucket(idKey(id))
	if log == nil {
		return nil, 0, corrupt(id, 0, "its log is missing")
	}
	head := study.Position(log.Sequence())
	last, _ := log.Cursor().Last()
	if head == 0 || !isPos(last, head) {
		return nil, 0, corrupt(id, head, "the log should end here but does not")
	}
	return log, head, nil
}

// logAt returns the log of a study that exists and has the expected head.
func logAt(tx *bbolt.Tx, id store.StudyID, expected study.Position) (*bbolt.Bucket, error) {
	if tx.Bucket(bucketStudies).Get(idKey(id)) == nil {
		return nil, &store.NotFoundError{Study: id}
	}
	log, head, err := logOf(tx, id)
	if err != nil {
		return nil, err
	}
	if head != expected {
		return nil, &store.ConflictError{Study: id, Expected: expected, Actual: head}
	}
	return log, nil
}

// appendRecords writes records after the head. It fills pages completely, because no
// record will be inserted between them.
func appendRecords(log *bbolt.Bucket, head study.Position, records [][]byte) {
	log.FillPercent = 1
	for _, record := range records {
		head++
		must(log.Put(posKey(head), record))
	}
	must(log.SetSequence(uint64(head)))
}

// Read implements [store.Store]. It reads up to the head that the log has at the first page.
func (s *Store) Read(ctx context.Context, id store.StudyID, from study.Position) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		r := reader{id: id}
		store.ReadPages(ctx, id, from, func(next study.Position) ([][]byte, error) {
			if r.head != 0 && next > r.head {
				return nil, nil
			}
			r.next = next
			err := s.view(ctx, r.read)
			return r.page, err
		})(yield)
	}
}

// reader reads a log page by page.
type reader struct {
	id   store.StudyID
	next study.Position
	head study.Position // last position to read, 0 before the first page
	page [][]byte       // parts of buf
	buf  []byte
}

func (r *reader) read(tx *bbolt.Tx) error {
	r.page, r.buf = r.page[:0], r.buf[:0]
	if _, err := nameOf(tx, r.id); err != nil {
		return err
	}
	log, head, err := logOf(tx, r.id)
	if err != nil {
		return err
	}
	if r.head == 0 {
		r.head = head
	}
	if r.next > r.head {
		return nil
	}
	cursor := log.Cursor()
	key, record := cursor.Seek(posKey(r.next))
	var ends []int
	for pos := r.next; pos <= r.head && len(ends) < readRecords; pos++ {
		if !isPos(key, pos) || len(record) > store.MaxRecordBytes {
			if len(ends) == 0 {
				return corrupt(r.id, pos, "the record is missing")
			}
			break // the records before it are sound, and the next page begins with it
		}
		if len(ends) > 0 && len(r.buf)+len(record) > readBytes {
			break
		}
		r.buf = append(r.buf, record...)
		ends = append(ends, len(r.buf))
		key, record = cursor.Next()
	}
	r.cut(ends)
	return nil
}

// cut divides buf into records at the given ends.
func (r *reader) cut(ends []int) {
	from := 0
	for _, end := range ends {
		r.page = append(r.page, r.buf[from:end:end])
		from = end
	}
}

func corrupt(id store.StudyID, pos study.Position, reason string) error {
	return &store.CorruptError{Study: id, Position: pos, Reason: reason}
}
