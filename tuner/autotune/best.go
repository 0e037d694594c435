package autotune

import (
	"context"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Best returns the completed trial with the least error, of equal ones the first; ok
// is false if none has completed.
//
// That is not what [tuner.Service.Best] recommends, which is the least mean of the
// proposer's model, so as not to fall for a lucky draw. All trials here fit and are
// judged on the same rows with the same seed: their errors differ by what they do, and
// a model of few trials takes part of that for noise.
func (t *Tuning) Best(ctx context.Context, svc tuner.Service, name string) (best study.Trial, ok bool, err error) {
	least := 0.0
	for f := (tuner.Filter{States: []study.TrialState{study.Completed}}); ; {
		trials, more, err := svc.Trials(ctx, name, f)
		if err != nil {
			return study.Trial{}, false, err
		}
		for _, trial := range trials {
			m, measured := trial.Outcome.Metric(t.Objective())
			if x := m.Mean(); measured && (!ok || x < least) {
				best, least, ok = trial, x, true
			}
			f.First = trial.Number + 1
		}
		if !more {
			return best, ok, nil
		}
	}
}
