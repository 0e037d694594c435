package postgres

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/jackc/pgx/v5"
)

// Create implements [store.Store].
func (s *Store) Create(ctx context.Context, name string, events []study.Event) (store.Info, error) {
	if err := store.CheckName(name); err != nil {
		return store.Info{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Info{}, err
	}
	defer s.leave()
	var id, taken store.StudyID
	if err := s.row(ctx, []any{&id, &taken}, s.sql.reserve, name); err != nil {
		return store.Info{}, err
	}
	if taken != 0 {
		return store.Info{}, &store.ExistsError{Name: name, Study: taken}
	}
	records, err := store.EncodeCommit(id, 0, events)
	if err != nil {
		return store.Info{}, err
	}
	if err := s.create(context.WithoutCancel(ctx), id, name, records); err != nil {
		return store.Info{}, err
	}
	return store.Info{ID: id, Name: name, Head: study.Position(len(records))}, nil
}

// create writes a study until the database answers.
func (s *Store) create(ctx context.Context, id store.StudyID, name string, records [][]byte) error {
	for a := (attempt{store: s}); ; {
		var made int
		err := s.try(ctx, size(records), func(ctx context.Context, conn *pgx.Conn) error {
			err := conn.QueryRow(ctx, s.sql.create, int64(id), name, len(records), records).Scan(&made)
			return errors.Join(err, sure(conn))
		})
		if err == nil && made == 1 {
			return nil
		}
		if a.sent && (err == nil || code(err) == "23505") { // the name or our id is there
			done, err := s.created(ctx, id)
			if done && err == nil {
				return s.confirm(ctx, id)
			}
			if err != nil {
				return s.unknown(id, err)
			}
		}
		if err == nil {
			info, err := s.lookup(ctx, name)
			if err == nil {
				return &store.ExistsError{Name: name, Study: info.ID}
			}
			if !errors.As(err, new(*store.NotFoundError)) {
				return err
			}
			continue // deleted meanwhile
		}
		if !a.again(err) {
			return a.verdict(id, err)
		}
	}
}

// created tells whether a study was created, also if it was deleted since.
func (s *Store) created(ctx context.Context, id store.StudyID) (bool, error) {
	if _, err := s.stat(ctx, id); !errors.As(err, new(*store.NotFoundError)) {
		return err == nil, err
	}
	_, dead, err := s.grave(ctx, id)
	return dead, err
}

// grave returns the token of the call that deleted a study.
func (s *Store) grave(ctx context.Context, id store.StudyID) (token int64, dead bool, err error) {
	err = s.row(ctx, []any{&token}, s.sql.tombstone, int64(id))
	return token, err == nil, absent(err, nil)
}

func size(records [][]byte) (n int) {
	for _, r := range records {
		n += len(r)
	}
	return n
}

// Lookup implements [store.Store].
func (s *Store) Lookup(ctx context.Context, name string) (store.Info, error) {
	if err := s.enter(ctx); err != nil {
		return store.Info{}, err
	}
	defer s.leave()
	if store.CheckName(name) != nil {
		return store.Info{}, &store.NotFoundError{Name: name}
	}
	return s.lookup(ctx, name)
}

func (s *Store) lookup(ctx context.Context, name string) (store.Info, error) {
	info := store.Info{Name: name}
	if err := s.row(ctx, []any{&info.ID, &info.Head}, s.sql.lookup, name); err != nil {
		return store.Info{}, absent(err, &store.NotFoundError{Name: name})
	}
	return info, nil
}

// Stat implements [store.Store].
func (s *Store) Stat(ctx context.Context, id store.StudyID) (store.Info, error) {
	if err := s.enter(ctx); err != nil {
		return store.Info{}, err
	}
	defer s.leave()
	return s.stat(ctx, id)
}

func (s *Store) stat(ctx context.Context, id store.StudyID) (store.Info, error) {
	if !possible(id) {
		return store.Info{}, &store.NotFoundError{Study: id}
	}
	info := store.Info{ID: id}
	if err := s.row(ctx, []any{&info.Name, &info.Head}, s.sql.stat, int64(id)); err != nil {
		return store.Info{}, absent(err, &store.NotFoundError{Study: id})
	}
	return info, nil
}

// listPage is how many studies List reads at a time.
const listPage = 1024

// List implements [store.Store].
func (s *Store) List(ctx context.Context, after string) iter.Seq2[store.Info, error] {
	return store.ListPages(after, listPage, func(after string) ([]store.Info, error) { return s.listPage(ctx, after) })
}

func (s *Store) listPage(ctx context.Context, after string) (infos []store.Info, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	err = s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, s.sql.list, after, listPage)
		infos, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (info store.Info, err error) {
			return info, row.Scan(&info.ID, &info.Name, &info.Head)
		})
		return err
	})
	return infos, err
}

// Delete implements [store.Store]. The study disappears at once, and its log is removed
// later, in slices.
func (s *Store) Delete(ctx context.Context, id store.StudyID) error {
	return s.remove(ctx, store.Claim{Study: id})
}

// remove deletes a study under a claim, or without one if the claim has no server.
func (s *Store) remove(ctx context.Context, c store.Claim) error {
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
	for a := (attempt{store: s}); ; {
		var gone int
		err := s.try(ctx, 0, func(ctx context.Context, conn *pgx.Conn) error {
			err := conn.QueryRow(ctx, s.sql.remove, int64(id), token, owner, epoch).Scan(&gone)
			return errors.Join(err, sure(conn))
		})
		switch {
		case err == nil && gone == 1:
			s.reaper.Wake()
			return nil
		case err == nil && a.sent: // an earlier try or another caller may have deleted it
			by, dead, err := s.grave(ctx, id)
			switch {
			case err != nil:
				return s.unknown(id, err)
			case dead && by == token:
				s.reaper.Wake()
				return s.confirm(ctx, id)
			}
			fallthrough
		case err == nil:
			if free, err := s.fenced(ctx, c); !free {
				return err
			}
			continue
		}
		if !a.again(err) {
			return a.verdict(id, err)
		}
	}
}
