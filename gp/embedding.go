package gp

import (
	"math"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
)

// defaultRankTolerance is the relative pivot below which an inducing point counts as a
// combination of the others.
const defaultRankTolerance = 1e-12

// embedding maps an input to z(x) = L⁻¹k_D(x) ∈ ℝᵐ, with LLᵀ = K_DD for m inducing
// points D. Then z(x)ᵀz(x') is the Nyström approximation of k(x, x'). D is the part of a
// dictionary that a pivoted Cholesky factorisation keeps, until conditional variances are below
// tol of the largest prior variance. An embedding does not change.
type embedding struct {
	k       kernel.Kernel
	radial  kernel.Radial // k, if it is a kernel.Radial and D is dense, else nil
	data    []float64     // D, where radial
	dim     int
	rows    kernel.Rows // D, m rows
	kept    []int       // D's indices in the dictionary
	l       *cholesky
	offered int
	scale   float64 // the largest prior variance of D

	once sync.Once
	prep kernel.Prepared
}

// newEmbedding costs |D|² evaluations and |D|·m² operations.
func newEmbedding(k kernel.Kernel, dictionary kernel.Rows, tol float64) (*embedding, error) {
	a, err := kernel.Gramian(k, dictionary)
	if err != nil {
		return nil, err
	}
	n := dictionary.Len()
	l, kept, err := pivotedCholesky(a, n, tol)
	if err != nil {
		return nil, err
	}
	return assembled(k, dictionary.Select(kept), kept, l, n), nil
}

// assembled builds an embedding from its parts.
func assembled(k kernel.Kernel, rows kernel.Rows, kept []int, l *cholesky, offered int) *embedding {
	e := &embedding{k: k, rows: rows, kept: kept, l: l, offered: offered, dim: rows.Dim()}
	if p, ok := rows.(*kernel.Points[float64]); ok {
		if e.radial, ok = kernel.AsRadial(k); ok {
			e.data = p.Data()[:p.Len()*p.Dim()]
		}
	}
	for i := range rows.Len() {
		e.scale = max(e.scale, k.Diag(rows, i))
	}
	return e
}

// with returns the embedding with one more inducing point, the only row of x, that has the
// embedding z and the residual root². It may share memory with e, which must not grow again.
func (e *embedding) with(x kernel.Rows, z []float64, root float64) (*embedding, error) {
	g := e.copy()
	g.kept, g.offered = append(e.kept, e.offered), e.offered+1
	g.l, g.scale = e.l.bordered(z, root), max(e.scale, e.k.Diag(x, 0))
	if u, ok := e.vector(x); ok {
		g.data = append(e.data, u...)
		g.rows = kernel.NewPoints(e.len()+1, e.dim, g.data)
		return g, nil
	}
	var err error
	g.rows, err = e.rows.Concat(x)
	return g, err
}

// fork returns an embedding that can grow independently of e.
func (e *embedding) fork() *embedding {
	f := e.copy()
	f.kept, f.data = slices.Clip(e.kept), slices.Clip(e.data)
	f.l = &cholesky{n: e.l.n, stride: e.l.stride, data: slices.Clip(e.l.data)}
	return f
}

// copy returns e to be changed, with nothing packed.
func (e *embedding) copy() *embedding {
	return &embedding{
		k: e.k, radial: e.radial, data: e.data, dim: e.dim, rows: e.rows, kept: e.kept, l: e.l, offered: e.offered, scale: e.scale,
	}
}

// prepared returns D, packed for many rows.
func (e *embedding) prepared() kernel.Prepared {
	e.once.Do(func() { e.prep = kernel.Prepare(e.k, e.rows) })
	return e.prep
}

// vector returns the only row of x, where a [kernel.Radial] evaluates rows.
func (e *embedding) vector(x kernel.Rows) (u []float64, ok bool) {
	if e.radial == nil {
		return nil, false
	}
	p, ok := x.(*kernel.Points[float64])
	if !ok {
		return nil, false
	}
	return p.Row(0), true
}

// pairwise returns the embedding without its fast path for dense rows, for inputs
// of another kind than D.
func (e *embedding) pairwise() *embedding {
	g := e.copy()
	g.radial, g.data = nil, nil
	return g
}

// column sets dst to k(x_i, y_j) of one row of x and all rows of y, which may be
// given as xs, len(dst)×d, where they are dense.
func (e *embedding) column(dst []float64, x kernel.Rows, y kernel.Rows, xs []float64) error {
	if u, ok := e.vector(x); ok {
		e.radial.FillRow(dst, u, xs)
	} else if len(dst) > 0 {
		kernel.Prepare(e.k, x).Fill(dst, 1, y, 0, len(dst), new(kernel.Scratch))
	}
	return checkKernel(dst, 1, 0)
}

// one returns the embedding of the only row of x, with room for another coordinate, and
// its prior variance and residual.
func (e *embedding) one(x kernel.Rows) (z []float64, prior, res float64, err error) {
	m := e.len()
	z = make([]float64, m, m+1)
	if u, ok := e.vector(x); ok {
		e.radial.FillRow(z, u, e.data)
	} else if m > 0 {
		e.prepared().Fill(z, m, x, 0, 1, new(kernel.Scratch))
	}
	if err := checkKernel(z, max(m, 1), 0); err != nil {
		return nil, 0, 0, err
	}
	e.l.forward(z)
	prior, res, err = e.residual(x, 0, floats.Dot(z, z))
	return z, prior, res, err
}

// pivotedCholesky factors the part of a, n×n, that it keeps. It overwrites a.
func pivotedCholesky(a []float64, n int, tol float64) (*cholesky, []int, error) {
	perm, prior := make([]int, n), make([]float64, n)
	for i := range n {
		prior[i] = a[i*n+i]
	}
	m := blocked.PivotedCholesky(runtime.GOMAXPROCS(0), blocked.New(n, n, a), tol, perm)
	if err := checkRemainder(a, prior, perm, m); err != nil {
		return nil, nil, err
	}
	c := &cholesky{n: m, stride: m, data: make([]float64, m*m)}
	for i := range m {
		copy(c.data[i*m:i*m+i+1], a[i*n:])
	}
	return c, perm[:m:m], nil
}

// checkedRest is the number of dropped points whose covariances are checked.
const checkedRest = 64

// checkRemainder verifies that the dropped part is about 0, as it is for a positive
// semi-definite matrix. Row r of the factor, of the point perm[r], is below the
// diagonal of a, and the matrix is still above it.
func checkRemainder(a, prior []float64, perm []int, m int) error {
	const what = "conditional variance of inducing points"
	n, scale := len(perm), 0.0
	for _, v := range prior {
		scale = max(scale, math.Abs(v))
	}
	for r := m; r < n; r++ {
		i, row := perm[r], a[r*n:r*n+m]
		if left := prior[i] - square(row); left < -psdTolerance*scale {
			return notPSD(what, i, left)
		}
		for s := m; s < min(r, m+checkedRest); s++ {
			v := a[min(i, perm[s])*n+max(i, perm[s])]
			if m > 0 {
				v -= dot(row, a[s*n:s*n+m])
			}
			if math.Abs(v) > psdTolerance*scale {
				return notPSD(what, i, -math.Abs(v))
			}
		}
	}
	return nil
}

// len returns m.
func (e *embedding) len() int { return e.l.n }

// embedBlock is the number of rows of one task.
const embedBlock = 128

// embed returns z, n×m, and the prior variance and residual k(x, x) − ‖z‖² ≥ 0 of every
// row. It costs n·m evaluations and n·m² operations.
func (e *embedding) embed(x kernel.Rows, workers int) (z, prior, res []float64, err error) {
	n := x.Len()
	z, prior, res = make([]float64, n*e.len()), make([]float64, n), make([]float64, n)
	if err := e.embedTo(z, prior, res, x, workers); err != nil {
		return nil, nil, nil, err
	}
	return z, prior, res, nil
}

// embedTo is embed into given memory.
func (e *embedding) embedTo(z, prior, res []float64, x kernel.Rows, workers int) error {
	size := embedBlock
	if workers == 1 {
		size = streamBlock // L is packed once a block
	}
	return forBlocks(x.Len(), size, workers, func(i0, i1 int, s *kernel.Scratch) error {
		return e.embedRows(z[i0*e.len():i1*e.len()], prior[i0:i1], res[i0:i1], x, i0, i1, s)
	})
}

// embedRows is embed for rows i0 ≤ i < i1.
func (e *embedding) embedRows(z, prior, res []float64, x kernel.Rows, i0, i1 int, s *kernel.Scratch) error {
	m := e.len()
	if m > 0 {
		e.prepared().Fill(z, m, x, i0, i1, s)
		e.l.solveRowsL(z, i1-i0)
	}
	for r := range i1 - i0 {
		q := square(z[r*m : (r+1)*m])
		if !isFinite(q) { // only then check every pair
			if err := e.checkRow(x, i0+r, s); err != nil {
				return err
			}
		}
		var err error
		if prior[r], res[r], err = e.residual(x, i0+r, q); err != nil {
			return err
		}
	}
	return nil
}

// residual returns k(x, x) and its part outside ‖z‖², for row i of x.
func (e *embedding) residual(x kernel.Rows, i int, q float64) (prior, res float64, err error) {
	p := e.k.Diag(x, i)
	if !isFinite(p) {
		return 0, 0, &kernel.NonFiniteError{What: "k(x, x)", Row: i, Col: -1, Value: p}
	}
	if p < 0 || !(p-q >= -psdTolerance*p) {
		return 0, 0, notPSD("conditional variance given the inducing points", i, min(p, p-q))
	}
	return p, max(p-q, 0), nil
}
