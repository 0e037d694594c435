package model

import (
	"math"
	"slices"
)

// fate is the state of a trial that reported.
type fate uint8

const (
	runs     fate = iota
	foretold      // runs, and this forecasts its own outcome only
	stopped       // pruned, without an outcome
	finished      // with an outcome
)

// target converts the outcome that a report suggests to a target, with its standard
// deviation. The limit keeps the reports of one trial from dominating the predictions for
// others.
func (f fate) target(t *Target, worth, spread float64) (y, sd float64) {
	slope, limit := t.slope(worth), lowLimit
	y = t.Of(worth)
	if f == foretold {
		y, slope, limit = t.exact(worth), t.exactSlope(worth), 1e6 // limited for the arithmetic
	}
	if spread > 0 { // the slope may be infinite
		sd = min(spread*slope, lowLimit)
	}
	return min(max(y, -limit), limit), sd
}

// lower appends the samples that the reports of a configuration give surface s of objective
// j, highest fidelity first. For a trial with an outcome the last report adds nothing. A
// stopped trial will not get an outcome, and other trials at its place would be stopped
// too. So that the search does not keep waiting for one, the prediction of its outcome from
// its last report alone counts as measured, m + ρ(y − m) with variance (b + a)(1 − ρ²), where ρ
// = (b + a·exp(−δ/ℓ_δ))/(b + a) is the correlation of the two.
func (s *Surface) lower(out []sample, x []float64, low []Rung, j int, came fate) []sample {
	f := s.Fidelity
	if f == nil {
		return out
	}
	rows, next := 0, math.Inf(-1)
	if came == finished {
		next = 1
	}
	for _, g := range slices.Backward(low) {
		d := f.delta(g.Step)
		if rows == lowRows || d > maxDelta {
			break
		}
		if math.IsNaN(g.Y[j]) || d < next {
			continue
		}
		v, spread := f.final(d, g.Y[j])
		y, sd := came.target(&s.Target, v, spread)
		out = append(out, sample{x: append(slices.Clone(x), d), y: y, extra: sd * sd})
		if came == stopped && rows == 0 && d > 0 { // at 0 it is an outcome already
			whole := s.Constant + s.Theta[0]
			rho := (s.Constant + s.Theta[0]*math.Exp(-d/f.Length)) / whole
			out = append(out, sample{x: x, y: s.Mean + rho*(y-s.Mean), extra: sd*sd + whole*(1-rho*rho), inferred: true})
		}
		rows, next = rows+1, d+rowSpacing
	}
	return out
}

// rowSpacing is the least distance of a trial's rows, in doublings.
const rowSpacing = 1.5
