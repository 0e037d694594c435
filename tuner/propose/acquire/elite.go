package acquire

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

const (
	eliteSize = 32
	parents   = 5 // results that are mutated
)

// elite is the set of results that candidates are near to. All keep the constraints. For one
// objective they are the best, best first, for several the front. It is a fold of the results.
type elite struct {
	most        int   // that ranked has of one objective, at least eliteSize
	begun, told int   // of the results that were followed
	ranked      []int // as indices of the results
	stale       int   // suggestions of the model since the last improvement
	good        standing
}

// standing is the prediction of an engine for the elite of one objective, at a number of told
// results.
type standing struct {
	engine         *model.Engine
	told           int
	x              *kernel.Points[float64]
	mean, variance []float64
}

// best returns the largest mean, or −∞ if there is none.
func (s *standing) best() float64 {
	out := math.Inf(-1)
	for _, m := range s.mean {
		out = max(out, m)
	}
	return out
}

// members returns the elite.
func (l *elite) members(objectives int) []int {
	if objectives > 1 {
		return l.ranked
	}
	return l.ranked[:min(len(l.ranked), eliteSize)]
}

// follow adds the new results.
func (l *elite) follow(r *model.Results) {
	if l.begun != r.Begun {
		*l = elite{most: l.most, begun: r.Begun}
	}
	for ; l.told < len(r.List); l.told++ {
		one, better := &r.List[l.told], false
		switch {
		case one.Y == nil || !one.Feasible:
		case len(one.Y) > 1:
			l.addFront(r.List, l.told)
		default:
			better = l.improves(r.List, valueOf(one))
			at, _ := slices.BinarySearchFunc(l.ranked, valueOf(one), func(have int, y float64) int {
				if valueOf(&r.List[have]) >= y {
					return -1
				}
				return 1
			})
			if at < l.most {
				l.ranked = slices.Insert(l.ranked, at, l.told)
				l.ranked = l.ranked[:min(len(l.ranked), l.most)]
			}
		}
		if one.Guided {
			if l.stale++; better {
				l.stale = 0
			}
		}
	}
}

// An improvement is at least a share leastGain of the lead of the best over the last of the best
// topSize.
const (
	topSize   = 8
	leastGain = 1e-3
)

// improves reports whether a value is better than all before by enough to count.
func (l *elite) improves(list []model.Result, y float64) bool {
	if len(l.ranked) == 0 {
		return true
	}
	best, last := valueOf(&list[l.ranked[0]]), valueOf(&list[l.ranked[min(len(l.ranked), topSize)-1]])
	return y > best && y-best > leastGain*(best-last)
}

// valueOf returns the finite value of a result of one objective.
func valueOf(r *model.Result) float64 {
	return min(max(r.Y[0].Value, -math.MaxFloat64), math.MaxFloat64)
}

// addFront adds result i, and keeps the results that no other dominates.
func (l *elite) addFront(list []model.Result, i int) {
	dominates := func(p, q []model.Measure) bool {
		return slices.EqualFunc(p, q, func(a, b model.Measure) bool { return a.Value >= b.Value })
	}
	y := list[i].Y
	if slices.ContainsFunc(l.ranked, func(m int) bool { return dominates(list[m].Y, y) }) {
		return
	}
	l.ranked = append(slices.DeleteFunc(l.ranked, func(m int) bool { return dominates(y, list[m].Y) }), i)
}

// eliteOf returns the elite of an engine's results.
func (c *Chooser) eliteOf(e *model.Engine) []int {
	c.elite.follow(e.Results)
	return c.elite.members(len(c.spec.Objectives))
}

// standing returns the model's prediction for the elite of one objective by the results so far,
// without pending trials.
func (c *Chooser) standing(e *model.Engine) *standing {
	members, good := c.eliteOf(e), &c.elite.good
	if good.engine != e || good.told != c.elite.told {
		*good = standing{engine: e, told: c.elite.told}
		if len(members) > 0 {
			var rows [][]float64
			for _, i := range members {
				rows = append(rows, e.Results.List[i].X)
			}
			good.x = pointsOf(rows)
			good.mean, good.variance = e.Predict(0, good.x)
		}
	}
	return good
}

// pointsOf returns rows, of which there is one at least.
func pointsOf(rows [][]float64) *kernel.Points[float64] {
	return kernel.NewPoints(len(rows), len(rows[0]), slices.Concat(rows...))
}

// running returns the points of pending trials and of those that this acquisition has chosen.
func (a *acquisition) running() [][]float64 {
	var out [][]float64
	for _, p := range a.engine.Results.Pending {
		out = append(out, p.X)
	}
	return append(out, a.chosen...)
}

// parents returns the results with the best posterior means among the elite. For several
// objectives it returns any of the front. As long as no result keeps the constraints, it
// returns those that break them least.
func (a *acquisition) parents(rng *rand.Rand) [][]float64 {
	list, members := a.engine.Results.List, a.eliteOf(a.engine)
	var out [][]float64
	switch n := len(members); {
	case n == 0:
		for _, i := range a.nearest() {
			out = append(out, list[i].X)
		}
	case len(a.spec.Objectives) > 1:
		for range min(2*parents, n) {
			out = append(out, list[members[rng.IntN(n)]].X)
		}
	default:
		good := a.standing(a.engine)
		for _, i := range bandit.Largest(good.mean, parents) {
			out = append(out, good.x.Row(i))
		}
	}
	return out
}

// nearest returns the results that break the constraints least, least first.
func (a *acquisition) nearest() []int {
	var at []int
	var kept []float64
	for i := range a.engine.Results.List {
		r := &a.engine.Results.List[i]
		if excess, ok := a.engine.Excess(r); ok && a.engine.Limited() && r.Y != nil {
			at, kept = append(at, i), append(kept, -excess)
		}
	}
	out := bandit.Largest(kept, parents)
	for n, i := range out {
		out[n] = at[i]
	}
	return out
}
