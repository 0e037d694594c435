package actor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestShares checks that a study that is asked rarely does not wait for all asks of
// studies that are asked without pause.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Processors{free: 2}
		ctx, cancel := context.WithCancel(t.Context())
		for range 50 {
			go func() {
				var of share
				for ctx.Err() == nil {
					done, err := s.take(ctx, &of, time.Hour)
					if err != nil {
						return
					}
					time.Sleep(time.Second)
					done()
				}
			}()
		}
		time.Sleep(5 * time.Minute)
		var of share
		for range 10 {
			begun := time.Now()
			done, err := s.take(ctx, &of, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begun); waited > 2*time.Second {
				t.Errorf("a study that is asked rarely waits %s", waited)
			}
			time.Sleep(100 * time.Millisecond)
			done()
			time.Sleep(time.Minute)
		}
		cancel()
		time.Sleep(time.Hour) // until all have had their last turn
	})
}

// TestSharesGivenUp checks that an ask that gives up leaves its place to the next.
func TestSharesGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Processors{free: 1}
		var one, two, three share
		done, err := s.take(t.Context(), &one, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.take(t.Context(), &two, time.Second); err == nil {
			t.Error("there was a second place")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.take(ctx, &three, time.Second); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		done()
		if done, err = s.take(t.Context(), &two, time.Second); err != nil {
			t.Error(err)
		}
		done()
		if s.free != 1 || len(s.waiting) != 0 {
			t.Errorf("%d places are free, %d wait", s.free, len(s.waiting))
		}
	})
}
