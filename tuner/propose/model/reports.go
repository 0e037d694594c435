package model

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Rung is a trial's report at one step. It has each objective, where larger is better, and
// NaN where it is not known. All others are finite.
type Rung struct {
	Step int64
	Y    []float64
}

// level returns ⌊log₂(step + 1)⌋.
func level(step int64) int { return bits.Len64(uint64(step)+1) - 1 }

// rungsOf thins the reports of a trial's last epoch. It keeps the first step of every level, and
// the last step of all, ascending. Of a running trial only the latest reports are read.
func rungsOf(t *study.Trial, objectives []study.Objective) []Rung {
	reports := t.Reports
	if t.State == study.Running {
		reports = reports[max(0, len(reports)-reportsSeen):]
	}
	kept := make(map[int]int64) // the first step of each level, and under −1 the last of all
	for i := range reports {
		r := &reports[i]
		if r.Epoch != t.Epoch || r.Step < 0 || !slices.ContainsFunc(objectives, func(o study.Objective) bool {
			_, ok := reportedValue(r, o.Name)
			return ok
		}) {
			continue
		}
		l := level(r.Step)
		if s, ok := kept[l]; !ok || r.Step < s {
			kept[l] = r.Step
		}
		kept[-1] = max(kept[-1], r.Step)
	}
	var out []Rung
	for _, step := range slices.Compact(slices.Sorted(maps.Values(kept))) {
		out = append(out, Rung{step, slices.Repeat([]float64{math.NaN()}, len(objectives))})
	}
	for i := range reports {
		r := &reports[i]
		k, ok := slices.BinarySearchFunc(out, r.Step, func(g Rung, step int64) int { return cmp.Compare(g.Step, step) })
		if !ok || r.Epoch != t.Epoch {
			continue
		}
		for j, o := range objectives {
			if v, ok := reportedValue(r, o.Name); ok {
				if o.Direction == study.Minimize {
					v = -v
				}
				out[k].Y[j] = v
			}
		}
	}
	return out
}

// reportsSeen is how many of the latest reports of a running trial are read.
const reportsSeen = 256

// reportedValue returns a finite value of a report.
func reportedValue(r *study.Report, name string) (float64, bool) {
	for _, v := range r.Values {
		if v.Name == name && !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
			return v.Value, true
		}
	}
	return 0, false
}

// fate is the state of a trial that reported.
type fate uint8

const (
	runs     fate = iota
	foretold      // runs, and this forecasts its own outcome only
	stopped       // pruned, without an outcome
	finished      // with an outcome
)

// target converts the outcome that a report suggests to a target, with its standard deviation.
// The limit keeps the reports of one trial from dominating the predictions for others.
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
