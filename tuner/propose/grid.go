package propose

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/cells"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// GridOptions are the options of the proposer "grid", in JSON under the names in parentheses.
type GridOptions struct {
	// Points ("points", 1 to 1000, default 10) is how many values a continuous parameter takes, both
	// ends and values at equal distances on its scale, or the middle.
	Points int
	// Levels ("levels", an object of parameter names and numbers 1 to 1000) is the number for single
	// parameters. It also thins ints, ordinals and stepped floats, which otherwise take all values.
	Levels map[string]int
	// Shuffled ("order", "shuffled", the default, or "lexicographic") is an order by the study's seed.
	// In lexicographic order the last parameter changes fastest, and parameters that depend on one
	// come right after it.
	Shuffled bool
}

func parseGridOptions(text string, sp *space.Space) (GridOptions, error) {
	o := study.ReadOptions("proposer.options", text)
	g := GridOptions{Points: int(o.Whole("points", 10, 1, cells.MaxPoints)), Levels: make(map[string]int)}
	g.Shuffled = o.Choice("order", "shuffled", "lexicographic") == "shuffled"
	if raw, given := o.Take("levels"); given {
		numbers := o.Object("proposer.options.levels", raw)
		for _, name := range slices.Sorted(maps.Keys(numbers)) {
			number := numbers[name]
			field := "proposer.options.levels." + name
			p, ok := sp.Lookup(name)
			switch {
			case !ok:
				o.Fail(field, string(number), "there is no such parameter", "")
			case p.Type == space.TypeCategorical || p.Type == space.TypeConstant:
				o.Fail(field, string(number), "the values of a "+p.Type.String()+" are not thinned", "list fewer values in the space")
			}
			g.Levels[name] = int(o.ParseWhole(field, number, 1, cells.MaxPoints))
		}
	}
	return g, o.Finish(Grid)
}

// grid is the proposer "grid". Cells are numbered in the order of their suggestion.
type grid struct {
	space       *space.Space
	constrained bool
	cells       *cells.Cells
	order       *stream.Permutation // nil if lexicographic
	history     history
}

func newGrid(spec study.Spec, o GridOptions) (Proposer, error) {
	c, err := cells.Of(spec.Space, o.Points, o.Levels)
	if err != nil {
		return nil, err
	}
	g := &grid{space: spec.Space, constrained: len(spec.Space.Constraints()) > 0, cells: c}
	if n := min(c.Total(), checkedCells); g.constrained && !g.any(n) {
		rule := "no cell of the grid keeps the constraints of the space"
		if n < c.Total() {
			rule += fmt.Sprintf(", of %d that were tried", n)
		}
		return nil, &study.InvalidError{Field: "proposer.name", Value: Grid, Rule: rule, Remedy: "take more points, or use sobol"}
	}
	if o.Shuffled {
		p := stream.NewPermutation(stream.Derive(spec.Seed, Grid, 0), c.Total())
		g.order = &p
	}
	return g, nil
}

// checkedCells is how many cells of a grid are checked at its creation. Where fewer keep the
// constraints, an ask would look for one for hours.
const checkedCells = 100_000

// any reports whether one of n cells, all over the grid, keeps the constraints of the space.
func (g *grid) any(n uint64) bool {
	order := stream.NewPermutation(0, g.cells.Total())
	for i := range n {
		if g.space.Validate(g.cells.At(order.At(i))) == nil {
			return true
		}
	}
	return false
}

func (g *grid) Propose(ctx context.Context, v View, n int) (Proposal, error) {
	g.history.follow(v)
	b := g.history.batch()
	var p Proposal
	for number := g.history.next; number < g.cells.Total() && len(p.Suggestions) < n; number++ {
		if err := ctx.Err(); err != nil {
			return Proposal{}, err
		}
		c := g.at(number)
		if g.constrained && g.space.Validate(c) != nil || b.has(c) {
			continue
		}
		b.add(c)
		p.Suggestions = append(p.Suggestions, study.Suggestion{Config: c, Seed: number, Seen: v.Position(), Phase: study.PhaseStart})
	}
	if len(p.Suggestions) == 0 && n > 0 {
		return Proposal{}, ErrExhausted
	}
	return p, nil
}

func (g *grid) at(number uint64) space.Config {
	if g.order != nil {
		number = g.order.At(number)
	}
	return g.cells.At(number)
}
