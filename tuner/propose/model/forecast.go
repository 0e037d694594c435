package model

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Forecast predicts the outcome of one running trial, in the objective's unit.
type Forecast struct {
	Mean, StdDev float64 // of its value at the end, without noise
	Bound        float64 // the optimistic one
	Incumbent    float64 // the mean at the best of the trials that have outcomes
}

// Forecast predicts the outcome of the one objective of a running trial. It is the
// posterior at full fidelity with the reports of this trial, without those of other running
// ones. Its bound is width standard deviations better than its mean. The caller sets the
// incumbent. If the trial is not running or has not reported, ok is false. It costs O(m²).
func (e *Engine) Forecast(trial int, width float64) (f Forecast, ok bool) {
	i := slices.IndexFunc(e.Results.Pending, func(p Pending) bool { return p.Trial == trial })
	if i < 0 {
		return f, false
	}
	s, run := &e.Event.Surfaces[0], &e.Results.Pending[i]
	told := s.lower(nil, run.X, run.Low, 0, foretold)
	if len(told) == 0 {
		return f, false
	}
	p := e.surfaces[0].fork()
	for _, o := range told {
		p.observe(o)
	}
	mean, variance := p.predict(kernel.NewPoints(1, len(run.X), run.X))
	sd := math.Sqrt(variance[0])
	return Forecast{
		Mean: e.expected(0, mean[0]), StdDev: s.Target.Deviation(mean[0], sd), Bound: e.Show(0, mean[0]+width*sd),
	}, true
}
