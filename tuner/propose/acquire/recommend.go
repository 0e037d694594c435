package acquire

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// Recommend returns the best trials of v. The results r are the digest of v, and e is its
// model or nil. For one objective it returns the best measured of the completed trials
// whose posterior mean is at most plausibly below the best mean. This rule discounts lucky
// results. With the option recommend it returns the trial with the best mean or lower bound
// instead. It returns the first of equal trials. Late results count as measured. For
// several objectives it returns the trials whose means no other dominates. With constraints
// only trials that keep them are compared, by their measurements while there is no model.
// If none keeps them, it returns the trial that is most likely to be feasible by the model.
func (c *Chooser) Recommend(v model.View, r *model.Results, e *model.Engine) []int {
	done := r.Completed(v, true)
	if len(done.Trials) == 0 && e != nil {
		return c.likeliest(r.Completed(v, false), e)
	}
	if len(done.Trials) == 0 {
		return nil
	}
	values := done.Values
	if e != nil {
		r.CountLate(v, done)
		values = c.values(e, c.points(done), done.Values)
	}
	if len(values) == 1 {
		return first(done.Trials, values[0])
	}
	return front(done.Trials, values)
}

// likeliest returns the trial that is most likely to be feasible, or none where feasibility
// is not modelled.
func (c *Chooser) likeliest(done model.Completed, e *model.Engine) []int {
	if len(done.Trials) == 0 || len(e.Event.Surfaces) == len(c.spec.Objectives) {
		return nil
	}
	mean, _ := e.Predict(len(c.spec.Objectives), c.points(done))
	return first(done.Trials, mean)
}

func (c *Chooser) points(done model.Completed) *kernel.Points[float64] {
	return kernel.NewPoints(len(done.Trials), c.spec.Space.Dim(), done.X)
}

// plausibly is how many of its own posterior standard deviations a trial's mean may be
// below the best mean for its measurement to count.
const plausibly = 1

// values returns the values by which trials are recommended, given their measurements.
func (c *Chooser) values(e *model.Engine, points *kernel.Points[float64], measured [][]float64) [][]float64 {
	out := make([][]float64, len(c.spec.Objectives))
	for j := range out {
		mean, variance := e.Predict(j, points)
		switch {
		case c.options.Recommend == ByLower:
			for i := range mean {
				mean[i] -= c.width(e, j, 0) * math.Sqrt(variance[i])
			}
		case c.options.Recommend == Plausible && len(out) == 1:
			best := slices.Max(mean)
			for i, m := range mean {
				if mean[i] = measured[j][i]; m < best-plausibly*math.Sqrt(variance[i]) {
					mean[i] = math.Inf(-1)
				}
			}
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
