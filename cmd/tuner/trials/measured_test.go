package trials

import (
	"testing"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Late results are in no table. The text lists them, because without them the
// recommendation of a trial that measured worse looks like a mistake.
func TestLuckText(t *testing.T) {
	told := func(state study.TrialState, x float64) study.Outcome {
		return study.Outcome{State: state, Metrics: []study.Metric{{Name: "loss", Values: []float64{x}}}}
	}
	o := study.Objective{Name: "loss"}
	best := study.Trial{Number: 10, State: study.Completed, Outcome: told(study.Completed, 1.9)}
	measured := study.Trial{Number: 8, State: study.Completed, Outcome: told(study.Completed, 1)}
	const plain = "Trial 10 is recommended by the mean of what was measured or expected there, which allows for luck.\nThe best measured value is loss=1 (trial 8)."
	if got := luckText(best, measured, o); got != plain {
		t.Errorf("without late results: %q", got)
	}
	best.Late = []study.LateResult{
		{Epoch: 1, Outcome: study.Outcome{State: study.Failed}},
		{Epoch: 2, Outcome: told(study.Completed, 0.25)},
	}
	measured.Late = []study.LateResult{{Epoch: 1, Outcome: told(study.Completed, 3)}}
	const late = plain + "\nThe model knows late results too: loss=0.25 (trial 10), loss=3 (trial 8)."
	if got := luckText(best, measured, o); got != late {
		t.Errorf("with late results: %q", got)
	}
	if x, _ := best.Outcome.Metric("loss"); x.Mean() != 1.9 {
		t.Error("the trial was changed")
	}
}
