package model

import (
	"cmp"
	"context"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// The far model is a second model of the one objective, of thinned results. Most results crowd
// around the incumbent, so that targets of the model distinguish values there, and all other
// basins look alike. Thinned results have targets of their own, by which other basins differ.
const (
	farFrom   = 40   // results from which on there is a far model
	farApart  = 0.05 // root mean square distance in the cube between thinned results
	farPoints = 192  // thinned results at most
)

// hasFar reports whether there is a far model. Reports, costs and several objectives have
// not been measured with one.
func (a *builder) hasFar(e *Event, c int) bool {
	return a.options.Far && a.objectives == 1 && c >= farFrom && e.Surfaces[0].Fidelity == nil && e.Expense == nil
}

// far makes the far model.
func (a *builder) far(ctx context.Context, list []Result) (*Surface, error) {
	thin := a.thin(list)
	if len(thin) < leastMeasured {
		return nil, nil
	}
	s, err := a.surface(ctx, pick(list, thin), 0, nil, true)
	return &s, err
}

// thin returns which results the far model is made from, ascending. A measured result is
// left out if a better one is within farApart. If there are more than farPoints, the best
// third of that number stays, and others drawn by the study's seed.
func (a *builder) thin(list []Result) []int {
	var order []int
	var values []float64
	for i := range list {
		if list[i].Y != nil {
			order, values = append(order, i), append(values, list[i].Y[0].Value)
		}
	}
	order = pick(order, bandit.Largest(values, len(values)))
	best := farPoints / 3
	if len(order) > maxThinned {
		order = drawn(stream.New(stream.Derive(a.seed, "bkb thin", uint64(len(list)))), order, best, maxThinned)
		slices.SortFunc(order[best:], func(i, k int) int {
			return cmp.Or(cmp.Compare(list[k].Y[0].Value, list[i].Y[0].Value), i-k)
		})
	}
	var kept []int
	for _, i := range order {
		if !slices.ContainsFunc(kept, func(k int) bool { return a.close(list[i].X, list[k].X) }) {
			kept = append(kept, i)
		}
	}
	if len(kept) > farPoints {
		kept = drawn(stream.New(stream.Derive(a.seed, "bkb far", uint64(len(list)))), kept, best, farPoints)
	}
	slices.Sort(kept)
	return kept
}

// maxThinned is how many results are compared with each other, for the sake of time.
const maxThinned = 2048

// close reports whether two points are within farApart. Points with different categories are not.
func (a *builder) close(x, y []float64) bool {
	sum, n := 0.0, 0
	for c, ordered := range a.orderedAxes() {
		switch {
		case ordered:
			sum, n = sum+(x[c]-y[c])*(x[c]-y[c]), n+1
		case x[c] != y[c]:
			return false
		}
	}
	return sum < farApart*farApart*float64(max(n, 1))
}

// orderedAxes reports for each coordinate whether it is ordered.
func (a *builder) orderedAxes() []bool {
	if a.ordered == nil {
		for _, axis := range a.space.Axes() {
			a.ordered = append(a.ordered, axis.Ordered)
		}
	}
	return a.ordered
}

// distant is the far model with the results since its event.
type distant struct {
	posterior *posterior
	kept      []int // results
}

// newDistant returns the far model of an event after the results in list, nil if there is none.
func newDistant(a *builder, e *Event, list []Result) (*distant, error) {
	if e.Far == nil {
		return nil, nil
	}
	var at []int // of the results that are no outliers
	for i := range list {
		if e.Outliers == nil || !slices.Contains(e.Outliers.Results, i) {
			at = append(at, i)
		}
	}
	kept := a.thin(pick(list, at))
	for n, i := range kept {
		kept[n] = at[i]
	}
	p, err := e.Far.posterior(a.space, pick(list, kept), 0, a.options.Cap)
	return &distant{posterior: p, kept: kept}, err
}

// observe adds a result, unless there is a better one close to it.
func (f *distant) observe(a *builder, s *Surface, list []Result, n int) {
	r := &list[n]
	if r.Y == nil {
		return
	}
	for _, k := range f.kept {
		if list[k].Y[0].Value >= r.Y[0].Value && a.close(list[k].X, r.X) {
			return
		}
	}
	f.kept = append(f.kept, n)
	for _, o := range s.samples(r, 0) {
		f.posterior.observe(o)
	}
}

// Far returns the far model as an engine of its own, nil if there is none. It is valid
// until the model changes.
func (e *Engine) Far() *Engine {
	if e.distant == nil {
		return nil
	}
	far := *e
	far.Event.Surfaces = slices.Clone(e.Event.Surfaces)
	far.Event.Surfaces[0] = *e.Event.Far
	far.surfaces = slices.Clone(e.surfaces)
	far.surfaces[0] = e.distant.posterior
	return &far
}

// Kept returns the points of the results that the far model has.
func (e *Engine) Kept() *kernel.Points[float64] {
	out := kernel.NewPoints[float64](len(e.distant.kept), e.builder.space.Dim(), nil)
	for n, i := range e.distant.kept {
		copy(out.Row(n), e.Results.List[i].X)
	}
	return out
}

// Close reports whether two points are too close for the far model to have both.
func (e *Engine) Close(x, y []float64) bool { return e.builder.close(x, y) }
