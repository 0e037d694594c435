package prune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

// patience is the rule of the pruner "patience".
type patience struct {
	metric        metric
	steps, warmup int64
	delta         float64
}

func newPatience(o *study.Options, spec study.Spec) Pruner {
	p := &patience{metric: readMetric(o, spec, false), steps: o.Whole("patience_steps", 0, 1, math.MaxInt64), delta: o.Number("min_delta", 0)}
	p.warmup = o.Whole("warmup_steps", 0, 0, math.MaxInt64)
	switch {
	case p.steps == 0:
		o.Fail("pruner.options.patience_steps", "none", "must be given", "give the number of steps without improvement after which a trial stops")
	case p.delta < 0:
		o.Fail("pruner.options.min_delta", fmt.Sprint(p.delta), "must not be negative", "")
	}
	return newFold(p)
}

// plateau notes a trial's values in order of steps, and the best of them.
type plateau struct {
	curve []point
	best  float64 // a loss, +Inf before the first number
	step  int64   // of best, or the first of all
}

type point struct {
	step int64
	loss float64 // or NaN
}

func (p *patience) begin(int) plateau { return plateau{best: math.Inf(1)} }

func (p *patience) read(n *plateau, r study.Report) {
	x, ok := p.metric.value(r)
	if !ok {
		return
	}
	at, _ := slices.BinarySearchFunc(n.curve, r.Step, func(q point, step int64) int { return cmp.Compare(q.step, step) })
	n.curve = slices.Insert(n.curve, at, point{r.Step, p.metric.flip(x)})
	from := at
	if at < len(n.curve)-1 { // It was reported late, so read all values again.
		from = 0
	}
	for i := from; i < len(n.curve); i++ {
		q := n.curve[i]
		if i == 0 {
			n.best, n.step = math.Inf(1), q.step
		}
		if q.loss < n.best-p.delta {
			n.best, n.step = q.loss, q.step
		}
	}
}

func (p *patience) withdraw(*plateau)            {}
func (p *patience) finish(*plateau, study.Trial) {}

func (p *patience) judge(n *plateau) Verdict {
	if len(n.curve) == 0 {
		return Verdict{}
	}
	last := n.curve[len(n.curve)-1].step
	if last < p.warmup || last-n.step < p.steps {
		return Verdict{}
	}
	return Verdict{Stop: true, Reason: fmt.Sprintf("%s has not improved on %.6g since step %d, for %d steps", p.metric.name, p.metric.flip(n.best), n.step, last-n.step)}
}
