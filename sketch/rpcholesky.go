package sketch

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/stream"
)

// RPCholesky is randomly pivoted Cholesky (Chen, Epperly, Tropp and Webber, 2022). It draws each
// point in proportion to what is left of the diagonal of K − K_nM K_MM⁻¹ K_Mn, so that it finds
// rare rows, and leaves out those that the points before explain. Proposals are drawn in blocks
// and accepted by rejection, which has the same distribution (Epperly, Tropp and Webber, 2024).
// Neither the order nor the points depend on λ, and equal streams give the first M of one order.
//
// Rows stand for the rows nearest to them in the norm of the kernel, so A_j = 1/n_j for the
// number n_j of these. M points of n rows take nM evaluations, nM² operations and nM numbers of
// memory.
type RPCholesky struct {
	// Points is M. A value above n means n. If 0, it is what leaves at most λn of the trace.
	// The dictionary has fewer points if these leave rounding errors only.
	Points int
	// Rows is the largest number of rows to choose from, or 0 for no limit. They are the first
	// of a random order.
	Rows int
	// Workers is the number of goroutines, or 0 for one per processor.
	Workers int
}

const (
	// pivotBlock is the number of proposals at a time.
	pivotBlock = 64
	// leastLeft is the part of the trace that is rounding errors.
	leastLeft = 1e-13
)

func (c RPCholesky) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error) {
	if err := checkSampling("RPCholesky", k, src, lambda); err != nil {
		return nil, err
	}
	for _, field := range []struct {
		name  string
		value int
	}{{"Points", c.Points}, {"Rows", c.Rows}} {
		if err := checkCount("RPCholesky", field.name, field.value); err != nil {
			return nil, err
		}
	}
	n, order := src.Len(), stream.NewPermutation(rng.Uint64(), uint64(src.Len()))
	rows := upTo(n)
	if c.Rows > 0 && c.Rows < n {
		for i := range c.Rows {
			rows[i] = int(order.At(uint64(i)))
		}
		rows = prefix(rows, c.Rows)
	}
	x, err := selectRows(ctx, k, src, rows)
	if err != nil {
		return nil, err
	}
	p := &pivots{k: k, x: x, workers: c.Workers, rest: make([]float64, x.Len()), nearest: slices.Repeat([]int{-1}, x.Len()), closest: make([]float64, x.Len())}
	kernel.DiagonalTo(p.rest, k, x)
	if err := checkScores("RPCholesky", p.rest); err != nil {
		return nil, err
	}
	most, enough := len(rows), max(Ridge(lambda, len(rows)), leastLeft*sum(p.rest))
	if c.Points > 0 {
		most, enough = min(c.Points, most), leastLeft*sum(p.rest)
	}
	for len(p.chosen) < most && (len(p.chosen) == 0 || sum(p.rest) > enough) {
		accepted, err := p.propose(rng)
		if err != nil {
			return nil, err
		}
		if len(accepted) == 0 {
			break
		}
		if err := p.eliminate(ctx, accepted[:min(len(accepted), most-len(p.chosen))]); err != nil {
			return nil, err
		}
	}
	return p.dictionary(lambda, rows, n), nil
}

// pivots is a partial Cholesky factorisation K ≈ FFᵀ of the kernel matrix of x.
type pivots struct {
	k       kernel.Kernel
	x       kernel.Rows
	workers int
	rest    []float64                 // diagonal of K − FFᵀ
	factors []blocked.Matrix[float64] // columns of F, a block for each call of eliminate
	chosen  []int
	nearest []int     // the number of the nearest chosen row, −1 for none
	closest []float64 // k(x, z)²/k(z, z) for it
}

// propose returns different rows, drawn one after the other in proportion to what is left of
// the diagonal. It draws the same number of random numbers each time.
func (p *pivots) propose(rng *rand.Rand) ([]int, error) {
	c, q, u := cumulative(p.rest), make([]int, pivotBlock), make([]float64, pivotBlock)
	for i := range q {
		q[i], u[i] = c.draw(rng), rng.Float64()
	}
	h := blocked.New[float64](len(q), len(q), nil)
	if err := kernel.GramianTo(h.Data, p.k, p.x.Select(q)); err != nil {
		return nil, err
	}
	for _, f := range p.factors {
		rows := rowsOf(f, q)
		blocked.Gemm(1, false, rows, true, rows, -1, 1, h)
	}
	var accepted []int
	for i, row := range q {
		if d := h.Data[i*len(q)+i]; d > 0 && p.rest[row] > 0 && (i == 0 || u[i]*p.rest[row] < d) && !slices.Contains(accepted, row) {
			accepted = append(accepted, row)
			pivot := slices.Clone(h.Data[i*len(q):][:len(q)])
			for j := i; j < len(q); j++ {
				for l, v := range pivot {
					h.Data[j*len(q)+l] -= pivot[j] / d * v
				}
			}
		}
	}
	return accepted, nil
}

// eliminate chooses rows.
func (p *pivots) eliminate(ctx context.Context, rows []int) error {
	n, b := p.x.Len(), len(rows)
	points := p.x.Select(rows)
	g, prepared, own := blocked.New[float64](n, b, nil), kernel.Prepare(p.k, points), make([]float64, b)
	kernel.DiagonalTo(own, p.k, points)
	err := eachBlock(ctx, p.k, kernel.FromRows(p.x), 256, p.workers, func(w *workspace, row int, x kernel.Rows) error {
		prepared.Fill(g.Data[row*b:], b, x, 0, x.Len(), &w.Scratch)
		for i := row; i < row+x.Len(); i++ {
			for j, v := range g.Data[i*b:][:b] {
				if near := v * v / own[j]; p.nearest[i] < 0 || near > p.closest[i] {
					p.nearest[i], p.closest[i] = len(p.chosen)+j, near
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range p.factors {
		blocked.Gemm(p.goroutines(), false, f, true, rowsOf(f, rows), -1, 1, g)
	}
	l := rowsOf(g, rows)
	if _, err := factorize(l.Data, make([]float64, b)); err != nil {
		return err
	}
	blocked.SolveLowerRight(p.goroutines(), true, l, g)
	for i := range n {
		for _, v := range g.Data[i*b:][:b] {
			p.rest[i] -= v * v
		}
		p.rest[i] = max(p.rest[i], 0)
	}
	for j, row := range rows {
		p.rest[row], p.nearest[row], p.closest[row] = 0, len(p.chosen)+j, own[j]
	}
	p.factors, p.chosen = append(p.factors, g), append(p.chosen, rows...)
	return nil
}

func (p *pivots) goroutines() int {
	return cmp.Or(max(p.workers, 0), runtime.GOMAXPROCS(0))
}

// dictionary returns the chosen ones of the given rows of a source of n.
func (p *pivots) dictionary(lambda float64, rows []int, n int) *Dictionary {
	counts, order := make([]int, len(p.chosen)), slices.Clone(p.chosen)
	for _, j := range p.nearest {
		counts[j]++
	}
	slices.Sort(order)
	d := &Dictionary{N: n, Rows: len(rows), Residual: sum(p.rest) / float64(len(rows))}
	d.Lambda, d.Points = lambda, p.x.Select(order)
	for _, i := range order {
		d.Indices = append(d.Indices, rows[i])
		d.Weights = append(d.Weights, float64(len(rows))/float64(n*counts[slices.Index(p.chosen, i)]))
	}
	return d
}

// rowsOf returns some rows of a matrix.
func rowsOf(a blocked.Matrix[float64], rows []int) blocked.Matrix[float64] {
	out := blocked.New[float64](len(rows), a.Cols, nil)
	for i, row := range rows {
		copy(out.Data[i*a.Cols:][:a.Cols], a.Data[row*a.Stride:])
	}
	return out
}
