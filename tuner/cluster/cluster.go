package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
)

// Member is this server among those that share the store. Package store/lease has one.
type Member interface {
	// ID returns the id of this server.
	ID() store.ServerID
	// Alive tells whether the server's lease is in force.
	Alive() bool
	// TTL returns the length of leases.
	TTL() time.Duration
	// Gone tells whether another server has left, or does not renew its lease.
	Gone(id store.ServerID) bool
}

// Options are the settings of a [Service].
type Options struct {
	// Dial makes a client of the server at an address. The client makes each call once.
	Dial func(address string) (tuner.Service, error)
	// Forwarded tells whether another server forwarded a call.
	Forwarded func(ctx context.Context) bool
	// PassOn returns the context for forwarding a call, with its caller.
	PassOn func(ctx context.Context, study string) (context.Context, error)
	// Logger receives news of other servers. Nil discards it.
	Logger *slog.Logger
}

// Service is a [tuner.Service] over the studies of all servers.
type Service struct {
	tuner.Relay

	local   tuner.Service
	member  Member
	options Options
	ctx     context.Context // ends when the Service closes
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the look after the peers has ended
	sent    atomic.Int64  // calls to other servers

	mu     sync.Mutex
	noted  time.Time               // when the log last had a call that another server did not answer
	places map[string]store.Server // of studies that other servers have
	peers  map[store.ServerID]*peer
}

var _ tuner.Service = (*Service)(nil)

// peer is another server that this one forwards calls to.
type peer struct {
	store.Server
	node tuner.Service
	ctx  context.Context // ends when the server is gone
	gone context.CancelFunc
}

// New returns a Service over a local service, which works on the store of the member.
// Closing the Service closes the local one.
func New(local tuner.Service, m Member, o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		local: local, member: m, options: o, ended: make(chan struct{}),
		places: make(map[string]store.Server), peers: make(map[store.ServerID]*peer),
	}
	s.Relay = tuner.Relay{Identify: true, Pass: func(ctx context.Context, c tuner.Passed, f func(context.Context, tuner.Service) error) error {
		k := reads
		if c.Changes {
			k = writes
		}
		return s.call(ctx, c.Study, k, f)
	}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.lookAfter()
	return s
}

// Close closes the clients of the other servers and the local service.
func (s *Service) Close() error {
	s.cancel()
	<-s.ended
	for _, p := range s.remove(func(*peer) bool { return true }) {
		s.leave(p)
	}
	return s.local.Close()
}

// Forwarded returns the number of calls that were forwarded to other servers.
func (s *Service) Forwarded() int64 { return s.sent.Load() }

// leave ends the calls to a peer.
func (s *Service) leave(p *peer) {
	p.gone()
	if err := p.node.Close(); err != nil {
		s.options.Logger.Warn("closing the connection to another server failed", "address", p.Address, "error", err)
	}
}

// lookAfter ends the calls to servers whose lease is over, for example because they are
// frozen and do not answer.
func (s *Service) lookAfter() {
	defer close(s.ended)
	tick := time.NewTicker(s.member.TTL() / 5)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		for _, p := range s.remove(func(p *peer) bool { return s.member.Gone(p.ID) }) {
			s.options.Logger.Info("another server does not renew its lease", "server", p.ID, "address", p.Address)
			s.leave(p)
		}
	}
}

// remove removes peers, and returns them.
func (s *Service) remove(which func(*peer) bool) (removed []*peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.peers {
		if which(p) {
			delete(s.peers, id)
			removed = append(removed, p)
		}
	}
	return removed
}

// maxPlaces is the largest number of studies whose place is kept.
const maxPlaces = 100_000

// learn keeps the place of a study that another server has.
func (s *Service) learn(study string, v store.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.places) >= maxPlaces {
		clear(s.places)
	}
	s.places[study] = v
}

// place returns the server that a study's calls are forwarded to.
func (s *Service) place(study string) (v store.Server, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok = s.places[study]
	return v, ok
}

// forget drops the place of a study.
func (s *Service) forget(study string, v store.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places[study].ID == v.ID {
		delete(s.places, study)
	}
}

// peer returns the client of a server.
func (s *Service) peer(v store.Server) (*peer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, store.ErrClosed
	}
	if p := s.peers[v.ID]; p != nil {
		return p, nil
	}
	node, err := s.options.Dial(v.Address)
	if err != nil {
		return nil, unavailable("the server at %s, which has the study, cannot be called: %v", v.Address, err)
	}
	p := &peer{Server: v, node: node}
	p.ctx, p.gone = context.WithCancel(context.Background())
	s.peers[v.ID] = p
	return p, nil
}

func unavailable(format string, args ...any) error {
	return &tuner.RemoteError{Code: tuner.Unavailable, Message: fmt.Sprintf(format, args...)}
}

var (
	errNotAlive = &tuner.RemoteError{Code: tuner.Unavailable, Message: "this server has not renewed its lease, because it was stopped or cannot reach the database; retry"}
	errOutlived = &tuner.RemoteError{Code: tuner.Unknown, Message: "the lease of this server ended during the call; send the same request again"}
)

// maxTries is how many servers a call is tried at.
const maxTries = 5

// kind of a call, as far as its repetition is concerned.
type kind uint8

const (
	reads  kind = iota // changes nothing
	writes             // has one effect, even if it is sent several times
)

// errand is a call at one of the services.
type errand = func(context.Context, tuner.Service) error

// call makes a call for a study where the study is.
func (s *Service) call(ctx context.Context, study string, k kind, f errand) error {
	if s.options.Forwarded(ctx) {
		return s.here(ctx, k, f)
	}
	unsure := false // an attempt may have had an effect
	var tried store.ServerID
	for try := 1; ; try++ {
		v, far := s.place(study)
		if !far {
			err := s.here(ctx, k, f)
			owner, fenced := errors.AsType[*store.FencedError](err)
			if !fenced {
				return conclude(err, unsure)
			}
			if v = owner.Server; v.Address == "" || v.ID == s.member.ID() || v.ID == tried || try >= maxTries {
				return conclude(unavailable("%v", owner), unsure)
			}
			s.learn(study, v)
		}
		err := s.there(ctx, v, study, f)
		switch tuner.CodeOf(err) {
		case tuner.Unknown:
			unsure = unsure || k == writes
		case tuner.Unavailable:
		default:
			return conclude(err, unsure)
		}
		s.forget(study, v)
		if tried = v.ID; ctx.Err() != nil || try >= maxTries {
			return conclude(err, unsure)
		}
	}
}

// conclude returns the error of a call. If an earlier attempt may have had an effect, an
// error that does not settle the matter leaves the outcome unknown.
func conclude(err error, unsure bool) error {
	if err == nil || !unsure {
		return err
	}
	switch tuner.CodeOf(err) {
	case tuner.Unavailable, tuner.Cancelled, tuner.Deadline, tuner.Exhausted, tuner.Denied, tuner.Internal, tuner.Damaged:
		return &tuner.RemoteError{Code: tuner.Unknown, Message: "the call may have had an effect at the server that had the study; send the same request again: " + err.Error()}
	default:
		return err
	}
}

// here makes a call at the local service while the lease of this server is in force.
func (s *Service) here(ctx context.Context, k kind, f errand) error {
	if !s.member.Alive() {
		return errNotAlive
	}
	err := f(ctx, s.local)
	code := tuner.CodeOf(err)
	switch {
	case s.member.Alive() || code == tuner.Unavailable || code == tuner.Unknown:
		return err
	case k == writes:
		return errOutlived
	default:
		return errNotAlive
	}
}

// there makes a call at another server.
func (s *Service) there(ctx context.Context, v store.Server, study string, f errand) error {
	p, err := s.peer(v)
	if err != nil {
		return err
	}
	passed, err := s.options.PassOn(ctx, study)
	if err != nil {
		return err
	}
	s.sent.Add(1)
	forward, cancel := context.WithCancel(passed)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	err = f(forward, p.node)
	if code := tuner.CodeOf(err); (code == tuner.Unavailable || code == tuner.Unknown) && ctx.Err() == nil {
		s.note(v, err)
	}
	if err != nil && p.ctx.Err() != nil && ctx.Err() == nil {
		return &tuner.RemoteError{Code: tuner.Unknown, Message: "the server that has the study does not renew its lease; send the same request again"}
	}
	return err
}

// notePause is the time between two lines of the log about calls without an answer.
const notePause = 10 * time.Second

// note logs that another server does not answer, for example because it has stopped, or
// because the certificates of the servers are wrong.
func (s *Service) note(v store.Server, err error) {
	s.mu.Lock()
	due := time.Since(s.noted) > notePause
	if due {
		s.noted = time.Now()
	}
	s.mu.Unlock()
	if due {
		s.options.Logger.Warn("the server that has a study did not answer", "server", v.ID, "address", v.Address, "error", err)
	}
}
