package prune

import (
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/tuner/study"
)

// threshold is the rule of the pruner "threshold".
type threshold struct {
	metric       metric
	schedule     schedule
	lower, upper float64
}

func newThreshold(o *study.Options, spec study.Spec) Pruner {
	r := &threshold{metric: readMetric(o, spec, true), schedule: readSchedule(o)}
	r.lower, r.upper = o.Number("lower", math.Inf(-1)), o.Number("upper", math.Inf(1))
	switch {
	case math.IsInf(r.lower, 0) && math.IsInf(r.upper, 0):
		o.Fail("pruner.options", "no bound", "threshold needs lower, upper or both", "")
	case r.lower > r.upper:
		o.Fail("pruner.options.lower", fmt.Sprint(r.lower), "must not be above upper, "+fmt.Sprint(r.upper), "")
	}
	return newFold(r)
}

// breach notes the first value that was out of bounds, in order of steps.
type breach struct {
	any   bool
	step  int64
	value float64
}

func (r *threshold) begin(int) breach { return breach{} }

func (r *threshold) read(n *breach, report study.Report) {
	x, ok := r.metric.value(report)
	if !ok || !r.schedule.due(report.Step) || x >= r.lower && x <= r.upper {
		return
	}
	if !n.any || report.Step < n.step {
		*n = breach{true, report.Step, x}
	}
}

func (r *threshold) withdraw(*breach)            {}
func (r *threshold) finish(*breach, study.Trial) {}

func (r *threshold) judge(n *breach) Verdict {
	if !n.any {
		return Verdict{}
	}
	return Verdict{Stop: true, Reason: fmt.Sprintf("%s %.6g at step %d is not from %.6g to %.6g", r.metric.name, n.value, n.step, r.lower, r.upper)}
}
