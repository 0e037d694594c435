package krr

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/sketch"
)

// Decomposition is K = QSQᵀ with Qᵀy, which makes every λ cheap. It is immutable and
// safe for concurrent use.
type Decomposition struct {
	n, outputs int
	values     []float64 // S, not negative
	q          []float64 // Q, n×n, column j for values[j]
	qy         []float64 // Qᵀy, n×outputs
	workers    int
}

// DecompositionError reports an eigenvalue iteration that did not end.
type DecompositionError struct{ Rows int }

func (e *DecompositionError) Error() string {
	return fmt.Sprintf("krr: the eigenvalues of the %d×%[1]d kernel matrix were not found", e.Rows)
}

// Decompose decomposes the kernel matrix of the n rows x, with targets y, n×outputs.
// workers = 0 means one per processor. Its errors are those of Solve and
// *DecompositionError.
func Decompose(ctx context.Context, k kernel.Kernel, x kernel.Rows, y []float64, outputs, workers int) (*Decomposition, error) {
	n := x.Len()
	gram, err := gramian(ctx, k, x, y, outputs)
	if err != nil {
		return nil, err
	}
	var eig mat.EigenSym
	if !eig.Factorize(mat.NewSymDense(n, gram), true) {
		return nil, &DecompositionError{n}
	}
	var q mat.Dense
	eig.VectorsTo(&q)
	d := &Decomposition{
		n: n, outputs: outputs, values: eig.Values(nil), q: q.RawMatrix().Data,
		qy: make([]float64, n*outputs), workers: learners.Workers(workers),
	}
	for j, s := range d.values { // rounding below 0
		d.values[j] = max(s, 0)
	}
	blocked.Gemm(d.workers, true, blocked.New(n, n, d.q), false, blocked.New(n, outputs, y), 1, 0, blocked.New(n, outputs, d.qy))
	return d, nil
}

// Eigenvalues returns the eigenvalues of K, increasing. The caller must not change
// them.
func (d *Decomposition) Eigenvalues() []float64 { return d.values }

// inverses returns 1/(s + λn), or 0 where the sum is 0 up to rounding. For λ = 0 that
// is the pseudo-inverse.
func (d *Decomposition) inverses(lambda float64) []float64 {
	out := make([]float64, d.n)
	ridge := sketch.Ridge(lambda, d.n)
	floor := float64(d.n) * 0x1p-52 * d.values[d.n-1]
	if lambda > 0 {
		floor = 0
	}
	for j, s := range d.values {
		if s+ridge > floor {
			out[j] = 1 / (s + ridge)
		}
	}
	return out
}

// Coefficients returns c(λ), n×outputs, in O(n²) for each output. λ must be at least 0,
// and λ = 0 gives the solution of least norm.
func (d *Decomposition) Coefficients(lambda float64) []float64 {
	inverse := d.inverses(lambda)
	scaled := make([]float64, len(d.qy))
	for i, v := range d.qy {
		scaled[i] = v * inverse[i/d.outputs]
	}
	c := make([]float64, len(d.qy))
	blocked.Gemm(d.workers, false, blocked.New(d.n, d.n, d.q), false, blocked.New(d.n, d.outputs, scaled), 1, 0, blocked.New(d.n, d.outputs, c))
	return c
}

// LeaveOneOut returns y_i − f_{−i}(x_i), n×outputs, where f_{−i} is fitted to all rows
// except i with the same ridge λn. For n−1 rows that is the ridge of λn/(n−1). It is
// 0/0 = NaN only where λ = 0 and row i has no effect on K.
func (d *Decomposition) LeaveOneOut(lambda float64) []float64 {
	inverse := d.inverses(lambda)
	out := d.Coefficients(lambda)
	for i := range d.n {
		g := 0.0
		for j, q := range d.q[i*d.n:][:d.n] {
			g += q * q * inverse[j]
		}
		for o := range d.outputs {
			out[i*d.outputs+o] /= g
		}
	}
	return out
}

// LeaveOneOutError is the root mean square of LeaveOneOut.
func (d *Decomposition) LeaveOneOutError(lambda float64) float64 {
	s := 0.0
	for _, r := range d.LeaveOneOut(lambda) {
		s += r * r
	}
	return math.Sqrt(s / float64(d.n*d.outputs))
}

// GCV is the criterion of generalised cross-validation,
//
//	(1/n)‖(I − A)y‖² / ((1/n) tr(I − A))²,  A = K(K + λnI)⁻¹,
//
// as a mean over outputs. It is leave-one-out with every leverage replaced by their
// mean (Golub, Heath and Wahba, 1979).
func (d *Decomposition) GCV(lambda float64) float64 {
	sum, trace := 0.0, 0.0
	for j, inverse := range d.inverses(lambda) { // 1 − s/(s + λn) = λn/(s + λn)
		trace += inverse
		for _, v := range d.qy[j*d.outputs:][:d.outputs] {
			sum += v * v * inverse * inverse
		}
	}
	return float64(d.n) * sum / (float64(d.outputs) * trace * trace)
}

// EffectiveDimension returns d_eff(λ) = tr K(K + λnI)⁻¹.
func (d *Decomposition) EffectiveDimension(lambda float64) float64 {
	sum := 0.0
	for j, inverse := range d.inverses(lambda) {
		sum += d.values[j] * inverse
	}
	return sum
}

// Best returns the λ of the list for which criterion is smallest, and its value. The
// criterion is d.LeaveOneOutError or d.GCV, for example. The list must not be empty,
// and of equal values the first counts. A NaN is larger than any number.
func Best(lambdas []float64, criterion func(lambda float64) float64) (lambda, value float64) {
	lambda, value = lambdas[0], math.NaN()
	for _, l := range lambdas {
		if v := criterion(l); v < value || math.IsNaN(value) && !math.IsNaN(v) {
			lambda, value = l, v
		}
	}
	return lambda, value
}
