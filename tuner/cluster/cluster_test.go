package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/lease"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

const ttl = 10 * time.Second

// network connects the servers of a test.
type network struct {
	t     *testing.T
	store *undying
	mu    sync.Mutex
	nodes map[string]*node
	calls []string // that were forwarded
}

// undying is a store that survives its servers, and whose leases can be away.
type undying struct {
	*memory.Store
	mu   sync.Mutex
	away bool
}

func (*undying) Close() error { return nil }

func (u *undying) Renew(ctx context.Context, id store.ServerID, beat uint64) error {
	u.mu.Lock()
	away := u.away
	u.mu.Unlock()
	if away {
		return store.ErrUnavailable
	}
	return u.Store.Renew(ctx, id, beat)
}

func (u *undying) set(away bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.away = away
}

// node is a server. A frozen one does not answer, and does not renew its lease.
type node struct {
	*Service
	member *member
	mu     sync.Mutex
	frozen chan struct{} // closed when it goes on, nil while it works
	lost   bool          // the next answer
}

// member is a lease whose renewals can be frozen.
type member struct {
	*lease.Member
	frozen *frozenStore
}

type frozenStore struct {
	store.Shared
	mu     sync.Mutex
	frozen bool
}

func (f *frozenStore) Renew(ctx context.Context, id store.ServerID, beat uint64) error {
	f.mu.Lock()
	frozen := f.frozen
	f.mu.Unlock()
	if frozen {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.Shared.Renew(ctx, id, beat)
}

type forwardedKey struct{}

func newNetwork(t *testing.T) *network {
	return &network{t: t, store: &undying{Store: memory.New()}, nodes: make(map[string]*node)}
}

// serve starts a server.
func (w *network) serve(address string) *node {
	w.t.Helper()
	begun := time.Now()
	f := &frozenStore{Shared: w.store}
	m, err := lease.Join(w.t.Context(), f, lease.Options{Address: address, TTL: ttl, Clock: func() time.Duration { return time.Since(begun) }})
	if err != nil {
		w.t.Fatal(err)
	}
	n := &node{member: &member{m, f}}
	n.Service = New(engine.Open(m, engine.Options{LongLived: true}), m, Options{
		Dial:      func(to string) (tuner.Service, error) { return w.dial(to) },
		Forwarded: func(ctx context.Context) bool { return ctx.Value(forwardedKey{}) != nil },
		PassOn: func(ctx context.Context, name string) (context.Context, error) {
			return context.WithValue(ctx, forwardedKey{}, name), nil
		},
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[address] = n
	w.t.Cleanup(func() { _ = n.Close() })
	return n
}

func (n *node) freeze() {
	n.mu.Lock()
	n.frozen = make(chan struct{})
	n.mu.Unlock()
	n.member.frozen.set(true)
}

func (f *frozenStore) set(frozen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = frozen
}

func (n *node) thaw() {
	n.member.frozen.set(false)
	n.mu.Lock()
	close(n.frozen)
	n.frozen = nil
	n.mu.Unlock()
}

// remote is a client of a server.
type remote struct {
	tuner.Service
	w       *network
	address string
}

func (w *network) dial(address string) (tuner.Service, error) {
	return &remote{w: w, address: address}, nil
}

func (*remote) Close() error { return nil }

// at returns the server, unless it is frozen or gone.
func (r *remote) at(ctx context.Context, what string) (*node, error) {
	r.w.mu.Lock()
	n := r.w.nodes[r.address]
	r.w.calls = append(r.w.calls, what)
	r.w.mu.Unlock()
	if n == nil {
		return nil, unavailable("connection refused")
	}
	n.mu.Lock()
	frozen := n.frozen
	n.mu.Unlock()
	if frozen != nil {
		select {
		case <-frozen:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return n, nil
}

func (r *remote) Study(ctx context.Context, name string) (tuner.Study, error) {
	n, err := r.at(ctx, "study")
	if err != nil {
		return tuner.Study{}, err
	}
	return n.Study(ctx, name)
}

func (r *remote) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	n, err := r.at(ctx, "ask")
	if err != nil {
		return tuner.Asked{}, err
	}
	asked, err := n.Ask(ctx, name, c)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost {
		n.lost = false
		return tuner.Asked{}, &tuner.RemoteError{Code: tuner.Unknown, Message: "the answer was lost"}
	}
	return asked, err
}

func (r *remote) CreateStudy(ctx context.Context, name string, c study.Create) (tuner.Created, error) {
	n, err := r.at(ctx, "create")
	if err != nil {
		return tuner.Created{}, err
	}
	return n.CreateStudy(ctx, name, c)
}

func (r *remote) DeleteStudy(ctx context.Context, name string) error {
	n, err := r.at(ctx, "delete")
	if err != nil {
		return err
	}
	return n.DeleteStudy(ctx, name)
}

func (r *remote) Watch(ctx context.Context, name string, from tuner.From) iter.Seq2[tuner.Event, error] {
	n, err := r.at(ctx, "watch")
	if err != nil {
		return func(yield func(tuner.Event, error) bool) { yield(tuner.Event{}, err) }
	}
	return n.Watch(ctx, name, from)
}

func (w *network) forwarded() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

func bubble(t *testing.T, f func(t *testing.T, w *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newNetwork(t)) })
}

func spec(t *testing.T) study.Spec {
	t.Helper()
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	return study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Proposer: study.Component{Name: propose.Sobol}}
}

func create(t *testing.T, s tuner.Service, name string) {
	t.Helper()
	if _, err := s.CreateStudy(t.Context(), name, study.Create{RequestID: name, Spec: spec(t)}); err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, s tuner.Service, id string) (trial int, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	asked, err := s.Ask(ctx, "s", study.Ask{RequestID: id})
	if err != nil {
		return -1, err
	}
	return asked.Trials[0].Number, nil
}

func mustAsk(t *testing.T, s tuner.Service, id string, want int) {
	t.Helper()
	if trial, err := ask(t, s, id); err != nil || trial != want {
		t.Errorf("ask %s got trial %d, %v, want %d", id, trial, err, want)
	}
}

func wantCode(t *testing.T, err error, want tuner.Code) {
	t.Helper()
	if tuner.CodeOf(err) != want {
		t.Errorf("error is %v (%s), want %s", err, tuner.CodeOf(err), want)
	}
}

func TestForward(t *testing.T) {
	bubble(t, func(t *testing.T, w *network) {
		a, b := w.serve("a:1"), w.serve("b:1")
		create(t, a, "s")
		mustAsk(t, b, "1", 0)
		mustAsk(t, a, "1", 0) // the same request at its owner
		mustAsk(t, b, "2", 1)
		create(t, b, "s") // a retry elsewhere
		if got := fmt.Sprint(w.forwarded()); got != "[ask ask create]" {
			t.Errorf("forwarded %s", got)
		}
		// A call that was forwarded to the wrong server is refused there.
		_, err := b.Study(context.WithValue(t.Context(), forwardedKey{}, "s"), "s")
		if !errors.As(err, new(*store.FencedError)) {
			t.Errorf("error is %v, want that b does not have the study", err)
		}
		if err := b.DeleteStudy(t.Context(), "s"); err != nil {
			t.Error(err)
		}
		_, err = a.Study(t.Context(), "s")
		wantCode(t, err, tuner.NotFound)
		create(t, b, "s") // a has the old place of nothing, b that of a
		mustAsk(t, a, "1", 0)
		mustAsk(t, b, "1", 0)
	})
}

// TestList lists studies of other servers without asking them.
func TestList(t *testing.T) {
	bubble(t, func(t *testing.T, w *network) {
		a, b := w.serve("a:1"), w.serve("b:1")
		create(t, a, "s")
		create(t, b, "t")
		wantTrials := func(n *node, want string) {
			t.Helper()
			list, _, err := n.Studies(t.Context(), "", 0)
			got := ""
			for _, s := range list {
				got += fmt.Sprint(s.Name, s.Trials, " ")
			}
			if err != nil || got != want {
				t.Errorf("listed %q, %v, want %q", got, err, want)
			}
		}
		wantTrials(b, "s0 t0 ")
		mustAsk(t, a, "1", 0)
		wantTrials(b, "s1 t0 ")
		wantTrials(a, "s1 t0 ")
		if got := fmt.Sprint(w.forwarded()); got != "[]" {
			t.Errorf("forwarded %s", got)
		}
		a.freeze()
		time.Sleep(2 * ttl)
		wantTrials(b, "s1 t0 ") // from the store
	})
}

// TestStop takes over a study of a server that stops, without waiting.
func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T, w *network) {
		a, b, c := w.serve("a:1"), w.serve("b:1"), w.serve("c:1")
		create(t, a, "s")
		mustAsk(t, b, "1", 0)
		mustAsk(t, c, "2", 1)
		begun := time.Now()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		delete(w.nodes, "a:1")
		mustAsk(t, b, "3", 2)
		mustAsk(t, c, "4", 3)
		mustAsk(t, c, "1", 0)
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("it took %v", waited)
		}
	})
}

// TestFreeze takes over a study of a server that does not answer any more. It learns so
// when it goes on.
func TestFreeze(t *testing.T) {
	bubble(t, func(t *testing.T, w *network) {
		a, b := w.serve("a:1"), w.serve("b:1")
		time.Sleep(2 * ttl)
		create(t, a, "s")
		mustAsk(t, b, "1", 0)
		begun := time.Now()
		a.freeze()
		_, err := ask(t, b, "2") // until b knows that a is gone
		if waited := time.Since(begun); waited > ttl+ttl/2 {
			t.Errorf("the call to a frozen server took %v", waited)
		}
		for err != nil {
			if code := tuner.CodeOf(err); code != tuner.Unknown && code != tuner.Unavailable {
				t.Fatalf("error is %v", err)
			}
			if time.Since(begun) > 3*ttl {
				t.Fatalf("the study is not taken over: %v", err)
			}
			time.Sleep(100 * time.Millisecond)
			_, err = ask(t, b, "2")
		}
		mustAsk(t, b, "2", 1)
		_, err = a.Study(t.Context(), "s")
		wantCode(t, err, tuner.Unavailable)
		a.thaw()
		select {
		case <-a.member.Buried():
		case <-time.After(3 * ttl):
			t.Error("the server that was frozen does not learn that it was buried")
		}
	})
}

// TestAnswersNeedALease refuses answers from memory that may be old.
func TestAnswersNeedALease(t *testing.T) {
	bubble(t, func(t *testing.T, w *network) {
		a := w.serve("a:1")
		create(t, a, "s")
		mustAsk(t, a, "1", 0)
		w.store.set(true)
		time.Sleep(ttl)
		_, err := a.Study(t.Context(), "s")
		wantCode(t, err, tuner.Unavailable)
		_, err = ask(t, a, "2")
		wantCode(t, err, tuner.Unavailable)
		_, _, err = a.Studies(t.Context(), "", 0)
		wantCode(t, err, tuner.Unavailable)
		for _, err := range a.Watch(t.Context(), "s", tuner.From{After: 0}) {
			wantCode(t, err, tuner.Unavailable)
		}
		for _, err := range a.WatchStudies(t.Context()) {
			wantCode(t, err, tuner.Unavailable)
		}
		w.store.set(false)
		time.Sleep(ttl / 4)
		mustAsk(t, a, "2", 1)
	})
}

// outliving is a service whose calls take longer than the lease.
type outliving struct {
	tuner.Service
	wait time.Duration
}

func (o outliving) Study(ctx context.Context, name string) (tuner.Study, error) {
	s, err := o.Service.Study(ctx, name)
	time.Sleep(o.wait)
	return s, err
}

func (o outliving) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	a, err := o.Service.Ask(ctx, name, c)
	time.Sleep(o.wait)
	return a, err
}

func TestLeaseEndsDuringCall(t *testing.T) {
	bubble(t, func(t *testing.T, w *network) {
		a := w.serve("a:1")
		create(t, a, "s")
		a.local = outliving{a.local, ttl}
		w.store.set(true)
		_, err := ask(t, a, "1")
		wantCode(t, err, tuner.Unknown)
		w.store.set(false)
		time.Sleep(ttl)
		w.store.set(true)
		_, err = a.Study(t.Context(), "s")
		wantCode(t, err, tuner.Unavailable)
		w.store.set(false)
		time.Sleep(ttl)
		a.local = outliving{a.local.(outliving).Service, 0}
		mustAsk(t, a, "1", 0)
	})
}

// TestLostAnswer loses the answer of the owner. The call is sent again by the entry
// server, here to the same owner.
func TestLostAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, w *network) {
		a, b := w.serve("a:1"), w.serve("b:1")
		create(t, a, "s")
		a.mu.Lock()
		a.lost = true
		a.mu.Unlock()
		_, err := ask(t, b, "1")
		wantCode(t, err, tuner.Unknown)
		mustAsk(t, b, "1", 0)
		mustAsk(t, b, "2", 1)
	})
}

func TestWithoutAddress(t *testing.T) {
	bubble(t, func(t *testing.T, w *network) {
		a, b := w.serve(""), w.serve("b:1")
		create(t, a, "s")
		_, err := ask(t, b, "1")
		wantCode(t, err, tuner.Unavailable)
		if len(w.forwarded()) > 0 {
			t.Error("the call was forwarded")
		}
	})
}

// TestWatch follows a study whose owner changes twice. The watch moves along with the
// study, and ends when the server that it was forwarded to loses the study.
func TestWatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *network) {
		a, b, c := w.serve("a:1"), w.serve("b:1"), w.serve("c:1")
		create(t, a, "s")
		// lose takes the study from its owner, which learns it from its next write.
		lose := func(from, to *node, id string, trial int) {
			t.Helper()
			if err := w.store.Unregister(t.Context(), from.member.ID()); err != nil {
				t.Fatal(err)
			}
			mustAsk(t, to, id, trial)
			if _, err := from.local.Ask(t.Context(), "s", study.Ask{RequestID: "late"}); !errors.As(err, new(*store.FencedError)) {
				t.Fatal(err)
			}
		}
		var ended error
		var last study.Position
		for h, err := range a.Watch(t.Context(), "s", tuner.From{After: 0}) {
			if ended = err; err != nil {
				break
			}
			if h.Position != last+1 {
				t.Errorf("position %d after %d", h.Position, last)
			}
			switch last = h.Position; last {
			case 1:
				lose(a, b, "1", 0)
			case 2:
				lose(b, c, "2", 1)
			}
		}
		if last != 2 {
			t.Errorf("the watch ended at %d: %v", last, ended)
		}
		wantCode(t, ended, tuner.Unavailable)
		for h, err := range c.Watch(t.Context(), "s", tuner.From{After: last}) {
			if err != nil || h.Position != 3 {
				t.Errorf("the next watch yields %+v, %v", h, err)
			}
			break
		}
	})
}
