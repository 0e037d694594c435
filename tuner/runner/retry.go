package runner

import (
	"context"
	"errors"
	"time"

	"github.com/bkbtuner/bkb/tuner"
)

// retry calls f until it succeeds, finally fails, or Options.RetryFor is over. It tries
// again if the service cannot be reached or the outcome is unknown, so f must send the
// same request each time.
func (r *run) retry(ctx context.Context, f func() error) error {
	pause := 100 * time.Millisecond
	end := time.Now().Add(r.options.RetryFor)
	for {
		err := f()
		switch tuner.CodeOf(err) {
		case tuner.Unavailable, tuner.Unknown, tuner.Exhausted, tuner.Deadline:
		default:
			return err
		}
		if remote := (*tuner.RemoteError)(nil); errors.As(err, &remote) && remote.Final {
			return err
		}
		if time.Now().After(end) || !sleep(ctx, pause, nil) {
			return err
		}
		r.event(Event{Kind: Retrying, Err: err})
		pause = min(2*pause, 10*time.Second)
	}
}

// sleep waits. It returns early if wake is closed, and false if ctx ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	select {
	case <-time.After(d):
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
