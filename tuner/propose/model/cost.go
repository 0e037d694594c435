package model

import "github.com/bkbtuner/bkb/tuner/study"

// CostSource is where what a trial cost is read from.
type CostSource uint8

const (
	CostIgnored CostSource = iota
	CostTold               // study.Outcome.Cost
	CostSeconds            // from the last start to the end
)

// of is what a trial cost; 0 if that is not known. A pruned trial's says nothing
// of what its configuration costs, nor does a crashed one's: bad ones would look cheap.
func (c CostSource) of(t *study.Trial) float64 {
	switch {
	case c == CostIgnored, t.State == study.Pruned, t.State == study.Failed && t.Outcome.Reason == study.FailedCrash:
		return 0
	case c == CostTold:
		return t.Outcome.Cost
	case t.Epoch == 0: // it ran elsewhere
		return 0
	default:
		return max(t.Ended.Sub(t.Started).Seconds(), 0)
	}
}
