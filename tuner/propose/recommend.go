package propose

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

var (
	_ Anchorer    = (*bkb)(nil)
	_ Recommender = (*bkb)(nil)
	_ Predictor   = (*bkb)(nil)
	_ Diagnoser   = (*bkb)(nil)
	_ Forecaster  = (*bkb)(nil)
)

// ready digests v; the engine is nil if there is no model.
func (b *bkb) ready(v View) (*engine, error) {
	counting, err := b.counting(v)
	if err != nil {
		return nil, err
	}
	if err := b.results.follow(v, counting); err != nil {
		return nil, err
	}
	return b.current(v)
}

// Remake implements [Anchorer].
func (b *bkb) Remake(ctx context.Context, v View, a study.Anchored) ([]byte, error) {
	m, err := decodeModel(a.Model)
	if err != nil {
		return nil, err
	}
	if err := b.results.follow(v, !m.deaf()); err != nil {
		return nil, err
	}
	var before anchored
	if old, ok := v.Anchor(v.Position()); ok {
		if before, err = decodeModel(old.Model); err != nil {
			return nil, err
		}
	}
	c := min(m.Results, b.results.upTo(a.Seen))
	if first := b.first(); first == 0 || c < first {
		return nil, fmt.Errorf("a model event of %d results, where there can be none of so few", c)
	}
	return b.remake(ctx, before, c, m.Version) // the number alone is no difference
}

// Recommend implements [Recommender]: of one objective the best measured of the
// completed trials whose posterior mean is at most plausibly below the best mean, so
// that no lucky draw deceives (or, by the option recommend, the one with the best
// mean or lower bound); of equal ones the first. What was told late counts as measured.
// Of several objectives the trials whose means no other's dominate. Where there are
// constraints, of the trials that keep to them, while there is no model by what was
// measured; and if none does, the one that by the model of feasibility is likeliest to.
func (b *bkb) Recommend(_ context.Context, v View) ([]int, error) {
	e, err := b.ready(v)
	if err != nil || e == nil && len(b.options.Constraints) == 0 {
		return nil, err
	}
	trials, x, values := b.completed(v, true)
	if len(trials) == 0 && e != nil {
		if trials, x, _ = b.completed(v, false); len(trials) == 0 || len(e.surfaces) == b.feasibility() {
			return nil, nil
		}
		mean, _ := e.surfaces[b.feasibility()].predict(kernel.NewPoints(len(trials), b.spec.Space.Dim(), x))
		return first(trials, mean), nil
	}
	if len(trials) == 0 {
		return nil, nil
	}
	if e != nil {
		b.countLate(v, trials, values[0])
		values = b.values(e, kernel.NewPoints(len(trials), b.spec.Space.Dim(), x), values)
	}
	if len(values) == 1 {
		return first(trials, values[0]), nil
	}
	return front(trials, values), nil
}

// completed returns the completed trials, with encoded configurations one after
// another and each objective's measured values; only those that keep to the
// constraints, or all.
func (b *bkb) completed(v View, keeping bool) (trials []int, x []float64, values [][]float64) {
	values = make([][]float64, len(b.spec.Objectives))
	for i := range b.results.list {
		r := &b.results.list[i]
		if r.y == nil || r.epoch > 0 || keeping && !r.feasible {
			continue
		}
		if t, ok := v.Trial(r.trial); !ok || t.State != study.Completed {
			continue
		}
		trials, x = append(trials, r.trial), append(x, r.x...)
		for j, m := range r.y {
			values[j] = append(values[j], m.value)
		}
	}
	return trials, x, values
}

// countLate makes of what completed trials measured of the one objective the means of
// that and of their late results that completed, where those count, each replicate for
// one. So no trial is the best for one draw where there are two.
func (b *bkb) countLate(v View, trials []int, values []float64) {
	if !b.results.counting || v.LateResults() == 0 {
		return
	}
	for i, n := range trials {
		t, _ := v.Trial(n)
		if len(t.Late) == 0 {
			continue
		}
		weight := float64(b.results.measures(t.Outcome)[0].count)
		for _, l := range t.Late {
			y := b.results.measures(l.Outcome)
			if l.Outcome.State != study.Completed || y == nil {
				continue
			}
			more := float64(y[0].count)
			values[i] = values[i]*(weight/(weight+more)) + y[0].value*(more/(weight+more))
			weight += more
		}
	}
}

// plausibly is how many posterior standard deviations of its own a trial's mean may be
// below the best mean for its measurement to be believed.
const plausibly = 1

// values are what trials are recommended by, of what was measured.
func (b *bkb) values(e *engine, points *kernel.Points[float64], measured [][]float64) [][]float64 {
	out := make([][]float64, len(b.spec.Objectives))
	for j := range out {
		mean, variance := e.surfaces[j].predict(points)
		switch {
		case b.options.Recommend == byLower:
			for i := range mean {
				mean[i] -= b.beta(e, j, 0) * math.Sqrt(variance[i])
			}
		case b.options.Recommend == plausible && len(out) == 1:
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

// front returns the trials that no other dominates, ascending.
func front(trials []int, values [][]float64) []int {
	better := func(i, k int) bool {
		strictly := false
		for _, v := range values {
			if v[i] < v[k] {
				return false
			}
			strictly = strictly || v[i] > v[k]
		}
		return strictly
	}
	var members []int
	for i := range trials {
		dominated, keep := false, 0
		for _, m := range members {
			if better(m, i) {
				dominated = true
			}
			if dominated || !better(i, m) {
				members[keep] = m
				keep++
			}
		}
		if members = members[:keep]; !dominated {
			members = append(members, i)
		}
	}
	out := make([]int, 0, len(members))
	for _, m := range members {
		out = append(out, trials[m])
	}
	return out
}

// Predict implements [Predictor].
func (b *bkb) Predict(_ context.Context, v View, configs []space.Config) ([]Prediction, bool, error) {
	e, err := b.ready(v)
	if e == nil || err != nil {
		return nil, false, err
	}
	a := &acquisition{b: b, e: e, surfaces: e.surfaces}
	out := make([]Prediction, len(configs))
	for i, c := range configs {
		x, err := b.results.encode(c)
		if err != nil {
			return nil, false, err
		}
		out[i].Mean, out[i].StdDev = a.explain(x)
	}
	return out, true, nil
}

// Diagnose implements [Diagnoser], for the first objective.
func (b *bkb) Diagnose(_ context.Context, v View) (Diagnosis, error) {
	e, err := b.ready(v)
	if e == nil || err != nil {
		return Diagnosis{}, err
	}
	p, s := e.surfaces[0], &e.model.Surfaces[0]
	gap := 0.0
	if len(b.spec.Objectives) == 1 {
		a := &acquisition{b: b, e: e, surfaces: e.surfaces} // what runs has not shown anything yet
		a.survey(v.Trials())
		gap, _ = a.gap()
	}
	return Diagnosis{
		Results: len(b.results.list), InducingPoints: p.rank(), Capped: e.capped() > 0,
		EffectiveDimension: s.Dimension, InformationGain: p.gain(),
		Noise: s.Target.deviation(s.Mean, math.Sqrt(p.noise)),
		Beta:  b.beta(e, 0, 0), TheoryBeta: b.theory(e, 0), Gap: gap,
		Warnings: b.warnings(e),
	}, nil
}
