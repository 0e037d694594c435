package postgres

import (
	"context"
	"iter"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/jackc/pgx/v5"
)

// The most that Read takes from one statement. A larger record is read alone.
const (
	readRecords = 4096
	readBytes   = 1 << 20
)

// Read implements [store.Store]. It reads up to the head that the log has when the loop
// begins.
func (s *Store) Read(ctx context.Context, id store.StudyID, from study.Position) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		info, err := s.Stat(ctx, id)
		store.ReadPages(ctx, id, from, func(next study.Position) ([][]byte, error) {
			if err != nil || next > info.Head {
				return nil, err
			}
			return s.page(ctx, id, next, info.Head)
		})(yield)
	}
}

// page reads the records from one position to another, up to the limits of a page and
// before one that is missing.
func (s *Store) page(ctx context.Context, id store.StudyID, from, to study.Position) (page [][]byte, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	err = s.readLarge(ctx, store.MaxRecordBytes, func(ctx context.Context, conn *pgx.Conn) error {
		page = nil
		rows, _ := conn.Query(ctx, s.sql.page, int64(id), int64(from), int64(to), readRecords, readBytes)
		var position study.Position
		var record []byte
		next := from
		_, err := pgx.ForEachRow(rows, []any{&position, &record}, func() error {
			if position == next {
				page = append(page, record)
				next++
			}
			return nil
		})
		return err
	})
	if err == nil && len(page) == 0 { // the study was deleted, or its log is damaged
		if _, err = s.stat(ctx, id); err == nil {
			err = &store.CorruptError{Study: id, Position: from, Reason: "the record is missing"}
		}
	}
	return page, err
}
