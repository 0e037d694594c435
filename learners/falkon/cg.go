package falkon

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/internal/simd"
)

// refreshEvery is the number of iterations after which the residual is computed from
// its definition. It needs no pass of its own.
const refreshEvery = 10

// conjugate is the method of conjugate gradients for WX = B with c columns at once,
// each with its own steps. A column whose residual is small enough drops out.
type conjugate struct {
	apply func(ctx context.Context, dst, u []float64, c int) error
	c     int
	b     []float64
	x, r  []float64
	p     []float64
	left  []int     // columns that have not converged
	norm  []float64 // ‖b‖ of every column
	rr    []float64 // ‖r‖² of every column
	tol   float64
	limit float64 // residual below which rounding may end a column
	spent []bool  // columns that ended because of rounding
	step  int

	best      []float64 // x at the refresh with the least residual
	bestError float64
	grown     int // refreshes in a row in which r was far from b − Wx and grew

	in, out []float64 // memory
}

// newConjugate starts from x, which it keeps, and its residual r = b − Wx.
func newConjugate(apply func(ctx context.Context, dst, u []float64, c int) error, b, x, r []float64, c int, tol, limit float64) *conjugate {
	g := &conjugate{apply: apply, b: b, x: x, r: r, c: c, tol: tol, limit: limit, spent: make([]bool, c)}
	g.norm, g.rr = scales(b, r, c), squares(r, c)
	g.p = append([]float64(nil), r...)
	g.best, g.bestError = append([]float64(nil), x...), g.residual()
	g.retire(upTo(c))
	return g
}

// retire keeps only the columns that must continue.
func (g *conjugate) retire(columns []int) {
	g.left = nil
	for _, k := range columns {
		if !g.spent[k] && !(math.Sqrt(g.rr[k]) <= g.tol*g.norm[k]) {
			g.left = append(g.left, k)
		}
	}
}

func (g *conjugate) residual() float64 { return worst(g.rr, g.norm) }

// worst returns the largest ‖r‖/‖b‖ of a column, of which rr has the squares of ‖r‖.
func worst(rr, norm []float64) float64 {
	largest := 0.0
	for k, square := range rr {
		if e := math.Sqrt(square) / norm[k]; square != 0 && !(e <= largest) {
			largest = e
		}
	}
	return largest
}

func (g *conjugate) done() bool { return len(g.left) == 0 }

// iterate makes one step, with one product by W. It reports false if another preconditioner is
// needed, because W is not positive definite to rounding, or residuals grow twice in a row.
func (g *conjugate) iterate(ctx context.Context) (bool, error) {
	if g.done() {
		return true, nil
	}
	g.step++
	refresh := g.step%refreshEvery == 0
	width := len(g.left)
	if refresh {
		width *= 2
	}
	if err := g.product(ctx, width); err != nil {
		return false, err
	}
	if refresh && !g.refresh(width) {
		return false, nil
	}
	ok := true
	for at, k := range g.left {
		if !g.spent[k] && !g.advance(k, at, width) {
			g.spent[k] = math.Sqrt(g.rr[k]) <= g.limit*g.norm[k]
			ok = ok && g.spent[k]
		}
	}
	if !ok {
		return false, nil
	}
	g.retire(g.left)
	return true, nil
}

// product sets out = W·[p], for the columns p that are left. If width is twice their
// number, it also multiplies their x.
func (g *conjugate) product(ctx context.Context, width int) error {
	q := len(g.x) / g.c
	in, out := simd.Sized(&g.in, q*width), simd.Sized(&g.out, q*width)
	for i := range q {
		for at, k := range g.left {
			in[i*width+at] = g.p[i*g.c+k]
			if width > len(g.left) {
				in[i*width+len(g.left)+at] = g.x[i*g.c+k]
			}
		}
	}
	return g.apply(ctx, out, in, width)
}

// refresh replaces r by b − Wx and records whether it shrinks. If the two differ by more than half
// of the latter, a small residual is at the limit of rounding, and a large one means an
// ill-conditioned W.
func (g *conjugate) refresh(width int) bool {
	lost := false
	for at, k := range g.left {
		col := len(g.left) + at
		change := 0.0
		g.rr[k] = 0
		for i := k; i < len(g.r); i += g.c {
			r := g.b[i] - g.out[i/g.c*width+col]
			change += (r - g.r[i]) * (r - g.r[i])
			g.rr[k] += r * r
			g.r[i] = r
		}
		if !(change <= g.rr[k]/4) {
			g.spent[k] = math.Sqrt(g.rr[k]) <= g.limit*g.norm[k]
			lost = lost || !g.spent[k]
		}
	}
	e := g.residual()
	if lost && !(e <= g.bestError) {
		g.grown++
	} else {
		g.grown = 0
	}
	if e < g.bestError {
		copy(g.best, g.x)
		g.bestError = e
	}
	return g.grown < 2
}

// advance makes the step of column k, where column at of out is W·p.
func (g *conjugate) advance(k, at, width int) bool {
	pr, pwp := 0.0, 0.0
	for i := k; i < len(g.p); i += g.c {
		pr += g.p[i] * g.r[i]
		pwp += g.p[i] * g.out[i/g.c*width+at]
	}
	alpha := pr / pwp
	if !(pwp > 0) || alpha-alpha != 0 {
		return false
	}
	rr := 0.0
	for i := k; i < len(g.p); i += g.c {
		g.x[i] += alpha * g.p[i]
		g.r[i] -= alpha * g.out[i/g.c*width+at]
		rr += g.r[i] * g.r[i]
	}
	beta := 0.0
	if g.rr[k] > 0 {
		beta = rr / g.rr[k]
	}
	for i := k; i < len(g.p); i += g.c {
		g.p[i] = g.r[i] + beta*g.p[i]
	}
	g.rr[k] = rr
	return rr-rr == 0
}

// scales returns ‖b‖ of the columns, or ‖r‖ where ‖b‖ is 0. Residuals are relative to
// it.
func scales(b, r []float64, c int) []float64 {
	out := norms(b, c)
	for k, e := range norms(r, c) {
		if out[k] == 0 {
			out[k] = e
		}
	}
	return out
}

// squares returns Σ a_i² of each of the c columns, and norms returns the roots.
func squares(a []float64, c int) []float64 {
	out := make([]float64, c)
	for i, v := range a {
		out[i%c] += v * v
	}
	return out
}

func norms(a []float64, c int) []float64 {
	out := squares(a, c)
	for i, v := range out {
		out[i] = math.Sqrt(v)
	}
	return out
}
