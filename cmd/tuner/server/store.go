package server

import (
	"context"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/tuner/server"
)

// opened is the store of a server, with what the server asks of it.
type opened struct {
	store.Store
	file    *bolt.Store     // nil for a database
	failed  <-chan struct{} // closed when the store has failed, nil if it goes on
	failure func() error
	bytes   func() (server.StoreBytes, error)
}

func openedFile(st *bolt.Store) *opened {
	return &opened{
		Store: cli.Backuper{Store: st}, file: st, failed: st.Failed(), failure: st.Failure,
		bytes: func() (server.StoreBytes, error) {
			s, err := st.Status(context.Background())
			return server.StoreBytes{Used: s.UsedBytes, Free: s.FreeBytes, Limit: s.MaxSize}, err
		},
	}
}

func openedDatabase(st *postgres.Store) *opened {
	return &opened{
		Store: cli.Unbacked{Store: st}, failure: func() error { return nil },
		bytes: func() (server.StoreBytes, error) {
			n, err := st.Bytes(context.Background())
			return server.StoreBytes{Used: n, Free: -1, Limit: -1}, err // the database knows neither
		},
	}
}
