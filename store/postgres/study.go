package postgres

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/jackc/pgx/v5"
)

func (s *Store) Create(ctx context.Context, name string, events []study.Event) (store.Info, error) {
	if err := store.CheckName(name); err != nil {
		return store.Info{}, err
	}
	return call(ctx, s, func() (store.Info, error) {
		var id, taken store.StudyID
		err := s.row(ctx, nil, []any{&id, &taken}, `SELECT nextval('@.study_id'), coalesce((SELECT id FROM @.study WHERE name = $1), 0)`, name)
		if err == nil && taken != 0 {
			err = &store.ExistsError{Name: name, Study: taken}
		}
		if err != nil {
			return store.Info{}, err
		}
		records, err := store.EncodeCommit(id, 0, events)
		if err != nil {
			return store.Info{}, err
		}
		if err := s.create(context.WithoutCancel(ctx), id, name, records); err != nil {
			return store.Info{}, err
		}
		return store.Info{ID: id, Name: name, Head: study.Position(len(records))}, nil
	})
}

// createStudy does not create a study again that an earlier try created and that was
// deleted since.
const createStudy = `
	WITH made AS (INSERT INTO @.study (id, name, head) SELECT $1, $2, $3 WHERE NOT EXISTS (SELECT FROM @.grave WHERE study = $1)
		ON CONFLICT (name) DO NOTHING RETURNING id),
	stored AS (INSERT INTO @.event (study, position, record) SELECT made.id, r.position, r.record
		FROM made, unnest($4::bytea[]) WITH ORDINALITY r(record, position))
	SELECT count(*) FROM made`

// create writes a study.
func (s *Store) create(ctx context.Context, id store.StudyID, name string, records [][]byte) error {
	for a := (&attempt{store: s}); ; {
		made, err := a.do(ctx, id, size(records), func() (bool, error) { return s.created(ctx, id) },
			createStudy, int64(id), name, len(records), records)
		if made || err != nil {
			return err
		}
		info, err := s.lookup(ctx, name)
		if err == nil {
			return &store.ExistsError{Name: name, Study: info.ID}
		}
		if !errors.As(err, new(*store.NotFoundError)) {
			return err
		} // deleted meanwhile
	}
}

// created tells whether a study was created, also if it was deleted since.
func (s *Store) created(ctx context.Context, id store.StudyID) (bool, error) {
	if _, err := s.stat(ctx, id); !errors.As(err, new(*store.NotFoundError)) {
		return err == nil, err
	}
	token, err := s.grave(ctx, id)
	return token != nil, err
}

// grave returns the token of the call that deleted a study, or nil.
func (s *Store) grave(ctx context.Context, id store.StudyID) (token *int64, err error) {
	err = s.row(ctx, nil, []any{&token}, `SELECT token FROM @.grave WHERE study = $1`, int64(id))
	return token, err
}

func size(records [][]byte) (n int) {
	for _, r := range records {
		n += len(r)
	}
	return n
}

func (s *Store) Lookup(ctx context.Context, name string) (store.Info, error) {
	return call(ctx, s, func() (store.Info, error) {
		if store.CheckName(name) != nil {
			return store.Info{}, &store.NotFoundError{Name: name}
		}
		return s.lookup(ctx, name)
	})
}

func (s *Store) lookup(ctx context.Context, name string) (store.Info, error) {
	info := store.Info{Name: name}
	err := s.row(ctx, &store.NotFoundError{Name: name}, []any{&info.ID, &info.Head}, `SELECT id, head FROM @.study WHERE name = $1`, name)
	if err != nil {
		return store.Info{}, err
	}
	return info, nil
}

func (s *Store) Stat(ctx context.Context, id store.StudyID) (store.Info, error) {
	return call(ctx, s, func() (store.Info, error) { return s.stat(ctx, id) })
}

func (s *Store) stat(ctx context.Context, id store.StudyID) (store.Info, error) {
	info, none := store.Info{ID: id}, &store.NotFoundError{Study: id}
	if !possible(id) {
		return store.Info{}, none
	}
	if err := s.row(ctx, none, []any{&info.Name, &info.Head}, `SELECT name, head FROM @.study WHERE id = $1`, int64(id)); err != nil {
		return store.Info{}, err
	}
	return info, nil
}

// listPage is how many studies List reads at a time.
const listPage = 1024

func (s *Store) List(ctx context.Context, after string) iter.Seq2[store.Info, error] {
	return store.ListPages(after, listPage, func(after string) ([]store.Info, error) {
		return call(ctx, s, func() ([]store.Info, error) {
			return rows[store.Info](ctx, s, 0, `SELECT id, name, head FROM @.study WHERE name > $1 ORDER BY name LIMIT $2`, after, listPage)
		})
	})
}

// Delete implements [store.Store]. The study disappears at once, and its log is removed
// later, in slices.
func (s *Store) Delete(ctx context.Context, id store.StudyID) error {
	return s.DeleteAs(ctx, store.Claim{Study: id})
}

// DeleteAs implements [store.Shared]. A claim without a server is none.
func (s *Store) DeleteAs(ctx context.Context, c store.Claim) error {
	id := c.Study
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if !possible(id) {
		return &store.NotFoundError{Study: id}
	}
	ctx = context.WithoutCancel(ctx)
	token := rand.Int64()
	owner, epoch := rights(c)
	for a := (&attempt{store: s}); ; {
		gone, err := a.do(ctx, id, 0, func() (bool, error) { // another caller may have deleted it
			by, err := s.grave(ctx, id)
			return by != nil && *by == token, err
		}, `WITH gone AS (DELETE FROM @.study WHERE id = $1 AND owner = $3 AND ($4 < 0 OR epoch = $4) RETURNING id),
			dug AS (INSERT INTO @.grave (study, token) SELECT id, $2 FROM gone)
			SELECT count(*) FROM gone`, int64(id), token, owner, epoch)
		if gone {
			select {
			case s.deleted <- struct{}{}:
			default:
			}
		}
		if gone || err != nil {
			return err
		}
		if free, err := s.fenced(ctx, c); !free {
			return err
		}
	}
}

// cleanSlice is how many records are removed in one statement, and cleanRetry the wait after
// a failure.
const (
	cleanSlice = 10_000
	cleanRetry = 30 * time.Second
)

// clean removes the logs of deleted studies in slices, also those that an earlier process
// left. It leaves half of the time to others.
func (s *Store) clean(ctx context.Context) {
	for ctx.Err() == nil {
		begun := time.Now()
		err := s.cleanOne(ctx)
		next := time.After(time.Since(begun))
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, pgx.ErrNoRows):
			next = nil
		case err != nil:
			s.options.Logger.Warn("removing the log of a deleted study failed", slog.String("database", s.database), slog.Any("error", err))
			next = time.After(cleanRetry)
		}
		select {
		case <-ctx.Done():
		case <-next:
		case <-s.deleted:
		}
	}
}

// cleanOne removes a slice. No event can follow into the log of a study that is gone. A
// grave keeps the study until its log is gone, and the id of the study for a day after that.
func (s *Store) cleanOne(ctx context.Context) error {
	return s.read(ctx, 0, func(ctx context.Context, conn session) error {
		var id int64
		if err := conn.QueryRow(ctx, `SELECT study FROM @.grave WHERE NOT reaped ORDER BY study LIMIT 1`).Scan(&id); err != nil {
			return err
		}
		tag, err := conn.Exec(ctx, `DELETE FROM @.event WHERE study = $1 AND position IN
			(SELECT position FROM @.event WHERE study = $1 ORDER BY position LIMIT $2)`, id, s.options.tuning.slice)
		if err == nil && tag.RowsAffected() < int64(s.options.tuning.slice) {
			_, err = conn.Exec(ctx, `
				WITH old AS (DELETE FROM @.grave WHERE reaped AND study <> $1 AND deleted < now() - interval '1 day')
				UPDATE @.grave SET reaped = true WHERE study = $1`, id)
		}
		return err
	})
}

// The most that Read takes from one statement. A larger record is read alone.
const (
	readRecords = 4096
	readBytes   = 1 << 20
)

// Read implements [store.Store]. It reads up to the head that the log has when the loop begins.
func (s *Store) Read(ctx context.Context, id store.StudyID, from study.Position) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		info, err := s.Stat(ctx, id)
		store.ReadPages(ctx, id, from, func(next study.Position) ([][]byte, error) {
			if err != nil || next > info.Head {
				return nil, err
			}
			return call(ctx, s, func() ([][]byte, error) { return s.page(ctx, id, next, info.Head) })
		})(yield)
	}
}

// page reads the records from one position to another, up to the limits of a page and
// before one that is missing.
func (s *Store) page(ctx context.Context, id store.StudyID, from, to study.Position) (page [][]byte, err error) {
	type row struct {
		Position study.Position
		Record   []byte
	}
	found, err := rows[row](ctx, s, store.MaxRecordBytes, `
		SELECT position, record FROM (
			SELECT position, record, sum(octet_length(record)) OVER (ORDER BY position) AS total FROM (
				SELECT position, record FROM @.event WHERE study = $1 AND position BETWEEN $2 AND $3 ORDER BY position LIMIT $4
			) first
		) counted WHERE total - octet_length(record) < $5 ORDER BY position`, int64(id), int64(from), int64(to), readRecords, readBytes)
	for i, r := range found {
		if r.Position == from+study.Position(i) {
			page = append(page, r.Record)
		}
	}
	if err == nil && len(page) == 0 { // the study was deleted, or its log is damaged
		if _, err = s.stat(ctx, id); err == nil {
			err = &store.CorruptError{Study: id, Position: from, Reason: "the record is missing"}
		}
	}
	return page, err
}

// summaryBytes is the size of a summary with the first record of its log that sets how
// long an answer may take.
const summaryBytes = 4 << 10

// summariesAtOnce is how many studies one query reads. Their first records hold search
// spaces, which may be large.
const summariesAtOnce = 100

func (s *Store) Summaries(ctx context.Context, ids []store.StudyID) (list []store.Summary, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	type row struct {
		ID             store.StudyID
		Head           study.Position
		Encoded, First []byte
	}
	found := make(map[store.StudyID]store.Summary)
	var wanted []int64
	for _, id := range ids {
		if possible(id) {
			wanted = append(wanted, int64(id))
		}
	}
	for some := range slices.Chunk(wanted, summariesAtOnce) {
		answer, err := rows[row](ctx, s, len(some)*summaryBytes, `SELECT s.id, s.head, s.summary, e.record
			FROM @.study s JOIN @.event e ON e.study = s.id AND e.position = 1 WHERE s.id = ANY($1) AND s.summary IS NOT NULL`, some)
		if err != nil {
			return nil, err
		}
		for _, r := range answer {
			if sum, ok := store.DecodeSummary(r.ID, r.Head, r.Encoded, r.First); ok {
				found[r.ID] = sum
			}
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
	for _, sum := range list {
		b, err := store.EncodeSummary(sum.Study, sum.Position, sum.Data)
		if err != nil {
			return err
		}
		if possible(sum.Study) && sum.Position <= lastPosition {
			ids, heads, encoded = append(ids, int64(sum.Study)), append(heads, int64(sum.Position)), append(encoded, b)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	err := s.try(ctx, size(encoded), func(ctx context.Context, conn session) error {
		// The rows are locked in the order of their ids, as those of a commit are.
		_, err := conn.Exec(ctx, `
			WITH locked AS MATERIALIZED (SELECT id FROM @.study WHERE id = ANY($1) ORDER BY id FOR UPDATE)
			UPDATE @.study s SET summary = w.summary FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) w(id, head, summary), locked l
			WHERE s.id = w.id AND l.id = s.id AND s.head = w.head`, ids, heads, encoded)
		return err
	})
	if err == nil {
		return nil
	}
	return cmp.Or(ctx.Err(), (&attempt{store: s}).verdict(0, err))
}
