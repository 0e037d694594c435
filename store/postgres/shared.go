package postgres

import (
	"context"
	"time"

	"github.com/bkbtuner/bkb/store"
)

// anyEpoch is the epoch of a write without a claim.
const anyEpoch = -1

// Register implements [store.Shared]. Leases do not go by the clock of the database, which
// can be set.
func (s *Store) Register(ctx context.Context, address string, ttl time.Duration) (id store.ServerID, err error) {
	// A try whose answer was lost leaves a server that does not renew its lease.
	err = s.send(ctx, func(ctx context.Context, conn session) error {
		return conn.QueryRow(ctx, `INSERT INTO @.server (id, address, lease) VALUES (nextval('@.server_id'), $1, $2) RETURNING id`, address, ttl).Scan(&id)
	})
	return id, err
}

func (s *Store) Renew(ctx context.Context, id store.ServerID, beat uint64) error {
	found, err := s.exec(ctx, `UPDATE @.server SET beat = $2 WHERE id = $1`, int64(id), int64(beat))
	if err == nil && found == 0 {
		return &store.BuriedError{Server: id}
	}
	return err
}

func (s *Store) Unregister(ctx context.Context, id store.ServerID) error {
	_, err := s.exec(ctx, `DELETE FROM @.server WHERE id = $1`, int64(id))
	return err
}

func (s *Store) Servers(ctx context.Context) ([]store.Server, error) {
	return call(ctx, s, func() ([]store.Server, error) {
		return rows[store.Server](ctx, s, 0, `SELECT id, address, lease, beat FROM @.server ORDER BY id`)
	})
}

// Bury implements [store.Shared]. Deleting the row excludes a renewal that is under way,
// which reading it would overlook.
func (s *Store) Bury(ctx context.Context, v store.Server) (gone bool, err error) {
	err = s.send(ctx, func(ctx context.Context, conn session) error {
		if _, err := conn.Exec(ctx, `DELETE FROM @.server WHERE id = $1 AND beat = $2`, int64(v.ID), int64(v.Beat)); err != nil {
			return err
		}
		return conn.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM @.server WHERE id = $1)`, int64(v.ID)).Scan(&gone)
	})
	return gone, err
}

func (s *Store) Owner(ctx context.Context, id store.StudyID) (store.Server, error) {
	o, err := call(ctx, s, func() (ownership, error) { return s.owner(ctx, id) })
	return o.Server, err
}

// ownership is who has a study.
type ownership struct {
	store.Server       // the zero Server if the owner is not a server any more
	owner, epoch int64 // of the study
}

func (s *Store) owner(ctx context.Context, id store.StudyID) (o ownership, err error) {
	none := &store.NotFoundError{Study: id}
	if !possible(id) {
		return o, none
	}
	err = s.row(ctx, none, []any{&o.owner, &o.epoch, &o.ID, &o.Address, &o.TTL, &o.Beat}, `
		SELECT s.owner, s.epoch, coalesce(v.id, 0), coalesce(v.address, ''), coalesce(v.lease, '0'), coalesce(v.beat, 0)
		FROM @.study s LEFT JOIN @.server v ON v.id = s.owner WHERE s.id = $1`, int64(id))
	return o, err
}

func (s *Store) Claim(ctx context.Context, id store.StudyID, by store.ServerID) (store.Claim, error) {
	return call(ctx, s, func() (store.Claim, error) { return s.claim(ctx, id, by) })
}

// claim reads the owner first. The statement that claims the study names the owner and
// epoch that were read, because it could overlook a server that joined and claimed the
// study while it waited for the row.
func (s *Store) claim(ctx context.Context, id store.StudyID, by store.ServerID) (store.Claim, error) {
	for {
		o, err := s.owner(ctx, id)
		if err != nil {
			return store.Claim{}, err
		}
		if o.ID != 0 && o.ID != by {
			return store.Claim{}, &store.FencedError{Study: id, Server: o.Server}
		}
		claimed, err := s.change(ctx, `UPDATE @.study SET owner = $2, epoch = epoch + 1 WHERE id = $1 AND owner = $3 AND epoch = $4
			AND (owner = $2 OR NOT EXISTS (SELECT FROM @.server WHERE id = $3))`, int64(id), int64(by), o.owner, o.epoch)
		if err != nil {
			return store.Claim{}, err
		}
		if claimed == 1 {
			return store.Claim{Study: id, Server: by, Epoch: uint64(o.epoch) + 1}, nil
		}
		s.pause() // another server was first, or an earlier try was done
	}
}

func (s *Store) Release(ctx context.Context, c store.Claim) error {
	_, err := s.exec(ctx, `UPDATE @.study SET owner = 0 WHERE id = $1 AND owner = $2 AND epoch = $3`, int64(c.Study), int64(c.Server), int64(c.Epoch))
	return err
}

// send runs a task that may be done several times as a call.
func (s *Store) send(ctx context.Context, f task) error {
	_, err := call(ctx, s, func() (struct{}, error) { return struct{}{}, s.read(ctx, 0, f) })
	return err
}

// exec runs a statement that may be done several times as a call, and returns how many rows
// it changed.
func (s *Store) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	return call(ctx, s, func() (int64, error) { return s.change(ctx, sql, args...) })
}

func (s *Store) change(ctx context.Context, sql string, args ...any) (rows int64, err error) {
	err = s.read(ctx, 0, func(ctx context.Context, conn session) error {
		tag, err := conn.Exec(ctx, sql, args...)
		rows = tag.RowsAffected()
		return conn.sure(err)
	})
	return rows, err
}

// fenced is the error of a write that another owner of the study prevents. A write
// without a claim frees a study whose server does not renew its lease, and free reports
// that the write can be tried again.
func (s *Store) fenced(ctx context.Context, c store.Claim) (free bool, err error) {
	o, err := s.owner(ctx, c.Study)
	if err != nil {
		return false, err
	}
	if c.Server != 0 {
		return false, &store.FencedError{Study: c.Study, Server: o.Server}
	}
	if o.ID != 0 {
		gone, err := store.Outlive(ctx, s, o.Server)
		if err != nil {
			return false, err
		}
		if !gone {
			return false, &store.FencedError{Study: c.Study, Server: o.Server}
		}
	}
	_, err = s.claim(ctx, c.Study, 0)
	return err == nil, err
}
