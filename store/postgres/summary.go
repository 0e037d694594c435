package postgres

import (
	"context"
	"slices"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/jackc/pgx/v5"
)

// summaryBytes is the size of a summary with the first record of its log that sets how
// long an answer may take.
const summaryBytes = 4 << 10

// summariesAtOnce is how many studies one query reads. Their first records hold search
// spaces, which may be large.
const summariesAtOnce = 100

// Summaries implements [store.Store].
func (s *Store) Summaries(ctx context.Context, ids []store.StudyID) (list []store.Summary, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	var wanted []int64
	for _, id := range ids {
		if possible(id) {
			wanted = append(wanted, int64(id))
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	found := make(map[store.StudyID]store.Summary)
	for some := range slices.Chunk(wanted, summariesAtOnce) {
		err = s.readLarge(ctx, len(some)*summaryBytes, func(ctx context.Context, conn *pgx.Conn) error {
			rows, _ := conn.Query(ctx, s.sql.summaries, some)
			var id store.StudyID
			var head study.Position
			var encoded, first []byte
			_, err := pgx.ForEachRow(rows, []any{&id, &head, &encoded, &first}, func() error {
				if sum, ok := store.DecodeSummary(id, head, encoded, first); ok {
					found[id] = sum
				}
				return nil
			})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		if sum, ok := found[id]; ok {
			list = append(list, sum)
		}
	}
	return list, nil
}

// SaveSummaries implements [store.Store]. It tries once, because a list makes missing
// summaries again.
func (s *Store) SaveSummaries(ctx context.Context, list []store.Summary) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	var ids, heads []int64
	var encoded [][]byte
	bytes := 0
	for _, sum := range list {
		b, err := store.EncodeSummary(sum.Study, sum.Position, sum.Data)
		if err != nil {
			return err
		}
		if possible(sum.Study) && sum.Position <= lastPosition {
			ids, heads, encoded = append(ids, int64(sum.Study)), append(heads, int64(sum.Position)), append(encoded, b)
			bytes += len(b)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	err := s.try(ctx, bytes, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, s.sql.saveSummaries, ids, heads, encoded)
		return err
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case answerOf(err) == refused:
		return s.refusal(err)
	default:
		return s.away(err)
	}
}
