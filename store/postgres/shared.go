package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/jackc/pgx/v5"
)

var _ store.Shared = (*Store)(nil)

// anyEpoch is the epoch of a write without a claim.
const anyEpoch = -1

// Register implements [store.Shared].
func (s *Store) Register(ctx context.Context, address string, ttl time.Duration) (id store.ServerID, err error) {
	err = s.call(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		// A try whose answer was lost leaves a server that does not renew its lease.
		return conn.QueryRow(ctx, s.sql.register, address, ttl).Scan(&id)
	})
	return id, err
}

// Renew implements [store.Shared].
func (s *Store) Renew(ctx context.Context, id store.ServerID, beat uint64) error {
	found, err := s.exec(ctx, s.sql.renew, int64(id), int64(beat))
	if err == nil && found == 0 {
		return &store.BuriedError{Server: id}
	}
	return err
}

// Unregister implements [store.Shared].
func (s *Store) Unregister(ctx context.Context, id store.ServerID) error {
	_, err := s.exec(ctx, s.sql.unregister, int64(id))
	return err
}

// Servers implements [store.Shared].
func (s *Store) Servers(ctx context.Context) (all []store.Server, err error) {
	err = s.call(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, s.sql.servers)
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (v store.Server, err error) {
			return v, row.Scan(&v.ID, &v.Address, &v.TTL, &v.Beat)
		})
		return err
	})
	return all, err
}

// Bury implements [store.Shared]. Deleting the row excludes a renewal that is under way,
// which reading it would overlook.
func (s *Store) Bury(ctx context.Context, v store.Server) (gone bool, err error) {
	err = s.call(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, s.sql.bury, int64(v.ID), int64(v.Beat)); err != nil {
			return err
		}
		return conn.QueryRow(ctx, s.sql.gone, int64(v.ID)).Scan(&gone)
	})
	return gone, err
}

// Owner implements [store.Shared].
func (s *Store) Owner(ctx context.Context, id store.StudyID) (v store.Server, err error) {
	if err := s.enter(ctx); err != nil {
		return v, err
	}
	defer s.leave()
	if !possible(id) {
		return v, &store.NotFoundError{Study: id}
	}
	o, err := s.owner(ctx, id)
	return o.Server, err
}

// ownership is who has a study.
type ownership struct {
	store.Server       // the zero Server if the owner is not a server any more
	owner, epoch int64 // of the study
}

// into is where the columns of a row go.
func (o *ownership) into() []any {
	return []any{&o.owner, &o.epoch, &o.ID, &o.Address, &o.TTL, &o.Beat}
}

func (s *Store) owner(ctx context.Context, id store.StudyID) (o ownership, err error) {
	err = s.row(ctx, o.into(), s.sql.owner, int64(id))
	return o, absent(err, &store.NotFoundError{Study: id})
}

// Claim implements [store.Shared]. It reads the owner first. The statement that claims
// the study names the owner and epoch that were read, because it could overlook a server
// that joined and claimed the study while it waited for the row.
func (s *Store) Claim(ctx context.Context, id store.StudyID, by store.ServerID) (store.Claim, error) {
	if !possible(id) {
		return store.Claim{}, &store.NotFoundError{Study: id}
	}
	for {
		other, epoch, claimed, err := s.claim(ctx, id, by)
		switch {
		case err != nil:
			return store.Claim{}, err
		case other.ID != 0:
			return store.Claim{}, &store.FencedError{Study: id, Server: other}
		case claimed:
			return store.Claim{Study: id, Server: by, Epoch: epoch}, nil
		}
		s.pause() // another server was first
	}
}

// claim tries to make a server the owner of a study, if no other server is.
func (s *Store) claim(ctx context.Context, id store.StudyID, by store.ServerID) (other store.Server, epoch uint64, claimed bool, err error) {
	err = s.call(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var o ownership
		other, claimed = store.Server{}, false
		if err := conn.QueryRow(ctx, s.sql.owner, int64(id)).Scan(o.into()...); err != nil {
			return err
		}
		if o.ID != 0 && o.ID != by {
			other = o.Server
			return nil
		}
		tag, err := conn.Exec(ctx, s.sql.claim, int64(id), int64(by), o.owner, o.epoch)
		epoch, claimed = uint64(o.epoch)+1, tag.RowsAffected() == 1
		return errors.Join(err, sure(conn))
	})
	return other, epoch, claimed, absent(err, &store.NotFoundError{Study: id})
}

// Release implements [store.Shared].
func (s *Store) Release(ctx context.Context, c store.Claim) error {
	_, err := s.exec(ctx, s.sql.release, int64(c.Study), int64(c.Server), int64(c.Epoch))
	return err
}

// CommitAs implements [store.Shared].
func (s *Store) CommitAs(ctx context.Context, c store.Claim, expected study.Position, events []study.Event, summary []byte) error {
	return s.commit(ctx, c, expected, events, summary)
}

// DeleteAs implements [store.Shared].
func (s *Store) DeleteAs(ctx context.Context, c store.Claim) error { return s.remove(ctx, c) }

// call runs statements that may be done several times. It sends them again until they are
// answered.
func (s *Store) call(ctx context.Context, f func(ctx context.Context, conn *pgx.Conn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.read(ctx, f)
}

// exec is call for one statement, and returns how many rows it changed.
func (s *Store) exec(ctx context.Context, sql string, args ...any) (rows int64, err error) {
	err = s.call(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, sql, args...)
		rows = tag.RowsAffected()
		return errors.Join(err, sure(conn))
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
	v := o.Server
	if c.Server == 0 {
		gone := v.ID == 0
		if !gone {
			gone, err = store.Outlive(ctx, s, v)
		}
		if gone {
			v, _, _, err = s.claim(ctx, c.Study, 0)
		}
		if err != nil || v.ID == 0 {
			return err == nil, err
		}
	}
	return false, &store.FencedError{Study: c.Study, Server: v}
}
