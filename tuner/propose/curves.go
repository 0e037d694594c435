package propose

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

// curves is what completed trials tell about how reports foretell outcomes: for
// an objective and a step, final value less reported value of the trials that
// completed last.
type curves map[curvePoint][]float64

type curvePoint struct {
	objective string
	step      int64
}

// Limits of what is kept.
const (
	curveDepth  = 32   // trials a step
	curvePoints = 4096 // steps, over all objectives
)

// learn takes in a completed trial.
func (c curves) learn(t *study.Trial, objectives []study.Objective) {
	if t.State != study.Completed {
		return
	}
	for _, o := range objectives {
		final, ok := measured(t.Outcome, o.Name)
		if !ok || math.IsInf(final.value, 0) {
			continue
		}
		for _, r := range t.CurrentReports() {
			key := curvePoint{o.Name, r.Step}
			have, known := c[key]
			v, reported := reportedValue(r, o.Name)
			if !reported || !known && len(c) >= curvePoints {
				continue
			}
			if len(have) == curveDepth {
				have = slices.Delete(have, 0, 1)
			}
			c[key] = append(have, final.value/2-v/2)
		}
	}
}

// foresee is the value that a pruned trial's last report foretells: it plus the
// median of what other trials still gained or lost from that step on, with the
// spread of that as standard error. ok is false where nobody can say.
func (c curves) foresee(t *study.Trial, objective string) (m measure, ok bool) {
	for _, r := range slices.Backward(t.CurrentReports()) {
		v, reported := reportedValue(r, objective)
		halves := c[curvePoint{objective, r.Step}]
		if !reported || len(halves) == 0 {
			continue
		}
		sorted := slices.Sorted(slices.Values(halves))
		middle := quantile(sorted, 0.5)
		away := make([]float64, len(sorted))
		for i, h := range sorted {
			away[i] = math.Abs(h - middle)
		}
		slices.Sort(away)
		spread := clampFinite(2 * typical * quantile(away, 0.5))
		if len(sorted) < 3 {
			spread = max(spread, math.Abs(clampFinite(2*middle)))
		}
		return measure{value: clampFinite(v + clampFinite(2*middle)), stdErr: spread, count: 1}, true
	}
	return m, false
}

// reportedValue is a finite value of a report.
func reportedValue(r study.Report, name string) (float64, bool) {
	for _, v := range r.Values {
		if v.Name == name && !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
			return v.Value, true
		}
	}
	return 0, false
}
