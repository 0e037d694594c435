package sketch

import (
	"context"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// path is what BLESS and BLESSR have in common: the λ_h, and the rows of
// the candidates.
type path struct {
	k       kernel.Kernel
	src     kernel.Source
	lambdas []float64
	budget  int
	workers int

	// gathered are the rows that any level may need, in the order of index, of
	// a source that is not resident.
	gathered kernel.Rows
	index    []int
}

// pathSettings are those that BLESS and BLESSR share.
type pathSettings struct {
	step, start, bound float64
	maxPoints          int
}

// leastStep keeps paths from having thousands of levels.
const leastStep = 1.01

// lambdaPath returns λ_1 > … > λ_H = λ with λ_h = λ_0(λ/λ_0)^{h/H},
// H = ⌈log_q(λ_0/λ)⌉, at least λ itself.
func lambdaPath(start, lambda, step float64) []float64 {
	length := math.Log(start) - math.Log(lambda) // λ_0/λ may overflow
	h := max(1, int(math.Ceil(length/math.Log(step)-1e-9)))
	out := make([]float64, h)
	for i := range out {
		out[i] = start * math.Exp(-length*float64(i+1)/float64(h))
	}
	out[h-1] = lambda
	return out
}

// newPath checks what both algorithms are given and lays out the λ_h.
func newPath(what string, k kernel.Kernel, src kernel.Source, lambda float64, s pathSettings, workers int) (*path, float64, error) {
	if err := checkSampling(what, k, src, lambda); err != nil {
		return nil, 0, err
	}
	step, err := orDefault(what, "Step", s.step, defaultStep, leastStep)
	if err != nil {
		return nil, 0, err
	}
	if err := checkCount(what, "MaxPoints", s.maxPoints); err != nil {
		return nil, 0, err
	}
	bound, err := boundOf(what, k, s.bound)
	if err != nil {
		return nil, 0, err
	}
	start, err := orDefault(what, "Start", s.start, bound, 0)
	if err != nil {
		return nil, 0, err
	}
	p := &path{k: k, src: src, lambdas: lambdaPath(start, lambda, step), budget: s.maxPoints, workers: workers}
	return p, bound, nil
}

// gather reads the candidates of all levels in one pass, unless rows can be had
// one by one.
func (p *path) gather(ctx context.Context, candidates [][]int) error {
	if _, ok := p.src.(kernel.Resident); ok {
		return nil
	}
	p.index, _ = counted(slices.Concat(candidates...))
	var err error
	p.gathered, err = selectRows(ctx, p.k, p.src, p.index)
	return err
}

// rows returns the given rows of the source.
func (p *path) rows(ctx context.Context, idx []int) (kernel.Rows, error) {
	if p.gathered == nil {
		return selectRows(ctx, p.k, p.src, idx)
	}
	at := make([]int, len(idx))
	for i, v := range idx {
		at[i], _ = slices.BinarySearch(p.index, v)
	}
	return p.gathered.Select(at), nil
}

// scores returns ℓ̃_J(x_u, λ) of the candidates u by the level before, J.
func (p *path) scores(ctx context.Context, j Level, lambda float64, u []int) ([]float64, error) {
	g, err := NewGenerator(p.k, j.Points, j.Weights, lambda, p.src.Len())
	if err != nil {
		return nil, err
	}
	rows, err := p.rows(ctx, u)
	if err != nil {
		return nil, err
	}
	return g.scoresOf(ctx, rows, u, p.workers)
}

// walk makes the levels one after the other by next, which gets the number of
// the level and the one before, and ends early when the budget is spent.
func (p *path) walk(ctx context.Context, next func(h int, before Level) (Level, error)) (*Dictionary, error) {
	var levels []Level
	var at Level
	for h, lambda := range p.lambdas {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		level, err := next(h, at)
		if err != nil {
			return nil, err
		}
		if p.budget > 0 && level.Len() > p.budget {
			if len(levels) == 0 {
				return nil, &BudgetError{Budget: p.budget, Points: level.Len()}
			}
			break
		}
		level.Lambda = lambda
		if level.Points, err = p.rows(ctx, level.Indices); err != nil {
			return nil, err
		}
		levels, at = append(levels, level), level
	}
	return &Dictionary{Level: at, N: p.src.Len(), Path: levels}, nil
}
