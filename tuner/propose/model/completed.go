package model

import (
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Completed holds completed trials with their measurements.
type Completed struct {
	Trials []int
	X      []float64   // encoded configurations, one after another
	Values [][]float64 // of each objective, where larger is better
}

// Completed returns the completed trials of v, which is the View digested last. With
// keeping it returns only those that keep the constraints. Late results are not included,
// and the results left out, ascending, are not.
func (r *Results) Completed(v View, keeping bool, left []int) Completed {
	out := Completed{Values: make([][]float64, len(r.spec.Objectives))}
	for i := range r.List {
		a := &r.List[i]
		if a.Y == nil || a.Epoch > 0 || keeping && !a.Feasible {
			continue
		}
		if _, out := slices.BinarySearch(left, i); out {
			continue
		}
		if t, ok := v.Trial(a.Trial); !ok || t.State != study.Completed {
			continue
		}
		out.Trials, out.X = append(out.Trials, a.Trial), append(out.X, a.X...)
		for j, m := range a.Y {
			out.Values[j] = append(out.Values[j], m.Value)
		}
	}
	return out
}

// CountLate replaces the first objective of completed trials by a mean. It is the mean of
// the measurement and of the completed late results that count, in which each replicate
// counts once. A trial with two measurements is then not judged by one lucky result. Results
// left out do not count.
func (r *Results) CountLate(v View, c Completed, left []int) {
	if v.LateResults() == 0 {
		return
	}
	skipped := func(trial, epoch int) bool {
		return slices.ContainsFunc(left, func(i int) bool { return r.List[i].Trial == trial && r.List[i].Epoch == epoch })
	}
	for i, n := range c.Trials {
		t, _ := v.Trial(n)
		if len(t.Late) == 0 {
			continue
		}
		values := c.Values[0]
		weight := float64(r.measures(t.Outcome)[0].Count)
		for _, l := range t.Late {
			y := r.measures(l.Outcome)
			if l.Outcome.State != study.Completed || y == nil || skipped(n, l.Epoch) {
				continue
			}
			more := float64(y[0].Count)
			values[i] = values[i]*(weight/(weight+more)) + y[0].Value*(more/(weight+more))
			weight += more
		}
	}
}
