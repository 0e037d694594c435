package acquire

import (
	"cmp"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// Recommend reads v and returns a function that returns its best trials. The function costs
// O(nm) for n trials. It does not use v, r and e, so all three may change meanwhile. The
// results r are the digest of v, and e is its model or nil.
//
// For one objective it returns the best measured of the completed trials whose posterior
// mean is at most plausibly below the best mean. This rule discounts lucky results. With the
// option recommend it returns the trial with the best mean or lower bound instead. It returns
// the first of equal trials. Late results count as measured. For several objectives it
// returns the trials whose means no other dominates. With constraints only trials that keep
// them are compared, by their measurements while there is no model. If none keeps them, it
// returns the trial that is most likely to be feasible by the model. Outliers are not compared
// unless there is nothing else, because the model expects far better values at their place.
func (c *Chooser) Recommend(v model.View, r *model.Results, e *model.Engine) func() []int {
	var outliers []int
	if e != nil {
		outliers = e.Outliers()
	}
	done := r.Completed(v, true, outliers)
	if len(done.Trials) == 0 {
		done = r.Completed(v, true, nil)
	}
	if len(done.Trials) == 0 && (e == nil || !e.Limited() && len(e.Event.Surfaces) == len(c.spec.Objectives)) {
		return func() []int { return nil } // neither feasibility nor a limit is modelled
	}
	if e == nil {
		return func() []int { return bestBy(done.Trials, done.Values) }
	}
	if len(done.Trials) == 0 {
		done, m := r.Completed(v, false, nil), e.Detach()
		return func() []int { return c.likeliest(done, m) }
	}
	r.CountLate(v, done, outliers)
	widths := make([]float64, len(done.Values))
	for j := range widths {
		widths[j] = c.width(e, j, 0)
	}
	repeats := r.RepeatsWithout(v, outliers)
	m, noise := e.Detach(), repeats.Most()
	return func() []int {
		if len(done.Values) == 1 && c.options.Recommend == Plausible {
			return c.plausible(done, noise, m)
		}
		return bestBy(done.Trials, c.values(m, c.points(done), widths))
	}
}

// bestBy returns the trial with the largest value, or those that no other dominates in
// several.
func bestBy(trials []int, values [][]float64) []int {
	if len(values) == 1 {
		return first(trials, values[0])
	}
	return front(trials, values)
}

// likeliest returns the trial that is most likely to be feasible, or none.
func (c *Chooser) likeliest(done model.Completed, e *model.Surfaces) []int {
	if len(done.Trials) > 0 && e.Limited() {
		return first(done.Trials, e.LogFeasible(c.points(done)))
	}
	if len(done.Trials) == 0 {
		return nil
	}
	mean := e.Means(len(c.spec.Objectives), c.points(done))
	return first(done.Trials, mean)
}

func (c *Chooser) points(done model.Completed) *kernel.Points[float64] {
	return kernel.NewPoints(len(done.Trials), c.spec.Space.Dim(), done.X)
}

// plausibly is how many of its own posterior standard deviations a trial's mean may be
// below the best mean for its measurement to count. luckily is how many standard deviations
// of the noise two measurements of equal trials may differ by.
const (
	plausibly = 1
	luckily   = 2 * math.Sqrt2
)

// plausible returns the best measured trial whose mean is at most plausibly below the best
// mean. It returns the best measured of all if its lead exceeds the noise, which repeated
// measurements show to be at most the one given. Without noise any lead is enough.
func (c *Chooser) plausible(done model.Completed, noise float64, e *model.Surfaces) []int {
	measured := done.Values[0]
	order := make([]int, len(measured))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(measured[b], measured[a]), cmp.Compare(done.Trials[a], done.Trials[b]))
	})
	chosen, top := c.likely(done, e, order), order[0]
	if c.options.Exact || measured[top]-measured[chosen] > luckily*noise {
		chosen = top
	}
	return done.Trials[chosen : chosen+1]
}

// likely returns the first in order whose mean is at most plausibly below the best mean.
// Means cost far less than standard deviations, so it looks at these only until a trial
// qualifies. The trial with the best mean always does.
func (c *Chooser) likely(done model.Completed, e *model.Surfaces, order []int) int {
	best := slices.Max(e.Means(0, c.points(done)))
	const block = 64
	dim := c.spec.Space.Dim()
	for some := range slices.Chunk(order, block) {
		x := kernel.NewPoints[float64](len(some), dim, nil)
		for k, i := range some {
			copy(x.Row(k), done.X[i*dim:(i+1)*dim])
		}
		mean, variance := e.Predict(0, x)
		for k, i := range some {
			if mean[k] >= best-plausibly*math.Sqrt(variance[k]) {
				return i
			}
		}
	}
	return order[0]
}

// values returns the values by which trials are recommended otherwise, with the widths of
// the confidence bounds.
func (c *Chooser) values(e *model.Surfaces, points *kernel.Points[float64], widths []float64) [][]float64 {
	out := make([][]float64, len(c.spec.Objectives))
	for j := range out {
		if c.options.Recommend != ByLower {
			out[j] = e.Means(j, points)
			continue
		}
		mean, variance := e.Predict(j, points)
		for i := range mean {
			mean[i] -= widths[j] * math.Sqrt(variance[i])
		}
		out[j] = mean
	}
	return out
}

// first returns the trial with the largest value. Of equal ones it returns the one with the
// smallest number.
func first(trials []int, values []float64) []int {
	best := 0
	for i, m := range values {
		if m > values[best] || m == values[best] && trials[i] < trials[best] {
			best = i
		}
	}
	return trials[best : best+1]
}
