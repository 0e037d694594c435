package bolt

import (
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Histories(t, 40)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		path := filepath.Join(t.TempDir(), "studies.db")
		current := mustOpen(t, path, Options{})
		return storetest.Harness{
			Store: current,
			Reopen: func(t *testing.T) store.Store {
				if err := current.Close(); err != nil {
					t.Error(err)
				}
				current = mustOpen(t, path, Options{MustExist: true})
				return current
			},
		}
	})
}

func mustOpen(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}
