package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/bkbtuner/bkb/store"
)

// OpenWithin is [Open], which tries again for at most the time while the database cannot be
// reached. waiting, if not nil, is called once with the first error.
func OpenWithin(ctx context.Context, address string, o Options, atMost time.Duration, waiting func(err error, until time.Time)) (*Store, error) {
	until := time.Now().Add(atMost)
	for {
		try, cancel := context.WithTimeout(ctx, max(time.Until(until), 10*time.Second))
		st, err := Open(try, address, o)
		cancel()
		if !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil || time.Now().After(until) {
			return st, err
		}
		if waiting != nil {
			waiting(err, until)
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
