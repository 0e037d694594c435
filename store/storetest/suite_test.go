package storetest_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/store/storetest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestRunReopens runs the tests of reopening on a store that must pass them. It reopens
// handles to a store in memory that outlives them.
func TestRunReopens(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		current := &handle{Store: memory.New()}
		return storetest.Harness{
			Store: current,
			Reopen: func(t *testing.T) store.Store {
				if err := current.Close(); err != nil {
					t.Error(err)
				}
				current = &handle{Store: current.Store}
				return current
			},
		}
	})
}

// handle is a store whose data outlive Close.
type handle struct {
	store.Store
	closed atomic.Bool
}

func (h *handle) Close() error {
	h.closed.Store(true)
	return nil
}

func (h *handle) usable() error {
	if h.closed.Load() {
		return store.ErrClosed
	}
	return nil
}

func (h *handle) Create(ctx context.Context, name string, events []study.Event) (store.Info, error) {
	if err := h.usable(); err != nil {
		return store.Info{}, err
	}
	return h.Store.Create(ctx, name, events)
}

func (h *handle) Lookup(ctx context.Context, name string) (store.Info, error) {
	if err := h.usable(); err != nil {
		return store.Info{}, err
	}
	return h.Store.Lookup(ctx, name)
}

func (h *handle) Stat(ctx context.Context, id store.StudyID) (store.Info, error) {
	if err := h.usable(); err != nil {
		return store.Info{}, err
	}
	return h.Store.Stat(ctx, id)
}

func (h *handle) List(ctx context.Context, after string) iter.Seq2[store.Info, error] {
	if err := h.usable(); err != nil {
		return func(yield func(store.Info, error) bool) { yield(store.Info{}, err) }
	}
	return h.Store.List(ctx, after)
}

func (h *handle) Delete(ctx context.Context, id store.StudyID) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.Store.Delete(ctx, id)
}

func (h *handle) Commit(ctx context.Context, id store.StudyID, expected study.Position, events []study.Event, summary []byte) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.Store.Commit(ctx, id, expected, events, summary)
}

func (h *handle) Read(ctx context.Context, id store.StudyID, from study.Position) iter.Seq2[store.Record, error] {
	if err := h.usable(); err != nil {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, err) }
	}
	return h.Store.Read(ctx, id, from)
}

func (h *handle) Summaries(ctx context.Context, ids []store.StudyID) ([]store.Summary, error) {
	if err := h.usable(); err != nil {
		return nil, err
	}
	return h.Store.Summaries(ctx, ids)
}

func (h *handle) SaveSummaries(ctx context.Context, list []store.Summary) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.Store.SaveSummaries(ctx, list)
}
