package model

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Repeats is what repeated measurements say about the noise of the first objective. They
// are replicates of a trial, told standard errors, and several results of one
// configuration.
type Repeats struct {
	Freedom int     // degrees of freedom, 0 if nothing was repeated
	Within  float64 // sum of squared deviations from the mean of each configuration

	seen map[uint64]moments // by configuration
}

// moments are those of the measurements of one configuration.
type moments struct{ count, mean float64 }

// Repeated returns how often something was repeated, in degrees of freedom.
func (e *Engine) Repeated() int {
	return e.Results.Repeats.Freedom
}

// add counts a measurement of a configuration.
func (r *Repeats) add(configuration uint64, m Measure) {
	if math.IsInf(m.Value, 0) {
		return
	}
	n := float64(max(m.Count, 1))
	if !math.IsNaN(m.StdErr) {
		r.Freedom, r.Within = r.Freedom+1, r.Within+n*m.StdErr*m.StdErr
	} else if m.Count > 1 {
		r.Freedom, r.Within = r.Freedom+m.Count-1, r.Within+m.Within
	}
	before, again := r.seen[configuration]
	if !again {
		if r.seen == nil {
			r.seen = make(map[uint64]moments)
		}
		r.seen[configuration] = moments{n, m.Value}
		return
	}
	all, d := before.count+n, m.Value-before.mean
	r.Freedom, r.Within = r.Freedom+1, r.Within+d*d*before.count*n/all
	r.seen[configuration] = moments{all, before.mean + d*n/all}
}

// unlikely is the probability that the noise exceeds [Repeats.Most].
const unlikely = 0.05

// Most returns an upper limit of the standard deviation of the noise, for normal noise, and
// +Inf if nothing was repeated.
func (r *Repeats) Most() float64 {
	if r.Freedom == 0 {
		return math.Inf(1)
	}
	return math.Sqrt(r.Within / distuv.ChiSquared{K: float64(r.Freedom)}.Quantile(unlikely))
}
