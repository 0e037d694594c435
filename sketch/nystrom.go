package sketch

import (
	"cmp"
	"context"
	"runtime"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
)

// Embedding is the Nyström embedding by M centres J,
//
//	z(x) = L⁻¹k_P(x),  LLᵀ = K_PP,
//
// so that z(x)ᵀz(y) = k_J(x)ᵀK_JJ⁺k_J(y), the kernel projected on the span of the centres. P ⊂ J
// are the r ≤ M pivots of a Cholesky factorisation with complete pivoting. The centres left out,
// such as repeated ones, are in the span of the pivots up to Tolerance. The projection is the
// same for any order of the centres. An Embedding is immutable and safe for concurrent use.
type Embedding struct {
	k      kernel.Kernel
	points kernel.Rows
	pivots []int
	l      []float64
}

// DefaultTolerance is the share of max k(x, x) below which the residual of a centre counts as 0.
const DefaultTolerance = 1e-10

// NewEmbedding returns the embedding by the given centres. tolerance is relative to the largest
// k(x, x) of the centres, 0 ≤ tolerance < 1, or 0 for [DefaultTolerance]. workers is the number
// of goroutines, or 0 for one per processor. It changes no bit. It costs M²/2 evaluations and
// M·r² operations. Its errors are [*EmptyError], [*ParameterError] and those of [kernel.Gramian].
// It returns a [*FactorizationError] if the kernel is 0 at all centres.
func NewEmbedding(k kernel.Kernel, centers kernel.Rows, tolerance float64, workers int) (*Embedding, error) {
	m := centers.Len()
	if m == 0 {
		return nil, &EmptyError{What: "set of centers"}
	}
	if !(tolerance >= 0 && tolerance < 1) {
		return nil, parameterError("Embedding", "tolerance", tolerance, "≥ 0 and < 1")
	}
	tolerance = cmp.Or(tolerance, DefaultTolerance)
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	gram, err := kernel.Gramian(k, centers)
	if err != nil {
		return nil, err
	}
	pivots := make([]int, m)
	r := blocked.PivotedCholesky(workers, blocked.New(m, m, gram), tolerance, pivots)
	if r == 0 {
		return nil, &FactorizationError{Size: m}
	}
	l := make([]float64, r*r)
	for i := range r {
		copy(l[i*r:i*r+i+1], gram[i*m:])
	}
	return &Embedding{k: k, points: centers.Select(pivots[:r]), pivots: pivots[:r], l: l}, nil
}

// Rank returns r, the length of z(x).
func (e *Embedding) Rank() int { return len(e.pivots) }

// Points returns the pivots, in the order of the coordinates of z.
func (e *Embedding) Points() kernel.Rows { return e.points }

// Factor returns L, r×r, lower triangular, in row-major order, which the caller must
// not change. A function zᵀw is k_P(x)ᵀc with c = L⁻ᵀw.
func (e *Embedding) Factor() []float64 { return e.l }

// Apply sets row i of z, n×r, to z(x_i). It sets residual[i] to k(x_i, x_i) − ‖z(x_i)‖² ≥ 0, the
// part of x_i that the embedding misses. residual may be nil. workers is the number of
// goroutines, or 0 for one per processor. It changes no bit. It costs n·r evaluations and n·r²
// operations. Its errors are [*kernel.ShapeError] and those of [Generator.Scores].
func (e *Embedding) Apply(ctx context.Context, z, residual []float64, src kernel.Source, workers int) error {
	n, r := src.Len(), e.Rank()
	if len(z) != n*r {
		return &kernel.ShapeError{In: "sketch", What: "z (n×r)", Got: len(z), Want: "n·Rank"}
	}
	if residual != nil && len(residual) != n {
		return &kernel.ShapeError{In: "sketch", What: "residual (n)", Got: len(residual), Want: "n, or nil"}
	}
	return eachBlock(ctx, e.k, src, blockRows(r), workers, func(w *workspace, row int, x kernel.Rows) error {
		cols := x.Len()
		solved := project(w, e.k, e.points, e.l, r, x)
		out := z[row*r:][:cols*r]
		for j := range r {
			for i, v := range solved[j*cols:][:cols] {
				out[i*r+j] = v
			}
		}
		for i, v := range out {
			if v-v != 0 {
				return &kernel.NonFiniteError{What: "z", Row: row + i/r, Col: i % r, Value: v}
			}
		}
		if residual != nil {
			e.residuals(residual[row:][:cols], solved, x)
		}
		return nil
	})
}

func (e *Embedding) residuals(dst, solved []float64, x kernel.Rows) {
	clear(dst)
	addSquares(dst, solved)
	for i, s := range dst {
		dst[i] = max(e.k.Diag(x, i)-s, 0)
	}
}
