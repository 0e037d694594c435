// Package memory is a [store.Store] in memory. It keeps all promises of a store, but
// its studies are gone when it is closed.
//
// It keeps encoded records like every store. So nothing in it shares memory with its
// callers, each event passes through the codec, and a search takes as much memory as it
// would take on disk.
//
// Calls exclude each other, also those of different studies, for the few microseconds
// that it takes to encode an event. Decoding happens outside the lock. Read returns the
// log as it was when the loop began.
package memory

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

var _ store.Shared = (*Store)(nil)

// MaxStudies is how many studies a store holds at once.
const MaxStudies = 100_000

// Store is a [store.Store] in memory.
type Store struct {
	maxStudies int

	mu      sync.Mutex
	closed  bool
	last    store.StudyID // the newest id
	studies map[store.StudyID]*log
	names   map[string]store.StudyID

	lastServer store.ServerID
	servers    map[store.ServerID]store.Server
}

// log is one study. Records are never changed, only appended.
type log struct {
	info    store.Info
	records [][]byte
	summary []byte // encoded, nil if there is none
	owner   store.ServerID
	epoch   uint64
}

// New returns an empty store.
func New() *Store {
	return &Store{
		maxStudies: MaxStudies,
		studies:    make(map[store.StudyID]*log),
		names:      make(map[string]store.StudyID),
		servers:    make(map[store.ServerID]store.Server),
	}
}

// call runs f under the lock, unless the store is closed or the context has ended.
func call[T any](ctx context.Context, s *Store, f func() (T, error)) (v T, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return v, store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return v, err
	}
	return f()
}

// change is call for what only changes the store.
func (s *Store) change(ctx context.Context, f func() error) error {
	_, err := call(ctx, s, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// log returns the log of a study. The lock is held.
func (s *Store) log(id store.StudyID) (*log, error) {
	l, ok := s.studies[id]
	if !ok {
		return nil, &store.NotFoundError{Study: id}
	}
	return l, nil
}

func (s *Store) Create(ctx context.Context, name string, events []study.Event) (store.Info, error) {
	if err := store.CheckName(name); err != nil {
		return store.Info{}, err
	}
	return call(ctx, s, func() (store.Info, error) {
		if id, taken := s.names[name]; taken {
			return store.Info{}, &store.ExistsError{Name: name, Study: id}
		}
		if len(s.studies) >= s.maxStudies {
			return store.Info{}, &store.LimitError{What: "studies", Size: len(s.studies) + 1, Limit: s.maxStudies}
		}
		s.last++
		records, err := store.EncodeCommit(s.last, 0, events)
		if err != nil {
			return store.Info{}, err
		}
		info := store.Info{ID: s.last, Name: name, Head: study.Position(len(records))}
		s.studies[info.ID], s.names[name] = &log{info: info, records: records}, info.ID
		return info, nil
	})
}

func (s *Store) Lookup(ctx context.Context, name string) (store.Info, error) {
	return call(ctx, s, func() (store.Info, error) {
		id, ok := s.names[name]
		if !ok {
			return store.Info{}, &store.NotFoundError{Name: name}
		}
		return s.studies[id].info, nil
	})
}

func (s *Store) Stat(ctx context.Context, id store.StudyID) (store.Info, error) {
	return call(ctx, s, func() (store.Info, error) {
		l, err := s.log(id)
		if err != nil {
			return store.Info{}, err
		}
		return l.info, nil
	})
}

// List implements [store.Store]. It yields the studies that there are when the loop begins.
func (s *Store) List(ctx context.Context, after string) iter.Seq2[store.Info, error] {
	return store.ListPages(after, s.maxStudies+1, func(after string) ([]store.Info, error) {
		return call(ctx, s, func() (infos []store.Info, err error) {
			for _, l := range s.studies {
				if l.info.Name > after {
					infos = append(infos, l.info)
				}
			}
			slices.SortFunc(infos, func(a, b store.Info) int { return cmp.Compare(a.Name, b.Name) })
			return infos, nil
		})
	})
}

func (s *Store) Delete(ctx context.Context, id store.StudyID) error {
	return s.DeleteAs(ctx, store.Claim{Study: id})
}

// DeleteAs implements [store.Shared]. A claim without a server is none.
func (s *Store) DeleteAs(ctx context.Context, c store.Claim) error {
	return s.change(ctx, func() error {
		l, err := s.claimed(c)
		if err != nil {
			return err
		}
		delete(s.studies, c.Study)
		delete(s.names, l.info.Name)
		return nil
	})
}

func (s *Store) Commit(ctx context.Context, id store.StudyID, expected study.Position, events []study.Event, summary []byte) error {
	return s.CommitAs(ctx, store.Claim{Study: id}, expected, events, summary)
}

// CommitAs implements [store.Shared]. A claim without a server is none.
func (s *Store) CommitAs(ctx context.Context, c store.Claim, expected study.Position, events []study.Event, summary []byte) error {
	return s.change(ctx, func() error {
		l, err := s.claimed(c)
		if err != nil {
			return err
		}
		if l.info.Head != expected {
			return &store.ConflictError{Study: c.Study, Expected: expected, Actual: l.info.Head}
		}
		records, err := store.EncodeCommit(c.Study, expected, events)
		if err != nil {
			return err
		}
		head := expected + study.Position(len(events))
		shown, err := store.EncodeSummary(c.Study, head, summary)
		if err != nil {
			return err
		}
		l.records, l.summary, l.info.Head = append(l.records, records...), shown, head
		return nil
	})
}

func (s *Store) Read(ctx context.Context, id store.StudyID, from study.Position) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		read := false
		store.ReadPages(ctx, id, from, func(next study.Position) ([][]byte, error) {
			if read {
				return nil, nil
			}
			read = true
			return call(ctx, s, func() ([][]byte, error) {
				l, err := s.log(id)
				if err != nil || next > l.info.Head {
					return nil, err
				}
				return l.records[next-1:], nil
			})
		})(yield)
	}
}

func (s *Store) Summaries(ctx context.Context, ids []store.StudyID) ([]store.Summary, error) {
	return call(ctx, s, func() (list []store.Summary, err error) {
		for _, id := range ids {
			l := s.studies[id]
			if l == nil {
				continue
			}
			if sum, ok := store.DecodeSummary(id, l.info.Head, l.summary, l.records[0]); ok {
				list = append(list, sum)
			}
		}
		return list, nil
	})
}

func (s *Store) SaveSummaries(ctx context.Context, list []store.Summary) error {
	return s.change(ctx, func() error {
		for _, sum := range list {
			encoded, err := store.EncodeSummary(sum.Study, sum.Position, sum.Data)
			if err != nil {
				return err
			}
			if l := s.studies[sum.Study]; l != nil && l.info.Head == sum.Position {
				l.summary = encoded
			}
		}
		return nil
	})
}

// Close implements [store.Store] and forgets all studies.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.studies, s.names, s.servers = nil, nil, nil
	return nil
}

func (s *Store) Register(ctx context.Context, address string, ttl time.Duration) (store.ServerID, error) {
	return call(ctx, s, func() (store.ServerID, error) {
		s.lastServer++
		s.servers[s.lastServer] = store.Server{ID: s.lastServer, Address: address, TTL: ttl}
		return s.lastServer, nil
	})
}

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

func (s *Store) Unregister(ctx context.Context, id store.ServerID) error {
	return s.change(ctx, func() error {
		delete(s.servers, id)
		return nil
	})
}

func (s *Store) Servers(ctx context.Context) ([]store.Server, error) {
	return call(ctx, s, func() ([]store.Server, error) {
		return slices.SortedFunc(maps.Values(s.servers), func(a, b store.Server) int { return cmp.Compare(a.ID, b.ID) }), nil
	})
}

func (s *Store) Bury(ctx context.Context, v store.Server) (gone bool, err error) {
	return call(ctx, s, func() (bool, error) {
		if now, there := s.servers[v.ID]; there && now != v {
			return false, nil
		}
		delete(s.servers, v.ID)
		return true, nil
	})
}

func (s *Store) Owner(ctx context.Context, id store.StudyID) (store.Server, error) {
	return call(ctx, s, func() (store.Server, error) {
		l, err := s.log(id)
		if err != nil {
			return store.Server{}, err
		}
		return s.servers[l.owner], nil
	})
}

func (s *Store) Claim(ctx context.Context, id store.StudyID, by store.ServerID) (store.Claim, error) {
	return call(ctx, s, func() (store.Claim, error) {
		l, err := s.log(id)
		if err != nil {
			return store.Claim{}, err
		}
		if v, there := s.servers[l.owner]; there && l.owner != by {
			return store.Claim{}, &store.FencedError{Study: id, Server: v}
		}
		l.owner, l.epoch = by, l.epoch+1
		return store.Claim{Study: id, Server: by, Epoch: l.epoch}, nil
	})
}

func (s *Store) Release(ctx context.Context, c store.Claim) error {
	return s.change(ctx, func() error {
		if l := s.studies[c.Study]; l != nil && l.owner == c.Server && l.epoch == c.Epoch {
			l.owner = 0
		}
		return nil
	})
}

// claimed returns the log of a study if the claim on it is in force. A claim without a
// server frees a study whose server is gone. The lock is held.
func (s *Store) claimed(c store.Claim) (*log, error) {
	l, err := s.log(c.Study)
	if err != nil {
		return nil, err
	}
	owner, there := s.servers[l.owner]
	if c.Server == 0 && !there {
		if l.owner != 0 {
			l.owner, l.epoch = 0, l.epoch+1
		}
		return l, nil
	}
	if l.owner != c.Server || l.epoch != c.Epoch {
		return nil, &store.FencedError{Study: c.Study, Server: owner}
	}
	return l, nil
}
