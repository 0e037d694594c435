package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// The default and the limits of [Options.TTL].
const (
	DefaultTTL = 10 * time.Second
	MinTTL     = time.Second
	MaxTTL     = 10 * time.Minute
)

// Options are the settings of [Join].
type Options struct {
	// Address is where the other servers reach this one. Empty means that they do not.
	Address string
	// TTL is the time after which others may take over the studies of a server that died.
	// 0 means [DefaultTTL].
	TTL time.Duration
	// Logger receives what happens to this server and to those that it buries. Nil discards it.
	Logger *slog.Logger

	// Clock measures the server's own lease, for tests.
	Clock func() time.Duration
}

// Member is a server that shares a store. It is a [store.Fencing] store.
type Member struct {
	store.Store
	shared  store.Shared
	options Options
	id      store.ServerID
	clock   func() time.Duration
	cancel  context.CancelFunc
	closing sync.Once
	others  *store.Lookout
	renewed chan struct{} // closed when renewal has ended
	buried  chan struct{}

	mu     sync.Mutex
	until  time.Duration // when the lease ends unless a renewal succeeds
	claims map[store.StudyID]store.Claim
}

var _ store.Fencing = (*Member)(nil)

// Join registers this process as a server. Closing the Member closes the store too.
func Join(ctx context.Context, s store.Shared, o Options) (*Member, error) {
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	if o.TTL < MinTTL || o.TTL > MaxTTL {
		return nil, fmt.Errorf("the lease of a server is %v and must be %v to %v", o.TTL, MinTTL, MaxTTL)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Member{
		Store: s, shared: s, options: o, clock: o.Clock, renewed: make(chan struct{}), buried: make(chan struct{}),
		claims: make(map[store.StudyID]store.Claim),
	}
	if m.clock == nil {
		m.clock = bootTime
	}
	m.others = store.NewLookout(m.clock)
	begun := m.clock()
	var err error
	if m.id, err = s.Register(ctx, o.Address, o.TTL); err != nil {
		return nil, fmt.Errorf("joining the servers of the store: %w", err)
	}
	m.until = begun + m.term()
	renewing, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go m.renew(renewing)
	o.Logger.Info("joined the servers of the store", "server", m.id, "address", o.Address, "lease", o.TTL)
	return m, nil
}

// term is the part of a lease for which the server relies on it.
func (m *Member) term() time.Duration { return m.options.TTL * 4 / 5 }

// ID returns the id of this server.
func (m *Member) ID() store.ServerID { return m.id }

// TTL returns the length of the lease.
func (m *Member) TTL() time.Duration { return m.options.TTL }

// Gone tells whether another server has left, or does not renew its lease.
func (m *Member) Gone(id store.ServerID) bool { return m.others.Gone(id) }

// Alive tells whether the lease of this server is in force. While it is not, other
// servers may have taken over its studies, and what it has in memory may be old.
func (m *Member) Alive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock() < m.until
}

// Buried returns a channel that is closed when other servers have taken over the studies
// of this one. The process must end then.
func (m *Member) Buried() <-chan struct{} { return m.buried }

// Err returns the error for a server that was buried.
func (m *Member) Err() error { return &store.BuriedError{Server: m.id} }

// lookEvery is the longest time between two looks at the other servers.
const lookEvery = 500 * time.Millisecond

// renew renews the lease every fifth of it, and looks at the other servers more often,
// until the Member closes or was buried.
func (m *Member) renew(ctx context.Context) {
	defer close(m.renewed)
	looks := (m.options.TTL/5 + lookEvery - 1) / lookEvery // to a renewal
	tick := time.NewTicker(m.options.TTL / 5 / looks)
	defer tick.Stop()
	beat, left := uint64(0), looks
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		begun := m.clock()
		try, cancel := context.WithTimeout(ctx, m.options.TTL/3)
		var err error
		if left--; left == 0 {
			beat, left = beat+1, looks
			if err = m.shared.Renew(try, m.id, beat); err == nil {
				m.extend(begun)
			}
		}
		if err == nil {
			_, err = m.others.Look(try, m.shared)
		}
		cancel()
		switch {
		case err == nil:
		case errors.As(err, new(*store.BuriedError)):
			m.options.Logger.Error("this server did not renew its lease in time, and others took over its studies", "server", m.id)
			m.mu.Lock()
			m.until = begun
			m.mu.Unlock()
			close(m.buried)
			return
		case ctx.Err() == nil:
			left = 1
			m.options.Logger.Warn("renewing the lease of this server failed", "server", m.id, "alive", m.Alive(), "error", err)
		}
	}
}

// extend begins the lease anew at the moment before it was renewed.
func (m *Member) extend(begun time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if begun >= m.until {
		m.others.Restart() // before this server counts as alive
		m.options.Logger.Warn("the lease of this server was over and begins anew", "server", m.id)
	}
	m.until = begun + m.term()
}

func (m *Member) Acquire(ctx context.Context, id store.StudyID) error {
	for try := 0; ; try++ {
		c, err := m.shared.Claim(ctx, id, m.id)
		if err == nil {
			m.mu.Lock()
			m.claims[id] = c
			m.mu.Unlock()
			return nil
		}
		other, alive := (*store.FencedError)(nil), m.Alive() // before it looks at what was seen
		if !errors.As(err, &other) || !m.others.See(other.Server) || try == maxTries || !alive {
			return err
		}
		gone, dig := m.shared.Bury(ctx, other.Server)
		if dig != nil {
			return dig
		}
		if !gone {
			return err
		}
		m.options.Logger.Warn("a server did not renew its lease, and its studies are free", "server", other.Server.ID, "address", other.Server.Address)
	}
}

// maxTries is how often Acquire buries an owner.
const maxTries = 3

func (m *Member) Yield(ctx context.Context, id store.StudyID) error {
	c, ok := m.claim(id)
	if !ok {
		return nil
	}
	m.drop(c)
	return m.shared.Release(ctx, c)
}

// claim returns the claim on a study.
func (m *Member) claim(id store.StudyID) (store.Claim, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.claims[id]
	return c, ok
}

// drop forgets a claim, unless a later one replaced it.
func (m *Member) drop(c store.Claim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims[c.Study] == c {
		delete(m.claims, c.Study)
	}
}

// Commit implements [store.Store] for a study that was acquired.
func (m *Member) Commit(ctx context.Context, id store.StudyID, expected study.Position, events []study.Event, summary []byte) error {
	c, ok := m.claim(id)
	if !ok {
		return &store.FencedError{Study: id}
	}
	err := m.shared.CommitAs(ctx, c, expected, events, summary)
	if errors.As(err, new(*store.FencedError)) {
		m.drop(c)
	}
	return err
}

// Delete implements [store.Store]. It acquires a study that this server does not have.
func (m *Member) Delete(ctx context.Context, id store.StudyID) error {
	for try := 0; ; try++ {
		c, ok := m.claim(id)
		if !ok {
			if err := m.Acquire(ctx, id); err != nil {
				return err
			}
			continue
		}
		err := m.shared.DeleteAs(ctx, c)
		fenced := errors.As(err, new(*store.FencedError))
		if err == nil || fenced {
			m.drop(c)
		}
		if !fenced || try == maxTries {
			return err
		}
	}
}

// closePatience is how long Close tries to remove the server from a store that does not
// answer. Its lease ends then by itself.
const closePatience = 5 * time.Second

// Close gives all studies back and closes the store.
func (m *Member) Close() error {
	m.closing.Do(func() {
		m.cancel()
		<-m.renewed
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		if err := m.shared.Unregister(ctx, m.id); err != nil {
			m.options.Logger.Warn("this server could not leave, so others take over its studies when its lease is over", "server", m.id, "error", err)
		}
	})
	return m.Store.Close()
}
