package memory

import (
	"context"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/store"
)

// server is a server that shares the store. They are all in this process, and share it
// to test what servers of a database do.
type server struct {
	address string
	expires time.Time
}

func (v *server) expired() bool { return !v.expires.After(time.Now()) }

// change calls f under the lock.
func (s *Store) change(ctx context.Context, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	return f()
}

// Register implements [store.Shared].
func (s *Store) Register(ctx context.Context, address string, ttl time.Duration) (id store.ServerID, err error) {
	err = s.change(ctx, func() error {
		s.lastServer++
		id = s.lastServer
		s.servers[id] = &server{address, time.Now().Add(ttl)}
		return nil
	})
	return id, err
}

// Renew implements [store.Shared].
func (s *Store) Renew(ctx context.Context, id store.ServerID, ttl time.Duration) error {
	return s.change(ctx, func() error {
		v := s.servers[id]
		if v == nil {
			return &store.BuriedError{Server: id}
		}
		v.expires = time.Now().Add(ttl)
		return nil
	})
}

// Unregister implements [store.Shared].
func (s *Store) Unregister(ctx context.Context, id store.ServerID) error {
	return s.change(ctx, func() error {
		delete(s.servers, id)
		return nil
	})
}

// Servers implements [store.Shared].
func (s *Store) Servers(ctx context.Context) (all []store.Server, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	for id := range s.servers {
		all = append(all, s.server(id))
	}
	slices.SortFunc(all, func(a, b store.Server) int { return int(a.ID) - int(b.ID) })
	return all, nil
}

// Bury implements [store.Shared].
func (s *Store) Bury(ctx context.Context, id store.ServerID) (gone bool, err error) {
	err = s.change(ctx, func() error {
		v := s.servers[id]
		if gone = v == nil || v.expired(); gone {
			delete(s.servers, id)
		}
		return nil
	})
	return gone, err
}

// Owner implements [store.Shared].
func (s *Store) Owner(ctx context.Context, id store.StudyID) (store.Server, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l, err := s.log(ctx, id)
	if err != nil {
		return store.Server{}, err
	}
	return s.server(l.owner), nil
}

// Claim implements [store.Shared].
func (s *Store) Claim(ctx context.Context, id store.StudyID, by store.ServerID) (store.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.log(ctx, id)
	if err != nil {
		return store.Claim{}, err
	}
	if v := s.servers[l.owner]; v != nil && l.owner != by {
		return store.Claim{}, &store.FencedError{Study: id, Server: s.server(l.owner)}
	}
	l.owner, l.epoch = by, l.epoch+1
	return store.Claim{Study: id, Server: by, Epoch: l.epoch}, nil
}

// Release implements [store.Shared].
func (s *Store) Release(ctx context.Context, c store.Claim) error {
	return s.change(ctx, func() error {
		if l := s.studies[c.Study]; l != nil && l.owner == c.Server && l.epoch == c.Epoch {
			l.owner = 0
		}
		return nil
	})
}

// DeleteAs implements [store.Shared].
func (s *Store) DeleteAs(ctx context.Context, c store.Claim) error { return s.remove(ctx, c) }

// fence refuses a write under a claim that is void. The lock is held.
func (s *Store) fence(l *log, c store.Claim) error {
	if c.Server == 0 {
		v := s.servers[l.owner]
		if v != nil && time.Since(v.expires) <= store.AbandonedAfter {
			return &store.FencedError{Study: c.Study, Server: s.server(l.owner)}
		}
		if l.owner != 0 {
			delete(s.servers, l.owner)
			l.owner, l.epoch = 0, l.epoch+1
		}
		return nil
	}
	if l.owner != c.Server || l.epoch != c.Epoch {
		return &store.FencedError{Study: c.Study, Server: s.server(l.owner)}
	}
	return nil
}

// server describes a server, or returns the zero Server if there is none. The lock is
// held.
func (s *Store) server(id store.ServerID) store.Server {
	v := s.servers[id]
	if v == nil {
		return store.Server{}
	}
	return store.Server{ID: id, Address: v.address, Expired: v.expired()}
}
