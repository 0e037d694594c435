package propose

import (
	"context"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Listens implements [Forecaster].
func (b *bkb) Listens() bool { return !b.options.IgnoreReports }

// Forecast implements [Forecaster]: the posterior at full fidelity with the
// reports of this trial, and of no other that runs. The incumbent is the one with
// the best mean among the 32 best results, without those reports. It costs O(m²).
func (b *bkb) Forecast(_ context.Context, v View, trial int, width float64) (Forecast, bool, error) {
	e, err := b.ready(v)
	if e == nil || err != nil || len(b.spec.Objectives) != 1 || len(e.elite.members) == 0 {
		return Forecast{}, false, err
	}
	i := slices.IndexFunc(b.results.pending, func(p pending) bool { return p.trial == trial })
	if i < 0 {
		return Forecast{}, false, nil
	}
	s, run := &e.model.Surfaces[0], &b.results.pending[i]
	told := s.lower(nil, run.x, run.low, 0, foretold)
	if len(told) == 0 {
		return Forecast{}, false, nil
	}
	p := e.surfaces[0].clone()
	for _, o := range told {
		p.observe(o)
	}
	mean, variance := p.predict(kernel.NewPoints(1, len(run.x), run.x))
	sd, t := math.Sqrt(variance[0]), s.Target
	f := Forecast{
		Mean: t.value(mean[0]), StdDev: t.deviation(mean[0], sd),
		Bound: t.value(mean[0] + width*sd), Incumbent: t.value(slices.Max(e.bounds(b).mean)),
	}
	if b.spec.Objectives[0].Direction == study.Minimize {
		f.Mean, f.Bound, f.Incumbent = -f.Mean, -f.Bound, -f.Incumbent
	}
	return f, true, nil
}
