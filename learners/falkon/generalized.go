package falkon

import (
	"math"

	lapackgonum "gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/internal/blocked"
)

// isometry is F = Q·Tᵀ of Definition 4, K_MM = Q·TᵀT·Qᵀ. Q, M×q, has orthonormal
// columns. T is upper triangular, stored as L = Tᵀ, or diagonal with an
// eigendecomposition.
type isometry struct {
	workers  int
	q        blocked.Matrix[float64]
	l        blocked.Matrix[float64] // T transposed, if not diagonal
	diagonal []float64               // or T
	numbers  []int
}

// newEigen keeps the eigenvalues above M·epsilon·max. The source is Example 3.
func newEigen(workers int, gram []float64, m int, epsilon float64) (factor, bool) {
	var eigen mat.EigenSym
	if !eigen.Factorize(mat.NewSymDense(m, gram), true) {
		return nil, false
	}
	values, vectors, first := eigen.Values(nil), new(mat.Dense), 0
	eigen.VectorsTo(vectors)
	for first < m && !(values[first] > float64(m)*epsilon*values[m-1]) {
		first++
	}
	if first == m || !(values[m-1] > 0) {
		return nil, false
	}
	t := values[first:]
	for i, v := range t {
		t[i] = math.Sqrt(v)
	}
	q := blocked.New(m, m, vectors.RawMatrix().Data).Sub(0, first, m, m)
	return &isometry{workers: workers, q: q, diagonal: t, numbers: upTo(m)}, true
}

// newQR takes the number of diagonal elements of R above M·epsilon·max as the rank, and
// then T = chol(QᵀK_MM·Q). The source is Example 2.2.
func newQR(workers int, gram []float64, m int, epsilon float64) (factor, bool) {
	k := append([]float64(nil), gram...) // symmetric, so rows are columns
	impl := lapackgonum.Implementation{}
	jpvt, tau := make([]int, m), make([]float64, m)
	for i := range jpvt {
		jpvt[i] = -1
	}
	size := make([]float64, 1)
	impl.Dgeqp3(m, m, gram, m, jpvt, tau, size, -1)
	work := make([]float64, int(size[0]))
	impl.Dgeqp3(m, m, gram, m, jpvt, tau, work, len(work))
	largest, q := math.Abs(gram[0]), 0
	for q < m && math.Abs(gram[q*m+q]) > float64(m)*epsilon*largest {
		q++
	}
	if q == 0 {
		return nil, false
	}
	impl.Dorgqr(m, q, q, gram, m, tau[:q], size, -1)
	work = make([]float64, int(size[0]))
	impl.Dorgqr(m, q, q, gram, m, tau[:q], work, len(work))
	basis := blocked.New(m, m, gram).Sub(0, 0, m, q)
	kq := blocked.New[float64](m, q, nil)
	blocked.Gemm(workers, false, blocked.New(m, m, k), false, basis, 1, 0, kq)
	l := blocked.New(q, q, k[:q*q])
	blocked.Gemm(workers, true, basis, false, kq, 1, 0, l)
	if blocked.Cholesky(workers, l) < q {
		return nil, false
	}
	return &isometry{workers: workers, q: basis, l: l, numbers: upTo(m)}, true
}

func (s *isometry) onDevice() *solver { return nil }

func (s *isometry) rank() int    { return s.q.Cols }
func (s *isometry) used() []int  { return s.numbers }
func (s *isometry) order() []int { return s.numbers }

func (s *isometry) rows(dst []float64, i0, i1 int) int {
	q := s.rank()
	part := s.q.Sub(i0, 0, i1, q)
	if s.diagonal == nil {
		lower := blocked.New[float64](q, q, nil) // zeros above the diagonal
		lowerRows(lower.Data, s.l, 0, q, q)
		blocked.Gemm(s.workers, false, part, false, lower, 1, 0, blocked.New(i1-i0, q, dst))
		return q
	}
	for i := range i1 - i0 {
		for j, t := range s.diagonal {
			dst[i*q+j] = part.Data[i*part.Stride+j] * t
		}
	}
	return q
}

// coefficients computes a = Q·T⁻¹v.
func (s *isometry) coefficients(a, v []float64, c int) {
	t := append([]float64(nil), v...)
	s.solve(true, t, c)
	blocked.Gemm(s.workers, false, s.q, false, blocked.New(s.rank(), c, t), 1, 0, blocked.New(s.q.Rows, c, a))
}

// coordinates computes v = T⁻ᵀQᵀz.
func (s *isometry) coordinates(v, z []float64, c int) {
	t := blocked.New[float64](s.rank(), c, nil)
	blocked.Gemm(s.workers, true, s.q, false, blocked.New(s.q.Rows, c, z), 1, 0, t)
	s.solve(false, t.Data, c)
	copy(v, t.Data)
}

// solve overwrites b by L⁻ᵀb if trans, else by L⁻¹b.
func (s *isometry) solve(trans bool, b []float64, c int) {
	if s.diagonal == nil {
		blocked.SolveLower(s.workers, trans, s.l, blocked.New(s.rank(), c, b))
		return
	}
	for i, t := range s.diagonal {
		for j := range c {
			b[i*c+j] /= t
		}
	}
}
