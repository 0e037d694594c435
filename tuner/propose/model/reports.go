package model

import (
	"cmp"
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

// rungsOf thins the reports of a trial's last epoch. It keeps the first step of every
// level, and the last step of all, ascending. Of a running trial only the latest reports
// are read.
func rungsOf(t *study.Trial, objectives []study.Objective) []Rung {
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
	var out []Rung
	add := func(step int64) {
		if _, ok := at[step]; ok {
			return
		}
		at[step] = len(out)
		out = append(out, Rung{step, slices.Repeat([]float64{math.NaN()}, len(objectives))})
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
				out[k].Y[j] = v
			}
		}
	}
	slices.SortFunc(out, func(a, b Rung) int { return cmp.Compare(a.Step, b.Step) })
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
