package prune

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

// The slow twins decide from the whole history by the definitions in the package
// documentation. They share with the pruners the reading of options, the schedule of steps,
// and the draw of brackets, which have tests of their own.

// twin decides about trial n of a history.
type twin func(history []study.Trial, n int) bool

// twinOf returns the twin of a pruner.
func twinOf(p Pruner) twin {
	switch f := p.(type) {
	case *fold[progress]:
		return f.rule.(*percentile).slow
	case *fold[climb]:
		return f.rule.(*halving).slow
	case *fold[breach]:
		return f.rule.(*threshold).slow
	case *fold[plateau]:
		return f.rule.(*patience).slow
	default:
		return nil
	}
}

type stepLoss struct {
	step int64
	loss float64
}

// curve returns the losses of a trial's last attempt, in order of steps.
func curve(m metric, t study.Trial, nan bool) (out []stepLoss) {
	for _, r := range t.Reports {
		if r.Epoch != t.Epoch {
			continue
		}
		for _, v := range r.Values {
			if v.Name == m.name && (nan || !math.IsNaN(v.Value)) {
				sign := 1.0
				if m.direction == study.Maximize {
					sign = -1
				}
				out = append(out, stepLoss{r.Step, sign * v.Value})
			}
		}
	}
	slices.SortFunc(out, func(a, b stepLoss) int { return int(a.step - b.step) })
	return out
}

func (p *percentile) slow(history []study.Trial, n int) bool {
	t := history[n]
	step, best := int64(-1), math.Inf(1)
	for _, x := range curve(p.metric, t, false) {
		best = min(best, x.loss)
		if x.step >= p.schedule.warmup && (x.step-p.schedule.warmup)%p.schedule.interval == 0 {
			step = x.step
		}
	}
	var others []float64
	for _, o := range history {
		for _, x := range curve(p.metric, o, false) {
			if o.State == study.Completed && x.step == step {
				others = append(others, x.loss)
			}
		}
	}
	if t.State != study.Running || step < 0 || len(others) < p.least {
		return false
	}
	slices.Sort(others)
	x := p.part * float64(len(others)-1)
	k := int(math.Floor(x))
	cutoff := others[k]
	if x > float64(k) && others[k+1] != cutoff {
		cutoff = others[k]*(1-(x-float64(k))) + others[k+1]*(x-float64(k))
	}
	return best > cutoff && !p.streak.slow(history, n)
}

// slow is spares for the whole history.
func (s *streak) slow(history []study.Trial, n int) bool {
	last, stopped := study.Position(0), 0
	for _, t := range history {
		if t.State == study.Completed {
			last = max(last, t.EndPosition())
		}
		if t.State == study.Running && t.Number < n {
			return false // it is the older one
		}
	}
	for _, t := range history {
		if t.State == study.Pruned && t.EndPosition() > last {
			stopped++
		}
	}
	return s.most > 0 && stopped >= s.most
}

func (h *halving) slow(history []study.Trial, n int) bool {
	t := history[n]
	if t.State != study.Running {
		return false
	}
	rungs := h.brackets[h.bracketOf(n)].rungs
	for k := len(rungs) - 1; k >= 0; k-- {
		end := int64(math.MaxInt64)
		if k+1 < len(rungs) {
			end = rungs[k+1].resource
		}
		first := func(t study.Trial) (stepLoss, bool) {
			for _, x := range curve(h.metric, t, false) {
				if x.step >= rungs[k].resource && x.step < end {
					return x, true
				}
			}
			return stepLoss{}, false
		}
		entry, ok := first(t)
		if !ok {
			continue
		}
		best := math.Inf(1)
		for _, x := range curve(h.metric, t, false) {
			if x.step >= entry.step {
				best = min(best, x.loss)
			}
		}
		count, better := 0, 0
		for _, o := range history {
			there := o.State == study.Running || o.State == study.Completed || o.State == study.Pruned
			x, ok := first(o)
			if !ok || !there || h.bracketOf(o.Number) != h.bracketOf(n) {
				continue
			}
			count++
			if x.loss < best {
				better++
			}
		}
		return count >= h.least && better >= max(1, count/h.factor)
	}
	return false
}

func (r *threshold) slow(history []study.Trial, n int) bool {
	for _, x := range curve(r.metric, history[n], true) {
		due := x.step >= r.schedule.warmup && (x.step-r.schedule.warmup)%r.schedule.interval == 0
		if due && !(r.lower <= x.loss && x.loss <= r.upper) {
			return history[n].State == study.Running
		}
	}
	return false
}

func (p *patience) slow(history []study.Trial, n int) bool {
	values := curve(p.metric, history[n], true)
	if history[n].State != study.Running || len(values) == 0 {
		return false
	}
	best, since, last := math.Inf(1), values[0].step, values[len(values)-1].step
	for _, x := range values {
		if x.loss < best-p.delta {
			best, since = x.loss, x.step
		}
	}
	return last >= p.warmup && last-since >= p.steps
}
