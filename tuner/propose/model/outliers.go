package model

import (
	"slices"

	"github.com/bkbtuner/bkb/bandit"
)

// Outliers are results that the model of the one objective leaves out, because their
// measurement says nothing about their place. Examples are a crashed measurement that
// returned 1e30, and a job whose machine was overloaded.
type Outliers struct {
	// Limit is the value below which a result may be an outlier. Larger is better.
	Limit float64 `json:"limit"`
	// Center is the value from which badness is measured, and Jump how many times as bad as
	// its neighbours an outlier is at least.
	Center float64 `json:"center"`
	Jump   float64 `json:"jump"`
	// Results are those of the model event, as numbers in the order of the log.
	Results []int `json:"results,omitempty"`
}

// A result is an outlier if it is outlierAt robust standard deviations of thinned results
// below their median, and if at most aliens of its outlierNear nearest results are. So a
// region of bad values is none. It must also be outlierJump times as far below the median as
// the worst of the others among these, so that a steep slope has none. Thinned results are
// spread over the space, and values of one basin do not make the others extreme. There is no
// outlier among fewer than outlierFrom thinned results.
const (
	outlierAt   = 50
	outlierJump = 30
	outlierNear = 8
	aliens      = 1
	outlierFrom = 6
	// mostCompared is how many results a suspect is compared with, for the sake of time.
	mostCompared = 4096
)

// outliers returns the outliers among the results in list, nil if there cannot be any.
func (a *builder) outliers(list []Result) *Outliers {
	if a.objectives > 1 {
		return nil
	}
	var values []float64
	for _, i := range a.thin(list) {
		values = append(values, list[i].Y[0].Value)
	}
	if len(values) < outlierFrom {
		return nil
	}
	t := newTarget(values, false)
	o := &Outliers{Limit: clampFinite(t.Center - outlierAt*t.Spread), Center: t.Center, Jump: outlierJump}
	for i := range list {
		if o.includes(a, list, i) {
			o.Results = append(o.Results, i)
		}
	}
	return o
}

// includes reports whether a result is an outlier among those in list.
func (o *Outliers) includes(a *builder, list []Result, i int) bool {
	if o == nil || list[i].Y == nil || list[i].Low != nil || !(list[i].Y[0].Value < o.Limit) {
		return false
	}
	var others []int
	var nearness []float64
	every := (len(list) + mostCompared - 1) / mostCompared
	for k := 0; k < len(list); k += every {
		if k != i && list[k].Y != nil {
			others, nearness = append(others, k), append(nearness, -a.distance(list[i].X, list[k].X))
		}
	}
	if len(others) < outlierNear {
		return false
	}
	bad, worst := 0, o.Center
	for _, k := range pick(others, bandit.Largest(nearness, outlierNear)) {
		if v := list[k].Y[0].Value; v < o.Limit {
			bad++
		} else {
			worst = min(worst, v)
		}
	}
	steep := o.Center/2-clampFinite(list[i].Y[0].Value)/2 < o.Jump*(o.Center/2-worst/2)
	return bad <= aliens && !steep
}

// distance returns the squared distance of two points, where categories that differ are 1 apart.
func (a *builder) distance(x, y []float64) float64 {
	sum := 0.0
	for c, ordered := range a.orderedAxes() {
		if d := x[c] - y[c]; ordered {
			sum += d * d
		} else if d != 0 {
			sum++
		}
	}
	return sum
}

// regular returns the results without outliers.
func (o *Outliers) regular(list []Result) []Result {
	if o == nil || len(o.Results) == 0 {
		return list
	}
	out := make([]Result, 0, len(list))
	for i := range list {
		if _, is := slices.BinarySearch(o.Results, i); !is {
			out = append(out, list[i])
		}
	}
	return out
}
