package model

import "github.com/bkbtuner/bkb/tuner/study"

// CostSource is the source of a trial's cost.
type CostSource uint8

const (
	CostIgnored CostSource = iota
	CostTold               // study.Outcome.Cost
	CostSeconds            // from the last start to the end
)

// of returns the cost of a trial, or 0 if it is not known. The costs of pruned and crashed
// trials are not used, because bad configurations would look cheap.
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
