package acquire

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// Recommend returns the best trials of v, which r is the digest of and e, unless nil,
// the model of. Of one objective it is the best measured of the completed trials whose
// posterior mean is at most plausibly below the best mean, so that no lucky draw
// deceives (or, by the option recommend, the one with the best mean or lower bound); of
// equal ones the first. What was told late counts as measured. Of several objectives
// they are the trials whose means no other's dominate. Where there are constraints it
// is of the trials that keep to them, while there is no model by what was measured; and
// if none does, the one that by the model of feasibility is likeliest to.
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

// likeliest returns the trial that is likeliest to be feasible; none where that is not
// modelled.
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

// plausibly is how many posterior standard deviations of its own a trial's mean may be
// below the best mean for its measurement to be believed.
const plausibly = 1

// values are what trials are recommended by, of what was measured.
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

// first returns the trial with the largest value, of equal ones the one with the
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
