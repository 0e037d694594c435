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

// elite is the set of results that candidates are near to. All keep the constraints. For
// one objective they are those with the best targets, for several the front. It is a fold
// of the results under one engine.
type elite struct {
	engine  *model.Engine
	told    int
	members []int // as indices of the results
	scores  []float64
	// The results that break the constraints least are near, least first. They matter
	// until a result keeps them.
	near   []int
	excess []float64
	good   standing
}

// standing is the prediction for the elite of one objective, at a number of told results.
type standing struct {
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

// follow adds the results that the engine has received since.
func (l *elite) follow(e *model.Engine) {
	if l.engine != e {
		*l = elite{engine: e}
	}
	for ; l.told < e.Told(); l.told++ {
		l.add(l.told)
	}
}

func (l *elite) add(i int) {
	r := &l.engine.Results.List[i]
	if r.Y != nil && !r.Feasible && len(l.members) == 0 && l.engine.Limited() {
		l.addNear(i)
	}
	if r.Y == nil || !r.Feasible {
		return
	}
	if len(r.Y) > 1 {
		l.addFront(i)
		return
	}
	score := r.Y[0].Value
	at, _ := slices.BinarySearchFunc(l.scores, score, func(have, s float64) int {
		if have >= s {
			return -1
		}
		return 1
	})
	if at >= eliteSize {
		return
	}
	l.members, l.scores = slices.Insert(l.members, at, i), slices.Insert(l.scores, at, score)
	if len(l.members) > eliteSize {
		l.members, l.scores = l.members[:eliteSize], l.scores[:eliteSize]
	}
}

// addNear keeps the results that break the constraints least.
func (l *elite) addNear(i int) {
	excess, ok := l.engine.Excess(&l.engine.Results.List[i])
	if !ok {
		return
	}
	at, _ := slices.BinarySearch(l.excess, excess)
	if at < parents {
		l.near, l.excess = slices.Insert(l.near, at, i), slices.Insert(l.excess, at, excess)
		n := min(len(l.near), parents)
		l.near, l.excess = l.near[:n], l.excess[:n]
	}
}

// addFront keeps the results that no other dominates.
func (l *elite) addFront(i int) {
	list := l.engine.Results.List
	dominates := func(p, q []model.Measure) bool {
		for j := range p {
			if p[j].Value < q[j].Value {
				return false
			}
		}
		return true
	}
	y := list[i].Y
	if slices.ContainsFunc(l.members, func(m int) bool { return dominates(list[m].Y, y) }) {
		return
	}
	l.members = slices.DeleteFunc(l.members, func(m int) bool { return dominates(y, list[m].Y) })
	l.members = append(l.members, i)
}

// now returns the model's prediction for the elite by the results so far, without pending
// trials.
func (l *elite) now() *standing {
	if l.good.x == nil || l.good.told != l.told {
		var x *kernel.Points[float64]
		for i, m := range l.members {
			row := l.engine.Results.List[m].X
			if x == nil {
				x = kernel.NewPoints[float64](len(l.members), len(row), nil)
			}
			copy(x.Row(i), row)
		}
		l.good = standing{told: l.told, x: x}
		if x != nil && len(l.scores) > 0 { // of one objective
			l.good.mean, l.good.variance = l.engine.Predict(0, x)
		}
	}
	return &l.good
}

// parents returns the results with the best posterior means among the elite. For several
// objectives it returns any of the front. As long as no result keeps the constraints, it
// returns those that break them least.
func (a *acquisition) parents(rng *rand.Rand) [][]float64 {
	good, n := a.elite.now(), len(a.elite.members)
	var out [][]float64
	if n == 0 {
		for _, i := range a.elite.near {
			out = append(out, a.engine.Results.List[i].X)
		}
		return out
	}
	if len(a.spec.Objectives) > 1 {
		for range min(2*parents, n) {
			out = append(out, good.x.Row(rng.IntN(n)))
		}
		return out
	}
	for _, i := range bandit.Largest(good.mean, parents) {
		out = append(out, good.x.Row(i))
	}
	return out
}
