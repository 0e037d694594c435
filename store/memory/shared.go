package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/store"
)

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
		s.servers[id] = store.Server{ID: id, Address: address, TTL: ttl}
		return nil
	})
	return id, err
}

// Renew implements [store.Shared].
func (s *Store) Renew(ctx context.Context, id store.ServerID, beat uint64) error {
	return s.change(ctx, func() error {
		v, there := s.servers[id]
		if !there {
			return &store.BuriedError{Server: id}
		}
		v.Beat = beat
		s.servers[id] = v
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
func (s *Store) Servers(ctx context.Context) ([]store.Server, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(s.servers), func(a, b store.Server) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// Bury implements [store.Shared].
func (s *Store) Bury(ctx context.Context, v store.Server) (gone bool, err error) {
	err = s.change(ctx, func() error {
		now, there := s.servers[v.ID]
		if gone = !there || now == v; gone {
			delete(s.servers, v.ID)
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
	return s.servers[l.owner], nil
}

// Claim implements [store.Shared].
func (s *Store) Claim(ctx context.Context, id store.StudyID, by store.ServerID) (store.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.log(ctx, id)
	if err != nil {
		return store.Claim{}, err
	}
	if v, there := s.servers[l.owner]; there && l.owner != by {
		return store.Claim{}, &store.FencedError{Study: id, Server: v}
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

// fence refuses a write under a claim that is void. A write without a claim frees a study
// whose server is gone. The lock is held.
func (s *Store) fence(l *log, c store.Claim) error {
	owner, there := s.servers[l.owner]
	if c.Server == 0 && !there {
		if l.owner != 0 {
			l.owner, l.epoch = 0, l.epoch+1
		}
		return nil
	}
	if l.owner != c.Server || l.epoch != c.Epoch {
		return &store.FencedError{Study: c.Study, Server: owner}
	}
	return nil
}
