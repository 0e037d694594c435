package prune

import (
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

// percentile is the rule of the pruners "percentile" and "median".
type percentile struct {
	metric   metric
	schedule schedule
	part     float64 // of the completed trials, 0 < part < 1
	least    int
	steps    map[int64]*quantile // losses of completed trials
	streak   streak
}

func newPercentile(o *study.Options, spec study.Spec, chosen bool) Pruner {
	p := &percentile{metric: readMetric(o, spec, false), schedule: readSchedule(o), part: 0.5, steps: make(map[int64]*quantile), streak: readStreak(o)}
	p.least = int(o.Whole("min_trials", 5, 1, study.MaxTrials))
	if chosen {
		x := o.Number("percentile", 50)
		if !(x > 0 && x < 100) {
			o.Fail("pruner.options.percentile", fmt.Sprint(x), "must be above 0 and below 100", "")
		}
		p.part = x / 100
	}
	return newFold(p)
}

// progress notes a trial's best loss and the last step at which it is judged.
type progress struct {
	trial       int
	any, judged bool
	best        float64
	step        int64
}

func (p *percentile) begin(trial int) progress {
	p.streak.begin(trial)
	return progress{trial: trial}
}

func (p *percentile) read(n *progress, r study.Report) {
	x, ok := p.metric.loss(r)
	if !ok {
		return
	}
	if !n.any || x < n.best {
		n.any, n.best = true, x
	}
	if p.schedule.due(r.Step) && (!n.judged || r.Step > n.step) {
		n.judged, n.step = true, r.Step
	}
}

func (p *percentile) withdraw(n *progress) { p.streak.withdraw(n.trial) }

func (p *percentile) finish(_ *progress, t study.Trial) {
	p.streak.finish(&t)
	if t.State != study.Completed {
		return
	}
	for _, r := range t.CurrentReports() {
		x, ok := p.metric.loss(r)
		if !ok || !p.schedule.due(r.Step) {
			continue
		}
		q := p.steps[r.Step]
		if q == nil {
			q = &quantile{part: p.part}
			p.steps[r.Step] = q
		}
		q.add(x)
	}
}

func (p *percentile) judge(n *progress) Verdict {
	q := p.steps[n.step]
	if !n.judged || q == nil || q.len() < p.least {
		return Verdict{}
	}
	cutoff := q.value()
	if !(n.best > cutoff) {
		return Verdict{}
	}
	if p.streak.spares(n.trial) {
		return p.streak.mercy()
	}
	return Verdict{Stop: true, Reason: fmt.Sprintf("the best %s so far, %.6g, is worse than %.6g, the percentile %g of %d completed trials at step %d",
		p.metric.name, p.metric.flip(n.best), p.metric.flip(cutoff), 100*p.part, q.len(), n.step)}
}

// MedianOf returns the median of values, as the pruner "median" computes it. ok is false if
// there are none. A NaN is left out.
func MedianOf(values []float64) (median float64, ok bool) {
	q := quantile{part: 0.5}
	for _, x := range values {
		if !math.IsNaN(x) {
			q.add(x)
		}
	}
	if q.len() == 0 {
		return 0, false
	}
	return q.value(), true
}

// quantile keeps values so that one quantile of them can be read at once.
type quantile struct {
	part float64
	ranking
}

// value returns the quantile. There must be values. It lies between value k and k+1 in order.
func (q *quantile) value() float64 {
	x := q.part * float64(q.len()-1)
	k, fraction := int(x), x-math.Floor(x)
	if fraction == 0 || q.at(k) == q.at(k+1) {
		return q.at(k)
	}
	return q.at(k)*(1-fraction) + q.at(k+1)*fraction // without overflow
}

// ranking is a multiset of numbers without NaN that returns ranks. An insertion moves up to n
// numbers, which takes some 30 µs for 10⁵.
type ranking struct{ sorted []float64 }

func (r *ranking) len() int { return len(r.sorted) }

func (r *ranking) add(x float64) { r.sorted = slices.Insert(r.sorted, r.below(x), x) }

// remove takes out one x that was added.
func (r *ranking) remove(x float64) {
	if at, found := slices.BinarySearch(r.sorted, x); found {
		r.sorted = slices.Delete(r.sorted, at, at+1)
	}
}

// at returns the k-th number in order.
func (r *ranking) at(k int) float64 { return r.sorted[k] }

// below returns how many numbers are less than x.
func (r *ranking) below(x float64) int {
	at, _ := slices.BinarySearch(r.sorted, x)
	return at
}
