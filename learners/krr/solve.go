package krr

import (
	"context"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/sketch"
)

// Jitter values are tried from the first to the last, growing tenfold, in units of the
// mean diagonal element. A positive semi-definite K needs no more than about n·2⁻⁵³.
// But the coefficients of repeated rows with different targets grow as the inverse of
// the jitter, and the rounding of f grows with them.
const (
	firstJitter = 1e-10
	lastJitter  = 1e-6
)

// Solution is the solution of (K + λnI)c = y.
type Solution struct {
	Coefficients []float64 // c, n×outputs
	// Jitter is the addition to the diagonal beyond λn. It is 0 unless the
	// factorisation needed it.
	Jitter float64
	// Objective is (1/n)‖Kc − y‖² + λ cᵀKc. Residual is ‖(K + λnI)c − y‖/‖y‖, or 0 for
	// y = 0. Both are over all outputs, and of the system with weights if there are any.
	Objective, Residual float64
}

// NotPSDError reports a kernel matrix that is not positive semi-definite, even
// with the largest jitter.
type NotPSDError = kernel.NotPSDError

// Solve returns the coefficients for the n rows x and targets y, n×outputs. weights has
// the weights of the rows, with mean 1, or is nil. workers = 0 means one per processor. Its errors are those of kernel.Gramian, *NotPSDError,
// *kernel.ShapeError, and ctx.Err().
func Solve(ctx context.Context, k kernel.Kernel, x kernel.Rows, y, weights []float64, outputs int, lambda float64, workers int) (*Solution, error) {
	f, err := factor(ctx, k, x, y, weights, outputs, lambda, learners.Workers(workers))
	if err != nil {
		return nil, err
	}
	y = append([]float64(nil), y...)
	scaleRows(y, outputs, weights)
	s := &Solution{Coefficients: f.coefficients, Jitter: f.jitter}
	s.judge(f.a, f.diagonal, y, outputs, sketch.Ridge(lambda, x.Len()))
	scaleRows(s.Coefficients, outputs, weights)
	return s, nil
}

// factored is the Cholesky factor of S^½KS^½ + λnI, plus jitter on the diagonal.
type factored struct {
	a            blocked.Matrix[float64] // the factor, and above the diagonal still the matrix
	diagonal     []float64               // of S^½KS^½
	jitter       float64
	coefficients []float64 // the solution for S^½y, n×outputs
}

func factor(ctx context.Context, k kernel.Kernel, x kernel.Rows, y, weights []float64, outputs int, lambda float64, workers int) (*factored, error) {
	n := x.Len()
	if n < 1 || outputs < 1 || len(y) != n*outputs {
		return nil, &kernel.ShapeError{In: algorithm, What: "y (n×outputs)", Got: len(y), Want: fmt.Sprintf("n·outputs = %d·%d, both at least 1", n, outputs)}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	gram, err := kernel.Gramian(k, x)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, s := range weights {
		row := gram[i*n:][:n]
		for j := range row {
			row[j] *= math.Sqrt(s * weights[j])
		}
	}
	f := &factored{blocked.New(n, n, gram), make([]float64, n), 0, append([]float64(nil), y...)}
	for i := range n {
		f.diagonal[i] = gram[i*n+i]
	}
	if err := f.decompose(ctx, sketch.Ridge(lambda, n), workers); err != nil {
		return nil, err
	}
	scaleRows(f.coefficients, outputs, weights)
	c := blocked.New(n, outputs, f.coefficients)
	blocked.SolveLower(workers, false, f.a, c)
	blocked.SolveLower(workers, true, f.a, c)
	return f, nil
}

// scaleRows replaces y, n×c, by S^½y.
func scaleRows(y []float64, c int, weights []float64) {
	for i, s := range weights {
		for j := range c {
			y[i*c+j] *= math.Sqrt(s)
		}
	}
}

// decompose overwrites the lower triangle by the factor. The upper triangle keeps the copy of the matrix
// from which further attempts start.
func (f *factored) decompose(ctx context.Context, ridge float64, workers int) error {
	a, n, mean := f.a, f.a.Rows, 0.0
	for _, v := range f.diagonal {
		mean += math.Abs(v) / float64(n)
	}
	for relative := 0.0; ; relative = max(10*relative, firstJitter) {
		if relative > 1.5*lastJitter {
			row := min(bad(a, n), n-1)
			return &NotPSDError{
				In: algorithm, What: "K + λnI", Row: row, Pivot: a.Data[row*a.Stride+row], Jitter: f.jitter,
				Remedy: "a positive semi-definite kernel or a larger λ",
			}
		}
		f.jitter = relative * (mean + ridge)
		for i := range n {
			row := a.Data[i*a.Stride:]
			if relative > 0 {
				for j := range i {
					row[j] = a.Data[j*a.Stride+i]
				}
			}
			row[i] = f.diagonal[i] + ridge + f.jitter
		}
		if whole, err := cholesky(ctx, workers, a); err != nil || whole && bad(a, n) == n {
			return err
		}
	}
}

// piece is the number of columns that are factored between looks at ctx.
const piece = 1024

// cholesky is [blocked.Cholesky] in pieces. It reports whether all pivots are positive.
func cholesky(ctx context.Context, workers int, a blocked.Matrix[float64]) (bool, error) {
	for n := a.Rows; n > piece; n = a.Rows {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		top, below, rest := a.Sub(0, 0, piece, piece), a.Sub(piece, 0, n, piece), a.Sub(piece, piece, n, n)
		if blocked.Cholesky(workers, top) < piece {
			return false, nil
		}
		blocked.SolveLowerRight(workers, true, top, below)
		blocked.Syrk(workers, false, below, -1, 1, rest)
		a = rest
	}
	return blocked.Cholesky(workers, a) == a.Rows, ctx.Err()
}

// bad returns the first row whose pivot is not a positive number, or n.
func bad(a blocked.Matrix[float64], n int) int {
	for i := range n {
		if v := a.Data[i*a.Stride+i]; !(v > 0 && v-v == 0) {
			return i
		}
	}
	return n
}

// judge computes objective and residual from the upper triangle of gram.
func (s *Solution) judge(gram blocked.Matrix[float64], diagonal, y []float64, outputs int, ridge float64) {
	n, c := len(diagonal), s.Coefficients
	kc := make([]float64, len(y))
	blocked.Symm(gram, diagonal, blocked.New(n, outputs, c), blocked.New(n, outputs, kc))
	var fit, norm, residual, size float64
	for i, v := range kc {
		fit += (v - y[i]) * (v - y[i])
		norm += c[i] * v
		residual += (v + ridge*c[i] - y[i]) * (v + ridge*c[i] - y[i])
		size += y[i] * y[i]
	}
	s.Objective = (fit + ridge*norm) / float64(n)
	if size > 0 {
		s.Residual = math.Sqrt(residual / size)
	}
}
