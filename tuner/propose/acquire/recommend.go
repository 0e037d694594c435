package acquire

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// Best returns the best trials of v by their measurements. Equal configurations count once, with
// the mean of their measurements. The trials that break the constraints least are compared, which
// are those that keep them if some do. For one objective it returns the first trial with the best
// mean, for several those that no other dominates.
func Best(v model.View, constraints []model.Constraint) []int {
	return bestOf(model.NewPool(v, constraints, nil).Least())
}

func bestOf(list []model.Pooled) []int {
	values := make([][]float64, len(list))
	for i, one := range list {
		values[i] = one.Values
	}
	return bestBy(list, values)
}

// bestBy returns the trial with the largest value, or those that no other dominates in several.
func bestBy(list []model.Pooled, values [][]float64) []int {
	if len(list) > 0 && len(values[0]) == 1 {
		best := 0
		for i, v := range values {
			if v[0] > values[best][0] || v[0] == values[best][0] && list[i].Trial < list[best].Trial {
				best = i
			}
		}
		return []int{list[best].Trial}
	}
	var front []int
	for i, one := range list {
		if !slices.ContainsFunc(values, func(v []float64) bool { return bandit.Covers(v, values[i]) && !bandit.Covers(values[i], v) }) {
			front = append(front, one.Trial)
		}
	}
	return front
}

// Recommend reads v and returns a function that returns its best trials. The function costs
// O(nm) for n trials. It uses neither v nor the model e, so both may change meanwhile.
//
// The trials are those of [Best], but outliers are not compared unless nothing else keeps the
// constraints, because the model expects far better values at their place. For one objective, where the
// model sees noise, the posterior mean at the configurations decides in place of the measured
// mean. For several objectives the posterior means decide.
func (c *Chooser) Recommend(v model.View, e *model.Engine) func() []int {
	pool := model.NewPool(v, e.Constraints(), e.LeavesOut())
	list := pool.Least()
	if len(list) == 0 || list[0].Violation > 0 {
		pool = model.NewPool(v, e.Constraints(), nil)
		list = pool.Least()
	}
	if len(list) == 0 || c.byMeasured(e) {
		return func() []int { return bestOf(list) }
	}
	m := e.Detach()
	return func() []int {
		best, measured := bestBy(list, c.means(m, list)), bestOf(list)
		if len(c.spec.Objectives) > 1 {
			return best
		}
		value := func(trial int) float64 {
			return list[slices.IndexFunc(list, func(p model.Pooled) bool { return p.Trial == trial })].Values[0]
		}
		if value(measured[0])-value(best[0]) > luckily*pool.Repeats.Most() {
			return measured // repetitions show that it was no luck
		}
		return best
	}
}

// means returns the means by the model of configurations.
func (c *Chooser) means(e *model.Outlook, list []model.Pooled) [][]float64 {
	x := make([][]float64, len(list))
	for i, one := range list {
		x[i] = make([]float64, c.spec.Space.Dim())
		if err := c.spec.Space.Encode(one.Config, x[i]); err != nil {
			panic("acquire: a trial: " + err.Error())
		}
	}
	return meansOf(e, len(c.spec.Objectives), x)
}

// Noise below little, in units of the variance of targets, hardly changes which trial is the best.
// luckily is how many standard deviations of the noise two measurements of equal configurations
// may differ by.
const (
	little  = 0.01
	luckily = 2 * math.Sqrt2
)

// byMeasured reports whether the measurements decide, without the model.
func (c *Chooser) byMeasured(e *model.Engine) bool {
	return len(c.spec.Objectives) == 1 && (c.options.Exact || e.Event.Surfaces[0].Noise < little)
}
