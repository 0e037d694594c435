package acquire

import "math"

// costWeight determines how a suggestion weighs costs. In place of a bound u it uses the score
// log(u − reference) − power·log cost, for u above the reference, the best posterior mean.
type costWeight struct {
	reference float64
	power     float64
}

// costWeight returns how the next suggestion weighs costs, nil if it does not. If the study has
// a MaxCost, the power falls from 1 to 0 while it is spent (Lee, Perrone, Archambeau and
// Seeger, Cost-aware Bayesian optimization, 2020).
func (a *acquisition) costWeight() *costWeight {
	if !a.engine.Costs() || len(a.eliteOf(a.engine)) == 0 {
		return nil
	}
	t := &costWeight{reference: a.standing(a.engine).best(), power: 1}
	if all := a.spec.MaxCost; all > 0 {
		t.power = min(max(1-a.engine.Results.Spent/all, 0), 1)
	}
	return t
}

// weigh replaces bounds by scores, given the logarithms of the costs.
func (t *costWeight) weigh(bounds, logs []float64) {
	for i, u := range bounds {
		gain := u - t.reference
		score := math.Log(max(gain, 1e-9))
		if gain < 1e-9 {
			score += gain // no improvement, ordered by how much is missing
		}
		bounds[i] = score - t.power*logs[i]
	}
}
