package optuna

import (
	"context"
	"time"

	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/optuna/internal/changepb"
	"github.com/bkbtuner/bkb/tuner/study"
)

// FailStale gives running trials that have not changed for so long the state FAIL, until
// ctx ends. The protocol has no heartbeats, so a trial whose client died would run for
// ever.
func (f *Face) FailStale(ctx context.Context, after time.Duration) {
	tick := time.NewTicker(min(max(after/8, 100*time.Millisecond), time.Minute))
	defer tick.Stop()
	for {
		if err := f.failStale(ctx, f.options.Now().Add(-after)); err != nil && ctx.Err() == nil {
			f.options.Logger.Warn("stale trials of Optuna could not be failed", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// failStale fails the running trials that have not changed since a time.
func (f *Face) failStale(ctx context.Context, since time.Time) error {
	studies, err := f.tuner.ForeignStudies(ctx, Prefix)
	if err != nil {
		return err
	}
	for _, s := range studies {
		f.mu.Lock()
		_, idle := f.idle[s.ID]
		f.mu.Unlock()
		if idle {
			continue // and need not be read
		}
		var numbers []int
		err := f.tuner.Change(ctx, s, func(state engine.Foreign) (changes []study.Foreign, err error) {
			var others bool
			if numbers, others = state.(*State).stale(since); !others {
				f.mu.Lock()
				f.idle[s.ID] = struct{}{}
				f.mu.Unlock()
			}
			for _, number := range numbers {
				c, err := encode(number, study.Failed, &changepb.Change{At: f.now(), Call: &changepb.Change_State{
					State: &pb.SetTrialStateValuesRequest{State: pb.TrialState_FAIL},
				}})
				if err != nil {
					return nil, err
				}
				changes = append(changes, c...)
			}
			return changes, nil
		})
		for _, number := range numbers {
			if err == nil {
				f.options.Logger.Info("a trial of Optuna did not change for too long and has failed", "study", s.Name, "trial", number)
			}
		}
		if err != nil && !notFound(err) && tuner.CodeOf(err) != tuner.Damaged {
			f.mu.Lock()
			delete(f.idle, s.ID)
			f.mu.Unlock()
			return err
		}
	}
	return nil
}
