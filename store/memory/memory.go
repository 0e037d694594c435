// Package memory is a [store.Store] in memory. It keeps all promises of a store, but
// its studies are gone when it is closed.
//
// It keeps encoded records like every store. So nothing in it shares memory with its
// callers, each event passes through the codec, and a search takes as much memory as it
// would take on disk. An acknowledged commit is visible to all callers and is lost only
// with the process.
//
// Writers exclude each other, also those of different studies, for the time it takes to
// append to a slice. Encoding and decoding happen outside the lock. Read returns the
// log as it was when the loop began.
package memory

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

var _ store.Shared = (*Store)(nil)

// MaxStudies is how many studies a store holds at once.
const MaxStudies = 100_000

// Store is a [store.Store] in memory.
type Store struct {
	maxStudies int

	mu      sync.RWMutex
	closed  bool
	last    store.StudyID // the newest id
	studies map[store.StudyID]*log
	names   []string // ascending
	byName  map[string]store.StudyID

	lastServer store.ServerID
	servers    map[store.ServerID]store.Server
}

// log is one study. Records are never changed, only appended.
type log struct {
	name    string
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
		byName:     make(map[string]store.StudyID),
		servers:    make(map[store.ServerID]store.Server),
	}
}

// Create implements [store.Store].
func (s *Store) Create(ctx context.Context, name string, events []study.Event) (store.Info, error) {
	if err := store.CheckName(name); err != nil {
		return store.Info{}, err
	}
	var id store.StudyID
	reserve := func() error {
		if err := s.creatable(name); err != nil {
			return err
		}
		s.last++
		id = s.last
		return nil
	}
	if err := s.change(ctx, reserve); err != nil {
		return store.Info{}, err
	}
	records, err := store.EncodeCommit(id, 0, events)
	if err != nil {
		return store.Info{}, err
	}
	l := &log{name: name, records: records}
	err = s.change(ctx, func() error {
		if err := s.creatable(name); err != nil { // again, because encoding took time
			return err
		}
		s.studies[id], s.byName[name] = l, id
		i, _ := slices.BinarySearch(s.names, name)
		s.names = slices.Insert(s.names, i, name)
		return nil
	})
	if err != nil {
		return store.Info{}, err
	}
	return l.info(id), nil
}

func (s *Store) creatable(name string) error {
	if id, taken := s.byName[name]; taken {
		return &store.ExistsError{Name: name, Study: id}
	}
	if len(s.studies) >= s.maxStudies {
		return &store.LimitError{What: "studies", Size: len(s.studies) + 1, Limit: s.maxStudies}
	}
	return nil
}

// Lookup implements [store.Store].
func (s *Store) Lookup(ctx context.Context, name string) (store.Info, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return store.Info{}, err
	}
	id, ok := s.byName[name]
	if !ok {
		return store.Info{}, &store.NotFoundError{Name: name}
	}
	return s.studies[id].info(id), nil
}

// Stat implements [store.Store].
func (s *Store) Stat(ctx context.Context, id store.StudyID) (store.Info, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l, err := s.log(ctx, id)
	if err != nil {
		return store.Info{}, err
	}
	return l.info(id), nil
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, after string) iter.Seq2[store.Info, error] {
	return store.ListPages(after, listPage, func(after string) ([]store.Info, error) { return s.listPage(ctx, after) })
}

// listPage is how many studies List reads under one lock.
const listPage = 256

func (s *Store) listPage(ctx context.Context, after string) (infos []store.Info, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	i, found := slices.BinarySearch(s.names, after)
	if found {
		i++
	}
	for _, name := range s.names[i:min(i+listPage, len(s.names))] {
		id := s.byName[name]
		infos = append(infos, s.studies[id].info(id))
	}
	return infos, nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, id store.StudyID) error {
	return s.remove(ctx, store.Claim{Study: id})
}

// remove deletes a study under a claim, or without one if the claim has no server.
func (s *Store) remove(ctx context.Context, c store.Claim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := c.Study
	l, err := s.log(ctx, id)
	if err == nil {
		err = s.fence(l, c)
	}
	if err != nil {
		return err
	}
	delete(s.studies, id)
	delete(s.byName, l.name)
	i, _ := slices.BinarySearch(s.names, l.name)
	s.names = slices.Delete(s.names, i, i+1)
	return nil
}

// Commit implements [store.Store].
func (s *Store) Commit(ctx context.Context, id store.StudyID, expected study.Position, events []study.Event, summary []byte) error {
	return s.CommitAs(ctx, store.Claim{Study: id}, expected, events, summary)
}

// CommitAs implements [store.Shared].
func (s *Store) CommitAs(ctx context.Context, c store.Claim, expected study.Position, events []study.Event, summary []byte) error {
	err := s.change(ctx, func() error { // before the events are encoded
		_, err := s.at(ctx, c, expected)
		return err
	})
	if err != nil {
		return err
	}
	records, err := store.EncodeCommit(c.Study, expected, events)
	if err != nil {
		return err
	}
	shown, err := store.EncodeSummary(c.Study, expected+study.Position(len(events)), summary)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.at(ctx, c, expected) // again, because encoding took time
	if err != nil {
		return err
	}
	l.records, l.summary = append(l.records, records...), shown
	return nil
}

// at returns a study's log if its head is the expected one and the claim is in force.
func (s *Store) at(ctx context.Context, c store.Claim, expected study.Position) (*log, error) {
	l, err := s.log(ctx, c.Study)
	if err == nil {
		err = s.fence(l, c)
	}
	if err != nil {
		return nil, err
	}
	if head := l.head(); head != expected {
		return nil, &store.ConflictError{Study: c.Study, Expected: expected, Actual: head}
	}
	return l, nil
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, id store.StudyID, from study.Position) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		read := false
		store.ReadPages(ctx, id, from, func(next study.Position) ([][]byte, error) {
			if read {
				return nil, nil
			}
			read = true
			return s.tail(ctx, id, next)
		})(yield)
	}
}

// tail returns a study's records from a position on. Later changes and a deletion do
// not affect them.
func (s *Store) tail(ctx context.Context, id store.StudyID, from study.Position) ([][]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l, err := s.log(ctx, id)
	if err != nil || from > l.head() {
		return nil, err
	}
	return l.records[from-1:], nil
}

// Summaries implements [store.Store].
func (s *Store) Summaries(ctx context.Context, ids []store.StudyID) (list []store.Summary, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	for _, id := range ids {
		l := s.studies[id]
		if l == nil {
			continue
		}
		if sum, ok := store.DecodeSummary(id, l.head(), l.summary, l.records[0]); ok {
			list = append(list, sum)
		}
	}
	return list, nil
}

// SaveSummaries implements [store.Store].
func (s *Store) SaveSummaries(ctx context.Context, list []store.Summary) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	for _, sum := range list {
		encoded, err := store.EncodeSummary(sum.Study, sum.Position, sum.Data)
		if err != nil {
			return err
		}
		if l := s.studies[sum.Study]; l != nil && l.head() == sum.Position {
			l.summary = encoded
		}
	}
	return nil
}

// Close implements [store.Store] and forgets all studies.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.studies, s.byName, s.names, s.servers = nil, nil, nil, nil
	return nil
}

// usable returns the error of a closed store or an ended context, or nil.
func (s *Store) usable(ctx context.Context) error {
	if s.closed {
		return store.ErrClosed
	}
	return ctx.Err()
}

func (s *Store) log(ctx context.Context, id store.StudyID) (*log, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	l, ok := s.studies[id]
	if !ok {
		return nil, &store.NotFoundError{Study: id}
	}
	return l, nil
}

func (l *log) head() study.Position { return study.Position(len(l.records)) }

func (l *log) info(id store.StudyID) store.Info {
	return store.Info{ID: id, Name: l.name, Head: l.head()}
}
