package propose

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/study"
)

// rung is what a trial reported at one step: each objective, larger being
// better, NaN where it is not known. All others are finite.
type rung struct {
	step int64
	y    []float64
}

// level is ⌊log₂(step + 1)⌋.
func level(step int64) int { return bits.Len64(uint64(step)+1) - 1 }

// rungsOf thins the reports of a trial's last epoch: of every level the first
// step, and the last step of all, ascending. Of a trial that runs only the latest
// reports are looked at.
func rungsOf(t *study.Trial, objectives []study.Objective) []rung {
	reports := t.Reports
	if t.State == study.Running {
		reports = reports[max(0, len(reports)-reportsSeen):]
	}
	first := make(map[int]int64) // of a level
	last := int64(-1)
	useful := func(r *study.Report) bool {
		return r.Epoch == t.Epoch && r.Step >= 0 && slices.ContainsFunc(objectives, func(o study.Objective) bool {
			_, ok := reportedValue(r, o.Name)
			return ok
		})
	}
	for i := range reports {
		r := &reports[i]
		if !useful(r) {
			continue
		}
		l := level(r.Step)
		if s, ok := first[l]; !ok || r.Step < s {
			first[l] = r.Step
		}
		last = max(last, r.Step)
	}
	if last < 0 {
		return nil
	}
	at := make(map[int64]int, len(first)+1)
	var out []rung
	add := func(step int64) {
		if _, ok := at[step]; ok {
			return
		}
		at[step] = len(out)
		out = append(out, rung{step, slices.Repeat([]float64{math.NaN()}, len(objectives))})
	}
	for _, s := range first {
		add(s)
	}
	add(last)
	for i := range reports {
		r := &reports[i]
		k, ok := at[r.Step]
		if !ok || r.Epoch != t.Epoch {
			continue
		}
		for j, o := range objectives {
			if v, ok := reportedValue(r, o.Name); ok {
				if o.Direction == study.Minimize {
					v = -v
				}
				out[k].y[j] = v
			}
		}
	}
	slices.SortFunc(out, func(a, b rung) int { return cmp.Compare(a.step, b.step) })
	return out
}

// reportsSeen is how many reports, the latest, of a trial that runs are looked at.
const reportsSeen = 256

// reportedValue is a finite value of a report.
func reportedValue(r *study.Report, name string) (float64, bool) {
	for _, v := range r.Values {
		if v.Name == name && !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
			return v.Value, true
		}
	}
	return 0, false
}

// fidelity is how reports at lower steps bear on outcomes, for one objective.
type fidelity struct {
	Full   int64   `json:"full"`   // the step of full fidelity
	Length float64 `json:"length"` // ℓ_δ of the kernel, in doublings
	Knots  []knot  `json:"knots"`  // by δ, ascending; the outcome at 0 is not among them
}

// knot says what the values at one distance from the outcome are worth:
// Shift + Slope·(value − Center) on the scale of outcomes.
type knot struct {
	Delta  float64 `json:"delta"`
	Center float64 `json:"center"`
	Shift  float64 `json:"shift"`
	Slope  float64 `json:"slope"`
	// Spread is a robust standard deviation of what completed trials came to from
	// what this map made of them.
	Spread float64 `json:"spread"`
}

// Limits of what is taken of reports.
const (
	maxDelta     = 12.0 // doublings: what is further from the outcome is ignored
	lowRows      = 4    // of a trial
	lowLimit     = 8.0  // of targets
	enoughPairs  = 4    // of values, for a slope
	steepest     = 10.0 // slope
	typicalDelta = 16.0 // ℓ_δ to begin with
)

// doublings is log₂(step + 1).
func doublings(step int64) float64 { return math.Log2(float64(step) + 1) }

// delta is how many doublings a step is from the full one; 0 beyond.
func (f *fidelity) delta(step int64) float64 {
	return max(doublings(f.Full)-doublings(step), 0)
}

// fullStep is the step of full fidelity: the one given, or the median of the last
// steps of completed trials; 0 if none reported.
func (b *bkb) fullStep(list []result) int64 {
	if b.options.MaxStep > 0 {
		return b.options.MaxStep
	}
	var last []int64
	for i := range list {
		if r := &list[i]; r.y != nil && len(r.low) > 0 {
			last = append(last, r.low[len(r.low)-1].step)
		}
	}
	if len(last) == 0 {
		return 0
	}
	slices.Sort(last)
	return last[len(last)/2]
}

// newFidelity learns how the values of objective j go on from each level, nil if
// no report can teach anything. From level to level, down from the outcome, the
// trials that have values at both say by their medians and median absolute
// deviations what a value becomes.
func (b *bkb) newFidelity(list []result, j int, old *surface) *fidelity {
	if b.options.IgnoreReports {
		return nil
	}
	f := &fidelity{Full: b.fullStep(list), Length: typicalDelta}
	if f.Full <= 0 || !slices.ContainsFunc(list, func(r result) bool { return len(r.low) > 0 }) {
		return nil
	}
	if old != nil && old.Fidelity != nil {
		f.Length = old.Fidelity.Length
	}
	above := knot{Slope: 1} // the outcome
	upper := func(r *result) (float64, bool) {
		if r.y == nil {
			return 0, false
		}
		return r.y[j].value, !math.IsInf(r.y[j].value, 0)
	}
	for l := level(f.Full); l >= 0; l-- {
		at := func(r *result) (rung, bool) { return r.at(l, j) }
		var deltas, low, high []float64
		for i := range list {
			g, ok := at(&list[i])
			d := f.delta(g.step)
			if !ok || d == 0 || d > maxDelta {
				continue
			}
			deltas = append(deltas, d)
			if v, ok := upper(&list[i]); ok {
				low, high = append(low, g.y[j]), append(high, v)
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
		upper = func(r *result) (float64, bool) {
			g, ok := at(r)
			if !ok {
				return 0, false
			}
			return g.y[j], true
		}
	}
	return f
}

// missed is the robust spread of outcomes of objective j around what k makes of
// the values at a level; otherwise where there are few.
func (k knot) missed(list []result, l, j int, otherwise float64) float64 {
	var away []float64
	for i := range list {
		r := &list[i]
		if g, ok := r.at(l, j); ok && r.y != nil {
			away = append(away, math.Abs(clampFinite(r.y[j].value/2)-k.apply(g.y[j])/2))
		}
	}
	if len(away) < enoughPairs {
		return otherwise
	}
	slices.Sort(away)
	return clampFinite(2 * typical * quantile(away, 0.5))
}

// at returns what the trial reported of objective j at a level.
func (r *result) at(l, j int) (rung, bool) {
	for _, g := range r.low {
		if level(g.step) == l && !math.IsNaN(g.y[j]) {
			return g, true
		}
	}
	return rung{}, false
}

// link is the map between paired values by medians and median absolute
// deviations: without a slope where they are few, nothing where there are none.
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

// apply is Shift + Slope·(v − Center), finite.
func (k knot) apply(v float64) float64 {
	return clampFinite(k.Shift + clampFinite(k.Slope*clampFinite(v-k.Center)))
}

// then is k with its result mapped by next.
func (k knot) then(next knot) knot {
	return knot{Center: k.Center, Shift: next.apply(k.Shift), Slope: min(k.Slope*next.Slope, 1e6)}
}

// final is what a value at distance δ is worth as an outcome, by the knots around
// it, and how far from it outcomes were.
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

// value is a result's outcome, or what its last report is worth as one.
func (f *fidelity) value(r *result, j int) (v float64, ok bool) {
	if r.y != nil {
		return r.y[j].value, true
	}
	if f == nil {
		return 0, false
	}
	for _, g := range slices.Backward(r.low) {
		if d := f.delta(g.step); d <= maxDelta && !math.IsNaN(g.y[j]) {
			v, _ = f.final(d, g.y[j])
			return v, true
		}
	}
	return 0, false
}

// fate is what became of a trial that reported.
type fate uint8

const (
	runs     fate = iota
	foretold      // it runs, and this is about what it comes to, not about others
	stopped       // without an outcome: pruned
	finished      // with one
)

// target is that of what a report is worth, and its standard deviation. What one
// trial reports must not carry the predictions for others away.
func (f fate) target(t *target, worth, spread float64) (y, sd float64) {
	slope, limit := t.slope(worth), lowLimit
	y = t.of(worth)
	if f == foretold {
		y, slope, limit = t.exact(worth), t.exactSlope(worth), 1e6 // for the arithmetic's sake
	}
	if spread > 0 { // the slope may be infinite
		sd = min(spread*slope, lowLimit)
	}
	return min(max(y, -limit), limit), sd
}

// lower appends what the reports of a configuration tell surface s of objective
// j, highest fidelity first. Of a trial with an outcome the last report adds
// nothing. One that was stopped will not come to an outcome, nor would others
// where it was: so that nobody waits for what cannot be learnt, what its last
// report alone says of the outcome, m + ρ(y − m) with variance a(1 − ρ²), counts
// as measured.
func (s *surface) lower(out []sample, x []float64, low []rung, j int, came fate) []sample {
	f := s.Fidelity
	if f == nil {
		return out
	}
	rows, next := 0, math.Inf(-1)
	if came == finished {
		next = 1
	}
	for _, g := range slices.Backward(low) {
		d := f.delta(g.step)
		if rows == lowRows || d > maxDelta {
			break
		}
		if math.IsNaN(g.y[j]) || d < next {
			continue
		}
		v, spread := f.final(d, g.y[j])
		y, sd := came.target(&s.Target, v, spread)
		out = append(out, sample{x: append(slices.Clone(x), d), y: y, extra: sd * sd})
		if came == stopped && rows == 0 && d > 0 { // at 0 it is an outcome already
			rho := math.Exp(-d / f.Length)
			out = append(out, sample{x: x, y: s.Mean + rho*(y-s.Mean), extra: sd*sd + s.Theta[0]*(1-rho*rho), inferred: true})
		}
		rows, next = rows+1, d+rowSpacing
	}
	return out
}

// rowSpacing is the least distance of a trial's rows, in doublings.
const rowSpacing = 1.5

// withLength adds the prior of ℓ_δ, LogNormal(log 16, 1.2), and its limits: half
// the way to the outcome, a doubling, tells e^(−1/16) of it before there are data.
func withLength(o *gp.FitOptions) {
	prior, bounds := o.Prior, o.Bounds
	o.Prior = func(p kernel.Parameter) gp.Prior {
		if p.Name == fidelityLength {
			return gp.LogNormal{Mu: math.Log(typicalDelta), Sigma: 1.2}
		}
		return prior(p)
	}
	o.Bounds = func(p kernel.Parameter) (lo, hi float64) {
		if p.Name == fidelityLength {
			return 0.1, 1e4
		}
		return bounds(p)
	}
}
