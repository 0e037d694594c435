package gp

import (
	"math"
	"runtime"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/simd"
)

// Jitter reports the addition to the diagonal of a matrix that made its Cholesky
// factorisation succeed. The zero Jitter means no addition.
type Jitter struct {
	Amount   float64 // added to every diagonal element, in their units
	Relative float64 // Amount in units of the mean diagonal element
	Attempts int     // failed factorisations before the successful one
}

// These are the relative amounts to try after 0, growing tenfold. A positive
// semi-definite kernel needs no more than about n·2⁻⁵³ in theory.
const (
	firstJitter = 1e-12
	lastJitter  = 1e-6
)

// Cholesky is the lower triangular factor L of a symmetric positive definite matrix
// A = LLᵀ of order n. It is row-major with a stride that leaves room to grow. The upper
// triangle is never read.
type Cholesky struct {
	n, stride int
	data      []float64 // length n·stride
	packed    atomic.Pointer[triangle]
	outdated  atomic.Pointer[triangle] // memory for packed
}

// NewCholesky factors the n×n row-major matrix a. It reads only the lower triangle and
// does not change it. If that fails, it tries again with a growing multiple of the
// identity added, from 1e-12 to 1e-6 of the mean diagonal element, and reports the
// amount. what names the matrix in the error. It costs n³/3.
//
// It returns a [*NotPSDError] with the row of the first bad pivot if even the largest
// amount is not enough, and a [*ValueError] for a NaN or infinity in a.
func NewCholesky(what string, a []float64, n int) (*Cholesky, Jitter, error) {
	return newCholesky(what, a, n, new(workspace))
}

func newCholesky(what string, a []float64, n int, w *workspace) (*Cholesky, Jitter, error) {
	if len(a) < n*n {
		panic("gp: precondition: matrix shorter than n·n")
	}
	scale := 0.0
	for i := range n {
		for j, v := range a[i*n : i*n+i+1] {
			if !isFinite(v) {
				return nil, Jitter{}, valueError(what, i*n+j, v, "finite")
			}
		}
		scale += math.Abs(a[i*n+i]) / float64(n)
	}
	var rep Jitter
	c := &Cholesky{n: n, stride: n, data: simd.Sized(&w.factor, n*n)}
	for rel := 0.0; ; rel = max(10*rel, firstJitter) {
		if rel > lastJitter*1.5 {
			row, pivot := badPivot(a, n, rep.Amount)
			return nil, rep, &NotPSDError{In: "gp", What: what, Row: row, Pivot: pivot, Jitter: rep.Amount}
		}
		rep.Amount, rep.Relative = rel*scale, rel
		copy(c.data, a[:n*n])
		for i := range n {
			c.data[i*n+i] += rep.Amount
		}
		if c.factor() {
			return c, rep, nil
		}
		rep.Attempts++
	}
}

// factor turns the lower triangle of data from A into L.
func (c *Cholesky) factor() bool {
	return blocked.Cholesky(runtime.GOMAXPROCS(0), c.matrix()) == c.n
}

// matrix returns L for package blocked.
func (c *Cholesky) matrix() blocked.Matrix[float64] {
	return blocked.Matrix[float64]{Rows: c.n, Cols: c.n, Stride: c.stride, Data: c.data}
}

// badPivot factors row by row, to find the row where it fails.
func badPivot(a []float64, n int, jitter float64) (row int, pivot float64) {
	l := make([]float64, n*n)
	for i := range n {
		for j := range i + 1 {
			s := a[i*n+j]
			for k := range j {
				s -= l[i*n+k] * l[j*n+k]
			}
			if j < i {
				l[i*n+j] = s / l[j*n+j]
				continue
			}
			if s += jitter; !(s > 0) {
				return i, s
			}
			l[i*n+i] = math.Sqrt(s)
		}
	}
	return n - 1, 0
}

// Len returns n.
func (c *Cholesky) Len() int { return c.n }

// At returns L_ij.
func (c *Cholesky) At(i, j int) float64 {
	if j > i {
		return 0
	}
	return c.data[i*c.stride+j]
}

// row returns L_i0 … L_ii.
func (c *Cholesky) row(i int) []float64 { return c.data[i*c.stride : i*c.stride+i+1] }

// clone returns an independent copy.
func (c *Cholesky) clone() *Cholesky {
	return &Cholesky{n: c.n, stride: c.stride, data: append([]float64(nil), c.data...)}
}

// triangular returns L for blas64.
func (c *Cholesky) triangular() blas64.Triangular {
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: c.n, Stride: max(c.stride, 1), Data: c.data}
}

// SolveL replaces b by L⁻¹b. It costs n²/2 multiplications.
func (c *Cholesky) SolveL(b []float64) { c.trsv(blas.NoTrans, b) }

// SolveLT replaces b by L⁻ᵀb. It costs n²/2 multiplications.
func (c *Cholesky) SolveLT(b []float64) { c.trsv(blas.Trans, b) }

// Solve replaces b by A⁻¹b. It costs n² multiplications.
func (c *Cholesky) Solve(b []float64) {
	c.SolveL(b)
	c.SolveLT(b)
}

func (c *Cholesky) trsv(t blas.Transpose, b []float64) {
	if len(b) != c.n {
		panic("gp: precondition: vector length is not the order of the factor")
	}
	if c.n > 0 {
		blas64.Trsv(t, c.triangular(), blas64.Vector{N: c.n, Inc: 1, Data: b})
	}
}

// solveRowsL replaces every row b_i of the q×n matrix b by L⁻¹b_i. No bit of a
// row depends on the others.
func (c *Cholesky) solveRowsL(b []float64, q int) {
	blocked.SolveLowerRight(1, true, c.matrix(), blocked.New(q, c.n, b[:q*c.n]))
}

// LogDet returns log det A = 2 Σ log L_ii.
func (c *Cholesky) LogDet() float64 {
	s := 0.0
	for i := range c.n {
		s += math.Log(c.data[i*c.stride+i])
	}
	return 2 * s
}

// Inverse returns A⁻¹ = L⁻ᵀL⁻¹, n×n and exactly symmetric. It costs about n³ operations.
func (c *Cholesky) Inverse() []float64 {
	inv := c.inverse(new(workspace))
	mirror(inv, c.n)
	return inv
}

// inverse returns A⁻¹, whose numbers above the diagonal are unspecified.
func (c *Cholesky) inverse(w *workspace) []float64 {
	n, workers := c.n, runtime.GOMAXPROCS(0)
	root, inv := blocked.New(n, n, simd.Sized(&w.gram, n*n)), blocked.New(n, n, simd.Sized(&w.inverse, n*n))
	blocked.Inverse(workers, c.matrix(), root)
	blocked.SyrkLower(workers, root, inv)
	return inv.Data
}

// inverseTrace returns tr A⁻¹ = ‖L⁻¹‖². It costs n³/3 multiplications.
func (c *Cholesky) inverseTrace() float64 {
	root := blocked.New[float64](c.n, c.n, nil)
	blocked.Inverse(1, c.matrix(), root)
	return square(root.Data)
}

// mirror copies the lower triangle to the upper one.
func mirror(a []float64, n int) {
	for i := range n {
		for j := range i {
			a[j*n+i] = a[i*n+j]
		}
	}
}

// grown returns the factor of the bordered matrix
//
//	A  Bᵀ
//	B  C
//
// where B is q×n, row-major and overwritten by BL⁻ᵀ, and C is q×q, of which the lower
// triangle is read and overwritten. It reports false if that matrix is not positive
// definite. The old factor stays valid but must not grow again, because the two share
// memory. It costs q·n² + q²n.
func (c *Cholesky) grown(b, corner []float64, q int) (*Cholesky, bool) {
	n := c.n
	if q == 1 { // packing L would cost more than the solution
		c.SolveL(b[:n])
	} else {
		c.solveRowsL(b, q)
	}
	blocked.Syrk(1, false, blocked.New(q, n, b[:q*n]), -1, 1, blocked.New(q, q, corner))
	schur := &Cholesky{n: q, stride: q, data: corner}
	if !schur.factor() {
		return nil, false
	}
	g := c.reserve(n + q)
	for i := range q {
		row := g.data[(n+i)*g.stride:]
		copy(row, b[i*n:(i+1)*n])
		copy(row[n:], schur.row(i))
	}
	return g, true
}

// reserve returns a factor of order n whose first rows are those of c. It uses the
// memory of c where that is enough.
func (c *Cholesky) reserve(n int) *Cholesky {
	if n <= c.stride {
		data := c.data
		if n*c.stride > cap(data) {
			data = c.copied(n)
		}
		return &Cholesky{n: n, stride: c.stride, data: data[:n*c.stride]}
	}
	stride := max(n, c.n+c.n/2, 16)
	data := make([]float64, n*stride, min(n+spareRows, stride)*stride)
	for i := range c.n {
		copy(data[i*stride:], c.row(i))
	}
	return &Cholesky{n: n, stride: stride, data: data}
}

// roomy returns an independent copy that can grow by some rows in its own memory.
func (c *Cholesky) roomy() *Cholesky {
	return &Cholesky{n: c.n, stride: c.stride, data: c.copied(c.n)}
}

// copied returns the data of c in memory for n rows and some more.
func (c *Cholesky) copied(n int) []float64 {
	used := c.data[:c.n*c.stride]
	return withRoom(used, min(n+spareRows, max(n, c.stride))*c.stride-len(used))
}
