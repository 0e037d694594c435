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
		// A try whose answer was lost leaves a server that soon expires.
		return conn.QueryRow(ctx, s.sql.register, address, ttl).Scan(&id)
	})
	return id, err
}

// Renew implements [store.Shared].
func (s *Store) Renew(ctx context.Context, id store.ServerID, ttl time.Duration) error {
	found, err := s.exec(ctx, s.sql.renew, int64(id), ttl)
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
			return v, row.Scan(&v.ID, &v.Address, &v.Expired)
		})
		return err
	})
	return all, err
}

// Bury implements [store.Shared]. Deleting the row excludes a renewal that is under way,
// which reading it would overlook.
func (s *Store) Bury(ctx context.Context, id store.ServerID) (gone bool, err error) {
	return s.bury(ctx, id, 0)
}

// bury removes a server whose lease has been over for some time.
func (s *Store) bury(ctx context.Context, id store.ServerID, over time.Duration) (gone bool, err error) {
	err = s.call(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, s.sql.bury, int64(id), over); err != nil {
			return err
		}
		return conn.QueryRow(ctx, s.sql.gone, int64(id)).Scan(&gone)
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
	v, _, there, err := s.owner(ctx, id)
	if !there {
		v = store.Server{}
	}
	return v, err
}

// owner reads the owner and the epoch of a study. there is false if the owner is not a
// server any more.
func (s *Store) owner(ctx context.Context, id store.StudyID) (v store.Server, epoch int64, there bool, err error) {
	err = s.row(ctx, []any{&v.ID, &epoch, &there, &v.Address, &v.Expired}, s.sql.owner, int64(id))
	return v, epoch, there, absent(err, &store.NotFoundError{Study: id})
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
		var owner store.ServerID
		var was int64
		var there bool
		other, claimed = store.Server{}, false
		if err := conn.QueryRow(ctx, s.sql.owner, int64(id)).Scan(&owner, &was, &there, &other.Address, &other.Expired); err != nil {
			return err
		}
		if there && owner != by {
			other.ID = owner
			return nil
		}
		other = store.Server{}
		tag, err := conn.Exec(ctx, s.sql.claim, int64(id), int64(by), int64(owner), was)
		epoch, claimed = uint64(was)+1, tag.RowsAffected() == 1
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
// without a claim frees a study whose server has been dead for long, and free reports
// that the write can be tried again.
func (s *Store) fenced(ctx context.Context, c store.Claim) (free bool, err error) {
	v, _, there, err := s.owner(ctx, c.Study)
	if err != nil {
		return false, err
	}
	if c.Server == 0 {
		if v.Expired {
			gone, err := s.bury(ctx, v.ID, store.AbandonedAfter)
			if err != nil {
				return false, err
			}
			there = !gone
		}
		if !there {
			v, _, _, err = s.claim(ctx, c.Study, 0)
			if err != nil || v.ID == 0 {
				return err == nil, err
			}
			there = true // another server was first
		}
	}
	if !there {
		v = store.Server{}
	}
	return false, &store.FencedError{Study: c.Study, Server: v}
}
