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
	from = max(from, 1)
	return func(yield func(store.Record, error) bool) {
		info, err := s.Stat(ctx, id)
		decoder := store.NewDecoder(id)
		for next := from; err == nil && next <= info.Head; {
			var page []record
			page, err = s.page(ctx, id, next, info.Head)
			for _, r := range page {
				if err = ctx.Err(); err != nil {
					break
				}
				if r.position != next {
					err = missing(id, next)
					break
				}
				var e study.Event
				if e, err = decoder.Decode(next, r.bytes); err != nil {
					break
				}
				if !yield(store.Record{Position: next, Event: e}, nil) {
					return
				}
				next++
			}
			if err == nil && len(page) == 0 { // the study was deleted, or its log is damaged
				if _, err = s.Stat(ctx, id); err == nil {
					err = missing(id, next)
				}
			}
		}
		if err != nil {
			yield(store.Record{}, err)
		}
	}
}

func missing(id store.StudyID, pos study.Position) error {
	return &store.CorruptError{Study: id, Position: pos, Reason: "the record is missing"}
}

// record is a stored record that was not decoded.
type record struct {
	position study.Position
	bytes    []byte
}

// page reads the records from one position to another, up to the limits of a page.
func (s *Store) page(ctx context.Context, id store.StudyID, from, to study.Position) (page []record, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	err = s.readLarge(ctx, store.MaxRecordBytes, func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, s.sql.page, int64(id), int64(from), int64(to), readRecords, readBytes)
		page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r record, err error) {
			return r, row.Scan(&r.position, &r.bytes)
		})
		return err
	})
	return page, err
}
