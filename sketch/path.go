package sketch

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// path is the common part of BLESS and BLESSR, the λ_h and the rows of the candidates.
type path struct {
	k       kernel.Kernel
	src     kernel.Source
	lambdas []float64
	budget  int // MaxPoints
	limit   int // MaxCandidates
	workers int

	seen []int // the rows that levels have read, increasing

	// gathered are the rows that any level may need, in the order of index, of
	// a source that is not resident.
	gathered kernel.Rows
	index    []int
}

// pathSettings are the settings that BLESS and BLESSR share.
type pathSettings struct {
	step, bound              float64
	maxPoints, maxCandidates int
}

// drawn is a level with the facts of its draw.
type drawn struct {
	Level
	// want is the size of the draw that q₂ asks for at λ_h. got is the actual size,
	// which is less if the budget ended the draw. For BLESS it is the number of draws,
	// for BLESSR the expected number of points.
	want, got float64
	last      bool // the level ends the path
	// chances are the probabilities of the points to be in the level. scores are the
	// scores by which they were drawn, one for each point.
	chances, scores []float64
	gram            []float64 // K_JJ, nil if J is empty
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

// newPath checks the arguments of both algorithms and computes the λ_h.
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
	if err := checkCount(what, "MaxCandidates", s.maxCandidates); err != nil {
		return nil, 0, err
	}
	bound, err := boundOf(what, k, s.bound)
	if err != nil {
		return nil, 0, err
	}
	p := &path{k: k, src: src, lambdas: lambdaPath(bound, lambda, step), budget: s.maxPoints, limit: s.maxCandidates, workers: workers}
	return p, bound, nil
}

// prefixes returns the candidates of levels of the given sizes, if these may be more
// rows in all than allowed, as prefixes of one random order. Otherwise it returns room for
// candidates, and false. The sizes are the largest ones, or expected ones if about is set.
func (p *path) prefixes(sizes []int, about bool, rng *rand.Rand) (candidates [][]int, limited bool) {
	candidates = make([][]int, len(sizes))
	total := 0.0
	for _, r := range sizes {
		total += float64(r)
	}
	if p.limit == 0 || p.limit >= p.src.Len() || !about && total <= float64(p.limit) {
		return candidates, false
	}
	order := choose(p.src.Len(), p.limit, rng)
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for h, r := range sizes {
		candidates[h] = order[:min(r, p.limit)]
	}
	return candidates, true
}

// room is the largest number of points of a level, or 0 for no limit. enough is the expected
// number of points that ends the path, which is less than all before the last level.
type room struct {
	most   int
	enough float64
}

func (p *path) room(h int) room {
	r := room{p.budget, full * float64(p.budget)}
	if h == len(p.lambdas)-1 {
		r.enough = float64(p.budget)
	}
	return r
}

const full = 0.95

// gather reads the candidates of all levels in one pass, unless the source gives single rows.
func (p *path) gather(ctx context.Context, candidates [][]int) error {
	if _, ok := p.src.(kernel.Resident); ok {
		return nil
	}
	for h, u := range candidates {
		if h == 0 || !sameSlice(u, candidates[h-1]) {
			values, _ := counted(u, p.src.Len())
			p.index = union(p.index, values)
		}
	}
	var err error
	p.gathered, err = selectRows(ctx, p.k, p.src, p.index)
	return err
}

// rows returns a copy of the given rows of the source.
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

// candidates returns rows to score, in place if they are all of a source in memory.
func (p *path) candidates(ctx context.Context, idx []int) (kernel.Rows, error) {
	if all, ok := p.src.(kernel.Resident); ok && len(idx) == p.src.Len() { // different rows, so all
		return allRows(ctx, p.k, all)
	}
	return p.rows(ctx, idx)
}

// scores returns ℓ̃_J(x_u, λ) of the candidates u by the previous level, J, where nil
// means no level. It takes the level's Gram matrix.
func (p *path) scores(ctx context.Context, before *drawn, lambda float64, u []int) ([]float64, error) {
	if err := checkLambda("Generator", lambda, p.src.Len()); err != nil {
		return nil, err
	}
	p.seen = union(p.seen, u)
	rows, err := p.candidates(ctx, u)
	if err != nil {
		return nil, err
	}
	g := &Generator{k: p.k, ridge: Ridge(lambda, p.src.Len())}
	if before != nil && before.Len() > 0 {
		g.points, g.m, g.l = before.Points, before.Len(), before.gram
		before.gram = nil
		if err := g.factorize(before.Weights); err != nil {
			return nil, err
		}
	}
	return g.scoresOf(ctx, rows, u, p.workers)
}

// walk makes the levels one after the other by next, which gets the number of the level
// and the previous level, nil at first. It ends early when the budget is used up.
func (p *path) walk(ctx context.Context, next func(h int, before *drawn) (*drawn, error)) (*Dictionary, error) {
	var levels []Level
	var before *drawn
	for h := 0; h < len(p.lambdas); h++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		level, err := next(h, before)
		if err != nil {
			return nil, err
		}
		level.Lambda = p.reached(h, before, level)
		if level.Points, err = p.rows(ctx, level.Indices); err != nil {
			return nil, err
		}
		if level.Len() > 0 {
			if err := level.estimate(p.k, p.src.Len()); err != nil {
				return nil, err
			}
		}
		levels, before = append(levels, level.Level), level
		if level.last {
			break
		}
	}
	return &Dictionary{Level: before.Level, N: p.src.Len(), Rows: len(p.seen), Path: levels}, nil
}

// reached returns the λ of level h. That is λ_h, or the λ at which q₂ asks for the
// actual draw if the budget ended it, where the size is taken as a power of λ between levels,
// and as κ²/λ after an empty level or none.
func (p *path) reached(h int, before, level *drawn) float64 {
	lambda := p.lambdas[h]
	switch {
	case level.got >= level.want:
		return lambda
	case h == 0:
		return lambda * (level.want / level.got)
	}
	from, asked := p.lambdas[h-1], before.want
	if level.want <= asked { // by chance, and then little is missing
		return lambda
	}
	step := from / lambda
	share := math.Log(level.want/level.got) / math.Log(step)
	if before.Len() > 0 {
		share = math.Log(level.want/level.got) / math.Log(level.want/asked)
	}
	return lambda * math.Pow(step, min(share, full)) // the path decreases strictly
}

// union returns the different values of a and b, which both increase.
func union(a, b []int) []int {
	if len(a) == 0 {
		return b
	}
	out := make([]int, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		v := min(a[0], b[0])
		if a[0] == v {
			a = a[1:]
		}
		if b[0] == v {
			b = b[1:]
		}
		out = append(out, v)
	}
	return append(append(out, a...), b...)
}

// sameSlice reports whether a and b are the same memory.
func sameSlice(a, b []int) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
