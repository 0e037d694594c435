package postgres

import (
	"os"
	"testing"

	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// TestStore runs the suite with batches, and with each commit alone.
func TestStore(t *testing.T) {
	for name, tuning := range map[string]tuning{"batches": {}, "alone": {batch: 1, writers: 8}} {
		t.Run(name, func(t *testing.T) {
			if name == "alone" {
				pgtest.Long(t)
			}
			storetest.Histories(t, 25)
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
