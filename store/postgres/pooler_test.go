package postgres

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// pooler starts a PgBouncer in front of a server.
func pooler(t *testing.T, mode string) *pgtest.Pooler {
	t.Helper()
	p, err := pgtest.Shared(t).Pool(mode)
	if err != nil {
		pgtest.Skip(t, err)
	}
	t.Cleanup(p.Stop)
	return p
}

// TestPooler runs the suite through PgBouncer. A version without prepared statements needs
// a parameter in transaction mode, and none in session mode.
func TestPooler(t *testing.T) {
	t.Parallel() // it waits more than it computes
	for mode, parameters := range map[string]string{"session": "", "transaction": "&default_query_exec_mode=exec"} {
		t.Run(mode, func(t *testing.T) {
			p, stores := pooler(t, mode), 0
			address := func() string {
				stores++
				return fmt.Sprintf("%s?schema=%s%d%s", p.Address(), mode, stores, parameters)
			}
			empty := func(t *testing.T) string {
				t.Helper()
				a := address()
				if _, _, err := Init(t.Context(), a, InitOptions{Program: "test"}); err != nil {
					t.Fatal(err)
				}
				return a
			}
			t.Run("suite", func(t *testing.T) {
				if mode == "session" {
					t.Skip("the case transaction runs the suite, and its rules are the stricter ones")
				}
				pgtest.Long(t)
				storetest.Run(t, func(t *testing.T) storetest.Harness {
					a := empty(t)
					current := mustOpen(t, a, Options{})
					return storetest.Harness{Store: current, Reopen: func(t *testing.T) store.Store {
						_ = current.Close()
						current = mustOpen(t, a, Options{})
						return current
					}}
				})
			})
			t.Run("shared", func(t *testing.T) {
				o := Options{}
				if mode == "session" {
					o.Connections = 4 // as many as the pool has, or callers wait for a session until their time is over
				}
				storetest.RunShared(t, func(t *testing.T) store.Shared { return mustOpen(t, empty(t), o) })
			})
			t.Run("restart", func(t *testing.T) { testPoolerRestart(t, p, mustOpen(t, empty(t), Options{})) })
		})
	}
}

// testPoolerRestart kills the pooler while clients write. Every acknowledged event is there
// once, and no other.
func testPoolerRestart(t *testing.T, p *pgtest.Pooler, s *Store) {
	const clients, events = 8, 60
	var work sync.WaitGroup
	for i := range clients {
		work.Go(func() {
			info, err := s.Create(t.Context(), fmt.Sprint("study", i), eventtest.Examples()[:1])
			for n := range events {
				if err == nil {
					time.Sleep(10 * time.Millisecond)
					err = s.Commit(t.Context(), info.ID, info.Head+study.Position(n), []study.Event{{Body: study.Paused{}}}, nil)
				}
			}
			if err != nil {
				t.Error(err)
				return
			}
			got, err := s.Stat(t.Context(), info.ID)
			if err != nil || got.Head != 1+events {
				t.Errorf("%+v (%v) after %d commits", got, err, events)
			}
		})
	}
	for range 3 {
		time.Sleep(200 * time.Millisecond)
		p.Kill()
		time.Sleep(100 * time.Millisecond)
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
	}
	work.Wait()
}

// TestPoolerRefuses names the settings that a pooler needs.
func TestPoolerRefuses(t *testing.T) {
	t.Parallel() // it waits more than it computes
	want := func(what string, err error, remedy string) {
		t.Helper()
		if own := (*Error)(nil); !errors.Is(err, ErrPooler) || !errors.As(err, &own) || !strings.Contains(own.Remedy, remedy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, _, err := Init(t.Context(), pooler(t, "statement").Address(), InitOptions{})
	want("a pool of statements", err, "pool_mode")

	p := pooler(t, "transaction")
	exec := p.Address() + "?default_query_exec_mode=exec"
	if _, _, err := Init(t.Context(), exec, InitOptions{}); err != nil {
		t.Fatal(err)
	}
	// Several connections prepare the same statements on the sessions of the pool.
	var work sync.WaitGroup
	failed := make(chan error, 100)
	for range 20 {
		work.Go(func() {
			s, err := Open(t.Context(), p.Address(), Options{UnsafeNoSync: true})
			if err == nil {
				_, err = s.Lookup(t.Context(), "none")
				_ = s.Close()
			}
			if err != nil && !errors.As(err, new(*store.NotFoundError)) {
				failed <- err
			}
		})
	}
	work.Wait()
	close(failed)
	if len(failed) == 0 {
		t.Log("this PgBouncer keeps prepared statements")
	}
	for err := range failed {
		want("prepared statements in a pool of transactions", err, "default_query_exec_mode=exec")
	}
	if s, err := Open(t.Context(), exec, Options{UnsafeNoSync: true}); err != nil {
		t.Error(err)
	} else if err := s.Close(); err != nil {
		t.Error(err)
	}
}
