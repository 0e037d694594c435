package gp

import (
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/simd"
)

// These are the relative amounts to try after 0, growing tenfold. A positive
// semi-definite kernel needs no more than about n·2⁻⁵³ in theory.
const (
	firstJitter = 1e-12
	lastJitter  = 1e-6
)

// cholesky is the lower triangular factor L of a symmetric positive definite matrix
// A = LLᵀ of order n. It is row-major with a stride that leaves room to grow. The upper
// triangle is never read.
type cholesky struct {
	n, stride int
	data      []float64                // length n·stride
	packed    atomic.Pointer[triangle] // nil after a change
}

// newCholesky factors the n×n row-major matrix a, in memory of w. It reads only the lower
// triangle and does not change it. If that fails, it tries again with a growing multiple
// of the identity added, from 1e-12 to 1e-6 of the mean diagonal element, and reports the
// amount. It returns a [*NotPSDError] with the first bad pivot if that is not enough, and a
// [*ValueError] for a NaN or infinity in a.
func newCholesky(what string, a []float64, n int, w *workspace) (c *cholesky, jitter float64, err error) {
	scale := 0.0
	for i := range n {
		for j, v := range a[i*n : i*n+i+1] {
			if !isFinite(v) {
				return nil, 0, valueError(what, i*n+j, v, "finite")
			}
		}
		scale += math.Abs(a[i*n+i]) / float64(n)
	}
	c = &cholesky{n: n, stride: n, data: simd.Sized(&w.factor, n*n)}
	row := 0
	for relative := 0.0; relative <= lastJitter*1.5; relative = max(10*relative, firstJitter) {
		jitter = relative * scale
		copy(c.data, a[:n*n])
		for i := range n {
			c.data[i*n+i] += jitter
		}
		if row = blocked.Cholesky(runtime.GOMAXPROCS(0), c.matrix()); row == n {
			return c, jitter, nil
		}
	}
	return nil, jitter, &NotPSDError{In: "gp", What: what, Row: row, Pivot: badPivot(a, n, row, jitter), Jitter: jitter}
}

// matrix returns L for package blocked.
func (c *cholesky) matrix() blocked.Matrix[float64] {
	return blocked.Matrix[float64]{Rows: c.n, Cols: c.n, Stride: c.stride, Data: c.data}
}

// badPivot returns what is left of the diagonal element of the row at which a factorisation fails.
func badPivot(a []float64, n, row int, jitter float64) float64 {
	b := slices.Clone(a[row*n:][:row])
	lead := blocked.New[float64](row, row, nil)
	for i := range row {
		copy(lead.Data[i*row:], a[i*n:][:i+1])
		lead.Data[i*row+i] += jitter
	}
	blocked.Cholesky(1, lead)
	blocked.Forward(lead, b)
	return a[row*n+row] + jitter - square(b)
}

// row returns L_i0 … L_ii.
func (c *cholesky) row(i int) []float64 { return c.data[i*c.stride : i*c.stride+i+1] }

// clone returns an independent copy.
func (c *cholesky) clone() *cholesky {
	return &cholesky{n: c.n, stride: c.stride, data: append([]float64(nil), c.data...)}
}

// triangular returns L for blas64.
func (c *cholesky) triangular() blas64.Triangular {
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: c.n, Stride: max(c.stride, 1), Data: c.data}
}

// solveL replaces b by L⁻¹b. It costs n²/2 multiplications.
func (c *cholesky) solveL(b []float64) { c.trsv(blas.NoTrans, b) }

// solveLT replaces b by L⁻ᵀb. It costs n²/2 multiplications.
func (c *cholesky) solveLT(b []float64) { c.trsv(blas.Trans, b) }

func (c *cholesky) trsv(t blas.Transpose, b []float64) {
	if c.n > 0 {
		blas64.Trsv(t, c.triangular(), vec(b))
	}
}

// solveRowsL replaces every row b_i of the q×n matrix b by L⁻¹b_i. No bit of a
// row depends on the others.
func (c *cholesky) solveRowsL(b []float64, q int) {
	blocked.SolveLowerRight(1, true, c.matrix(), blocked.New(q, c.n, b[:q*c.n]))
}

// logDet returns log det A = 2 Σ log L_ii.
func (c *cholesky) logDet() float64 {
	s := 0.0
	for i := range c.n {
		s += math.Log(c.data[i*c.stride+i])
	}
	return 2 * s
}

// inverse returns A⁻¹, whose numbers above the diagonal are unspecified.
func (c *cholesky) inverse(w *workspace) []float64 {
	n, workers := c.n, runtime.GOMAXPROCS(0)
	root, inv := blocked.New(n, n, simd.Sized(&w.gram, n*n)), blocked.New(n, n, simd.Sized(&w.inverse, n*n))
	blocked.Inverse(workers, c.matrix(), root)
	blocked.SyrkLower(workers, root, inv)
	return inv.Data
}

// inverseTrace returns tr A⁻¹ = ‖L⁻¹‖². It costs n³/3 multiplications.
func (c *cholesky) inverseTrace() float64 {
	root := blocked.New[float64](c.n, c.n, nil)
	blocked.Inverse(1, c.matrix(), root)
	return square(root.Data)
}

// reserve returns a factor of order n whose first rows are those of c. It uses the
// memory of c where that is enough.
func (c *cholesky) reserve(n int) *cholesky {
	if n <= c.stride {
		data := c.data
		if n*c.stride > cap(data) {
			data = c.copied(n)
		}
		return &cholesky{n: n, stride: c.stride, data: data[:n*c.stride]}
	}
	stride := max(n, c.n+c.n/2, 16)
	data := make([]float64, n*stride, min(n+spareRows, stride)*stride)
	for i := range c.n {
		copy(data[i*stride:], c.row(i))
	}
	return &cholesky{n: n, stride: stride, data: data}
}

// roomy returns an independent copy that can grow by some rows in its own memory.
func (c *cholesky) roomy() *cholesky {
	return &cholesky{n: c.n, stride: c.stride, data: c.copied(c.n)}
}

// copied returns the data of c in memory for n rows and some more.
func (c *cholesky) copied(n int) []float64 {
	used := c.data[:c.n*c.stride]
	return withRoom(used, min(n+spareRows, max(n, c.stride))*c.stride-len(used))
}
