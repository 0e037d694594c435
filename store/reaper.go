package store

import (
	"context"
	"time"
)

// reapRetry is the wait of a [Reaper] after a slice that failed.
const reapRetry = 30 * time.Second

// Reaper removes the logs of deleted studies in slices. It pauses after each slice for as
// long as the slice took. It is for implementations of [Store].
type Reaper struct {
	woken  chan struct{}
	cancel context.CancelFunc
	done   chan struct{}
}

// NewReaper returns a Reaper that does not run yet.
func NewReaper() *Reaper { return &Reaper{woken: make(chan struct{}, 1)} }

// Start starts the Reaper. slice removes a slice and tells whether to call it again, and
// whether it failed.
func (r *Reaper) Start(slice func(context.Context) (more, failed bool)) {
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.woken:
			}
			for more := true; more && ctx.Err() == nil; {
				start := time.Now()
				var failed bool
				more, failed = slice(ctx)
				pause := time.Since(start)
				if failed {
					pause = reapRetry
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		}
	}()
}

// Wake tells the Reaper that there is a log to remove.
func (r *Reaper) Wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// Close waits for the present slice. A Reaper that was not started can be closed.
func (r *Reaper) Close() {
	if r.cancel != nil {
		r.cancel()
		<-r.done
	}
}
