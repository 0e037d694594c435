package wiretest_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/lease"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/cluster"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// shared is a store that survives its servers. A server with the address "entry" can
// claim nothing in it, so it forwards every call.
type shared struct {
	*memory.Store
	entry store.ServerID
}

func (*shared) Close() error { return nil }

func (s *shared) Register(ctx context.Context, address string, ttl time.Duration) (store.ServerID, error) {
	id, err := s.Store.Register(ctx, address, ttl)
	if address == "entry" {
		s.entry = id
	}
	return id, err
}

func (s *shared) Claim(ctx context.Context, id store.StudyID, by store.ServerID) (store.Claim, error) {
	if by != s.entry {
		return s.Store.Claim(ctx, id, by)
	}
	if _, err := s.Stat(ctx, id); err != nil {
		return store.Claim{}, err
	}
	all, err := s.Servers(ctx)
	if err != nil {
		return store.Claim{}, err
	}
	return store.Claim{}, &store.FencedError{Study: id, Server: all[0]}
}

// pair is two servers over one store. All studies are at the first.
type pair struct {
	owner, entry net.Listener
}

// servePair serves. With tokens, the owner has TLS too and knows the certificate of the
// entry server. Without them every caller of the two is an admin.
func servePair(t testing.TB, o server.Options) pair {
	t.Helper()
	st := &shared{Store: memory.New()}
	authority := wiretest.NewAuthority(t)
	ours := authority.Issue(t, "owner", "127.0.0.1")
	theirs := authority.Issue(t, "entry", "tuner-2")
	p := pair{listen(t), listen(t)}
	peer := client.Options{CAFile: authority.CAFile, CertFile: theirs.CertFile, KeyFile: theirs.KeyFile, RetryFor: -1}
	serveOne := func(address string, l net.Listener, o server.Options) {
		m, err := lease.Join(context.Background(), st, lease.Options{Address: address, TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		s := cluster.New(engine.Open(m, engine.Options{LongLived: true}), m, cluster.Options{
			Dial:      func(to string) (tuner.Service, error) { return client.Dial(to, peer) },
			Forwarded: server.Forwarded, PassOn: server.PassOn,
		})
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		serve(t, s, o, l)
	}
	owner := server.Options{Limits: free}
	if o.TokenFile == "" {
		peer = client.Options{Plaintext: true, RetryFor: -1}
	} else {
		owner.TokenFile, owner.CertFile, owner.KeyFile, owner.ClientCAFile = o.TokenFile, ours.CertFile, ours.KeyFile, authority.CAFile
		owner.ClientScopes = map[string]server.Scope{"tuner-2": {Role: server.RolePeer}}
	}
	serveOne(p.owner.Addr().String(), p.owner, owner)
	serveOne("entry", p.entry, o)
	return p
}

// serveForwarded serves a service whose calls all go to another server. It does not need
// the service that it is given.
func serveForwarded(t testing.TB, _ tuner.Service, o server.Options) string {
	return servePair(t, o).entry.Addr().String()
}

// TestPassedOn forwards the calls of a worker with a token. The owner of the study knows
// the token and its names.
func TestPassedOn(t *testing.T) {
	path, admin := tokenFile(t, server.Scope{Role: server.RoleAdmin})
	token, info, err := server.AddToken(path, server.Scope{Role: server.RoleWorker, Studies: []string{"s", "t"}}, "", time.Time{}, "gpu-1")
	if err != nil {
		t.Fatal(err)
	}
	p := servePair(t, server.Options{TokenFile: path, Limits: free})
	at := func(o client.Options) *client.Client {
		o.Plaintext, o.RetryFor = true, -1
		return dial(t, p.entry.Addr().String(), o)
	}
	root, worker := at(client.Options{Token: admin}), at(client.Options{Token: token})
	for _, name := range []string{"s", "other"} {
		if _, err := root.CreateStudy(t.Context(), name, study.Create{Spec: spec(t)}); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := worker.Ask(t.Context(), "s", study.Ask{})
	if err != nil || asked.Trials[0].Worker != "gpu-1" {
		t.Fatalf("the worker got %+v, %v", asked, err)
	}
	_, err = worker.Ask(t.Context(), "s", study.Ask{Worker: "gpu-2"})
	if tuner.CodeOf(err) != tuner.Denied || !strings.Contains(err.Error(), "gpu-1") {
		t.Errorf("an ask under another name: %v", err)
	}
	_, err = worker.Study(t.Context(), "other")
	if tuner.CodeOf(err) != tuner.Denied {
		t.Errorf("another study: %v", err)
	}
	for h, err := range root.Watch(t.Context(), "s", tuner.From{After: 1}) {
		if err != nil || h.Caller != "token "+info.ID {
			t.Errorf("the ask was by %q, %v, want token %s", h.Caller, err, info.ID)
		}
		break
	}
	long := make([]string, 100)
	for i := range long {
		long[i] = strings.Repeat("x", 100) + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	many, _, err := server.AddToken(path, server.Scope{Role: server.RoleWorker}, "", time.Time{}, long...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := at(client.Options{Token: many}).Study(t.Context(), "s"); tuner.CodeOf(err) != tuner.Denied || !strings.Contains(err.Error(), "too many worker names") {
		t.Errorf("a caller that is too large to be passed on: %v", err)
	}
}
