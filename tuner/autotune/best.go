package autotune

import (
	"context"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Best returns the completed trial with the least error, and the first of equal ones. If no
// trial has completed, ok is false.
//
// [tuner.Service.Best] recommends the least mean of the proposer's model instead, which
// avoids a result that was low by chance. Here all trials fit and are judged on the same
// rows with the same seed. Their errors differ because their configurations differ, and a
// model of few trials takes part of that difference for noise.
func (t *Tuning) Best(ctx context.Context, svc tuner.Service, name string) (best study.Trial, ok bool, err error) {
	least := 0.0
	err = t.completed(ctx, svc, name, func(trial study.Trial, x float64) {
		if !ok || x < least {
			best, least, ok = trial, x, true
		}
	})
	return best, ok, err
}

// completed calls f for each completed trial with its error, in the order of their numbers.
func (t *Tuning) completed(ctx context.Context, svc tuner.Service, name string, f func(trial study.Trial, x float64)) error {
	for filter := (tuner.Filter{States: []study.TrialState{study.Completed}}); ; {
		trials, more, err := svc.Trials(ctx, name, filter)
		if err != nil {
			return err
		}
		for _, trial := range trials {
			if m, measured := trial.Outcome.Metric(t.Objective()); measured {
				f(trial, m.Mean())
			}
			filter.First = trial.Number + 1
		}
		if !more {
			return nil
		}
	}
}
