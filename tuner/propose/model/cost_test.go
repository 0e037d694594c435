package model

import (
	"testing"

	"github.com/bkbtuner/bkb/tuner/study"
)

// The running time of a crashed trial does not count as the cost of its configuration.
func TestCrashesCostNothing(t *testing.T) {
	for _, c := range []struct {
		o    study.Outcome
		want float64
	}{
		{study.Outcome{State: study.Failed, Reason: study.FailedCrash, Cost: 3}, 0},
		{study.Outcome{State: study.Failed, Reason: study.FailedNaN, Cost: 3}, 3},
		{study.Outcome{State: study.Infeasible, Cost: 3}, 3},
		{study.Outcome{State: study.Pruned, Cost: 3}, 0},
	} {
		if got := CostTold.of(&study.Trial{State: c.o.State, Outcome: c.o}); got != c.want {
			t.Errorf("%v counts as %v, want %v", c.o, got, c.want)
		}
	}
}
