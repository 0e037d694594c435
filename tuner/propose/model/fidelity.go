package model

import (
	"math"
	"slices"
)

// fidelity relates reports at lower steps to outcomes, for one objective.
type fidelity struct {
	Full   int64   `json:"full"`   // the step of full fidelity
	Length float64 `json:"length"` // ℓ_δ of the kernel, in doublings
	Knots  []knot  `json:"knots"`  // by δ, ascending, without the outcome at 0
}

// knot maps values at one distance from the outcome to the scale of outcomes, as Shift +
// Slope·(value − Center).
type knot struct {
	Delta  float64 `json:"delta"`
	Center float64 `json:"center"`
	Shift  float64 `json:"shift"`
	Slope  float64 `json:"slope"`
	// Spread is a robust standard deviation of the outcomes of completed trials around the
	// values of this map.
	Spread float64 `json:"spread"`
}

// Limits for reports.
const (
	maxDelta     = 12.0 // doublings, beyond which reports are ignored
	lowRows      = 4    // of a trial
	lowLimit     = 8.0  // of targets
	enoughPairs  = 4    // of values, for a slope
	steepest     = 10.0 // slope
	typicalDelta = 16.0 // ℓ_δ at the start
)

// doublings is log₂(step + 1).
func doublings(step int64) float64 { return math.Log2(float64(step) + 1) }

// delta returns how many doublings a step is below the full one, or 0 beyond it.
func (f *fidelity) delta(step int64) float64 {
	return max(doublings(f.Full)-doublings(step), 0)
}

// fullStep returns the step of full fidelity. It is the given one if it is not 0, or the
// median of the last steps of completed trials. It is 0 if none reported.
func fullStep(list []Result, given int64) int64 {
	if given > 0 {
		return given
	}
	var last []int64
	for i := range list {
		if r := &list[i]; r.Y != nil && len(r.Low) > 0 {
			last = append(last, r.Low[len(r.Low)-1].Step)
		}
	}
	if len(last) == 0 {
		return 0
	}
	slices.Sort(last)
	return last[len(last)/2]
}

// newFidelity learns how the values of objective j develop from each level on. It returns
// nil if no report can teach anything. From level to level, down from the outcome, it
// compares the trials that have values at both. Their medians and median absolute
// deviations give the map from one level to the next.
func newFidelity(list []Result, j int, old *Surface, o *Options) *fidelity {
	if o.IgnoreReports {
		return nil
	}
	f := &fidelity{Full: fullStep(list, o.MaxStep), Length: typicalDelta}
	if f.Full <= 0 || !slices.ContainsFunc(list, func(r Result) bool { return len(r.Low) > 0 }) {
		return nil
	}
	if old != nil && old.Fidelity != nil {
		f.Length = old.Fidelity.Length
	}
	above := knot{Slope: 1} // the outcome
	upper := func(r *Result) (float64, bool) {
		if r.Y == nil {
			return 0, false
		}
		return r.Y[j].Value, !math.IsInf(r.Y[j].Value, 0)
	}
	for l := level(f.Full); l >= 0; l-- {
		at := func(r *Result) (Rung, bool) { return r.at(l, j) }
		var deltas, low, high []float64
		for i := range list {
			g, ok := at(&list[i])
			d := f.delta(g.Step)
			if !ok || d == 0 || d > maxDelta {
				continue
			}
			deltas = append(deltas, d)
			if v, ok := upper(&list[i]); ok {
				low, high = append(low, g.Y[j]), append(high, v)
			}
		}
		if len(deltas) == 0 {
			continue
		}
		slices.Sort(deltas)
		k := link(low, high).then(above)
		k.Delta = quantile(deltas, 0.5)
		if len(f.Knots) > 0 && k.Delta <= f.Knots[len(f.Knots)-1].Delta {
			continue
		}
		k.Spread = k.missed(list, l, j, above.Spread)
		f.Knots, above = append(f.Knots, k), k
		upper = func(r *Result) (float64, bool) {
			g, ok := at(r)
			if !ok {
				return 0, false
			}
			return g.Y[j], true
		}
	}
	return f
}

// missed returns the robust spread of outcomes of objective j around the values that k
// predicts from a level. Where there are few, it returns otherwise.
func (k knot) missed(list []Result, l, j int, otherwise float64) float64 {
	var away []float64
	for i := range list {
		r := &list[i]
		if g, ok := r.at(l, j); ok && r.Y != nil {
			away = append(away, math.Abs(clampFinite(r.Y[j].Value/2)-k.apply(g.Y[j])/2))
		}
	}
	if len(away) < enoughPairs {
		return otherwise
	}
	slices.Sort(away)
	return clampFinite(2 * typical * quantile(away, 0.5))
}

// at returns the trial's report of objective j at a level.
func (r *Result) at(l, j int) (Rung, bool) {
	for _, g := range r.Low {
		if level(g.Step) == l && !math.IsNaN(g.Y[j]) {
			return g, true
		}
	}
	return Rung{}, false
}

// link returns the map between paired values by medians and median absolute deviations. Its
// slope is 1 where they are few, and it is the identity where there are none.
func link(low, high []float64) knot {
	k := knot{Slope: 1}
	if len(low) == 0 {
		return k
	}
	var lowSpread, highSpread float64
	k.Center, lowSpread = middle(low)
	k.Shift, highSpread = middle(high)
	if len(low) >= enoughPairs && lowSpread > 0 && highSpread > 0 {
		k.Slope = min(max(highSpread/lowSpread, 1/steepest), steepest)
	}
	return k
}

// middle returns the median and the median absolute deviation.
func middle(values []float64) (center, spread float64) {
	sorted := slices.Sorted(slices.Values(values))
	center = quantile(sorted, 0.5)
	for i, v := range sorted {
		sorted[i] = math.Abs(v/2 - center/2)
	}
	slices.Sort(sorted)
	return center, clampFinite(2 * quantile(sorted, 0.5))
}

// apply returns Shift + Slope·(v − Center), finite.
func (k knot) apply(v float64) float64 {
	return clampFinite(k.Shift + clampFinite(k.Slope*clampFinite(v-k.Center)))
}

// then returns k with its result mapped by next.
func (k knot) then(next knot) knot {
	return knot{Center: k.Center, Shift: next.apply(k.Shift), Slope: min(k.Slope*next.Slope, 1e6)}
}

// final converts a value at distance δ to an outcome by the knots around it, and returns
// how far from it outcomes were.
func (f *fidelity) final(delta, v float64) (worth, spread float64) {
	before := knot{Slope: 1}
	for _, k := range f.Knots {
		if k.Delta >= delta {
			w := (delta - before.Delta) / (k.Delta - before.Delta)
			return clampFinite((1-w)*before.apply(v) + w*k.apply(v)), clampFinite((1-w)*before.Spread + w*k.Spread)
		}
		before = k
	}
	return before.apply(v), before.Spread
}

// value returns a result's outcome, or its last report converted to one.
func (f *fidelity) value(r *Result, j int) (v float64, ok bool) {
	if r.Y != nil {
		return r.Y[j].Value, true
	}
	if f == nil {
		return 0, false
	}
	for _, g := range slices.Backward(r.Low) {
		if d := f.delta(g.Step); d <= maxDelta && !math.IsNaN(g.Y[j]) {
			v, _ = f.final(d, g.Y[j])
			return v, true
		}
	}
	return 0, false
}
