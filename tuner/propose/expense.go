package propose

import (
	"context"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/study"
)

// costSource is where what a trial cost is read from.
type costSource uint8

const (
	costIgnored costSource = iota
	costTold               // study.Outcome.Cost
	costSeconds            // from the last start to the end
)

// of is what a trial cost; 0 if that is not known. A pruned trial's says nothing
// of what its configuration costs, nor does a crashed one's: bad ones would look cheap.
func (c costSource) of(t *study.Trial) float64 {
	switch {
	case c == costIgnored, t.State == study.Pruned, t.State == study.Failed && t.Outcome.Reason == study.FailedCrash:
		return 0
	case c == costTold:
		return t.Outcome.Cost
	case t.Epoch == 0: // it ran elsewhere
		return 0
	default:
		return max(t.Ended.Sub(t.Started).Seconds(), 0)
	}
}

// expense is the number of the surface of costs: after that of feasibility.
func (b *bkb) expense() int { return b.feasibility() + 1 }

// newExpense makes the model of the logarithm of the cost from the one before,
// if there is one; nil as long as fewer than two costs are known.
func (b *bkb) newExpense(ctx context.Context, list []result, old *surface, refit bool) (*surface, error) {
	known := 0
	for i := range list {
		if list[i].cost > 0 {
			known++
		}
	}
	if known < 2 {
		return nil, nil
	}
	s, err := b.newSurface(ctx, list, b.expense(), old, refit || old == nil)
	return &s, err
}

// warnings say what of the study's settings comes to nothing.
func (b *bkb) warnings(e *engine) []string {
	out := b.untold()
	n := len(b.results.list)
	if b.options.Cost != costIgnored && e.expense == nil {
		known := 0
		for i := range b.results.list {
			if b.results.list[i].cost > 0 {
				known++
			}
		}
		what := "were told with a cost"
		if b.options.Cost == costSeconds {
			what = "say how long they ran"
		}
		out = append(out, fmt.Sprintf("the proposer's option cost weighs nothing: %d of %d results %s, and it takes 2 when a model is made", known, n, what))
	}
	if b.spec.MaxCost > 0 && b.results.spent == 0 {
		text := "nothing of the study's max_cost is spent: "
		if costly := b.results.costly; costly > 0 { // a trial that was handed out would have spent it
			text += fmt.Sprintf("the costs that %d of %d results were told with are those of added trials, which do not count towards it", costly, n)
		} else {
			text += fmt.Sprintf("none of %d results was told with a cost, and only told costs count", n)
		}
		if b.options.Cost != costIgnored {
			text += "; costs weigh in full until something is"
		}
		out = append(out, text)
	}
	return out
}

// thrift is how a suggestion weighs costs: score log(u − reference) − power·log
// cost for a bound u above the reference, the best posterior mean, in place of u.
type thrift struct {
	reference float64
	power     float64
}

// spend returns how the next suggestion weighs costs; nil for not at all. The
// power falls from 1 to 0 while the study's MaxCost is spent, if it has one (Lee,
// Perrone, Archambeau and Seeger, Cost-aware Bayesian optimization, 2020).
func (a *acquisition) spend() *thrift {
	if a.e.expense == nil || len(a.e.elite.members) == 0 {
		return nil
	}
	t := &thrift{reference: math.Inf(-1), power: 1}
	for _, m := range a.e.bounds(a.b).mean {
		t.reference = max(t.reference, m)
	}
	if all := a.b.spec.MaxCost; all > 0 {
		t.power = min(max(1-a.b.results.spent/all, 0), 1)
	}
	return t
}

// weigh replaces bounds by scores.
func (t *thrift) weigh(a *acquisition, bounds []float64, x *kernel.Points[float64]) {
	costs, _ := a.e.expense.predict(x)
	target := a.e.model.Expense.Target
	for i, u := range bounds {
		gain := u - t.reference
		score := math.Log(max(gain, 1e-9))
		if gain < 1e-9 {
			score += gain // worse than nothing, by how much
		}
		bounds[i] = score - t.power*target.value(costs[i])
	}
}
