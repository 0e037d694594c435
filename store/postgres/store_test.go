package postgres

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// TestStore runs the suite with batches, and with each commit alone.
func TestStore(t *testing.T) {
	for name, tuning := range map[string]tuning{"batches": {}, "alone": {batch: 1, writers: 8}} {
		t.Run(name, func(t *testing.T) {
			if name == "alone" {
				pgtest.Long(t)
			}
			storetest.Histories(t, 10)
			storetest.Run(t, func(t *testing.T) storetest.Harness {
				address := newStore(t)
				current := mustOpen(t, address, Options{tuning: tuning})
				return storetest.Harness{
					Store: current,
					Reopen: func(t *testing.T) store.Store {
						if err := current.Close(); err != nil {
							t.Error(err)
						}
						current = mustOpen(t, address, Options{tuning: tuning})
						return current
					},
				}
			})
		})
	}
}

// TestShared runs the suite of several servers.
func TestShared(t *testing.T) {
	storetest.RunShared(t, func(t *testing.T) store.Shared { return mustOpen(t, newStore(t), Options{}) })
}

// TestAbandoned writes without a claim to studies of servers that ended without leaving.
func TestAbandoned(t *testing.T) {
	t.Parallel() // it waits more than it computes
	s := mustOpen(t, newStore(t), Options{})
	for _, remove := range []bool{false, true} {
		info, err := s.Create(t.Context(), fmt.Sprint(remove), eventtest.Examples()[:1])
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.Register(t.Context(), "a:1", 2*time.Second) // half of it is the longest pause between two looks that counts
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Claim(t.Context(), info.ID, id)
		if err != nil {
			t.Fatal(err)
		}
		late := func() error {
			return s.CommitAs(t.Context(), c, 1, []study.Event{{Time: time.Now(), Body: study.Paused{}}}, nil)
		}
		if remove {
			err = s.Delete(t.Context(), info.ID)
			if e := late(); !errors.As(e, new(*store.NotFoundError)) {
				t.Errorf("the server's write to a deleted study: %v", e)
			}
		} else {
			err = s.Commit(t.Context(), info.ID, 1, []study.Event{{Time: time.Now(), Body: study.Paused{}}}, nil)
			if e := late(); !errors.As(e, new(*store.FencedError)) {
				t.Errorf("the server's write to a study that was freed: %v", e)
			}
		}
		if err != nil {
			t.Errorf("removing it %t: %v", remove, err)
		}
		if err := s.Renew(t.Context(), id, 1); !errors.As(err, new(*store.BuriedError)) {
			t.Errorf("the server's renewal: %v", err)
		}
	}
}

// newStore returns the address of an empty store.
func newStore(t testing.TB) string {
	t.Helper()
	address := pgtest.Address(t)
	if _, made, err := Init(t.Context(), address, InitOptions{Program: "test"}); err != nil || !made {
		t.Fatal(made, err)
	}
	return address
}

func mustOpen(t testing.TB, address string, o Options) *Store {
	t.Helper()
	o.UnsafeNoSync = true // the server of the tests does not sync
	s, err := Open(t.Context(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
