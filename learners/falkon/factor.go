package falkon

import (
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/gpu"
)

// factor is K_MM = F·Fᵀ for M weighted centres, where F is M×q of rank q. The columns
// of F are coordinates. A function f of the span of the centres is a vector v of q
// numbers, with the values Fv at the centres and the norm ‖f‖ = ‖v‖.
//
// The functions are expansions over used(), u ≤ M of the centres, which are the pivots of Cholesky.
type factor interface {
	rank() int
	used() []int
	// rows sets dst, (i1−i0)×cols, to rows i0 ≤ i < i1 of F, of which other columns are 0.
	// order[i] is the centre of row i.
	rows(dst []float64, i0, i1 int) (cols int)
	order() []int
	// coefficients sets a, u×c, to the coefficients of the functions v, q×c. a and v may be the
	// same slice if u = q.
	coefficients(a, v []float64, c int)
	// coordinates is the transpose. If z, u×c, are the values of a function of the span at the
	// used centres, v is that function.
	coordinates(v, z []float64, c int)
	// onDevice returns the factor on a device, or nil. Its rows have the order of order().
	onDevice() *solver
}

// Factorization says how K_MM is factored. All give the same function, up to rounding,
// where K_MM has full rank.
type Factorization string

const (
	// FactorPivoted is Cholesky with pivoting, for any rank q ≤ M. It needs no jitter.
	FactorPivoted Factorization = ""
	// FactorCholesky is T of (4.10), plain Cholesky of K_MM + εM·I after equal centres are
	// merged. It is up to 3 times faster than pivoting, a small part of most fits.
	FactorCholesky Factorization = "cholesky"
	// FactorQR is the rank-revealing QR of Example 2.2, and FactorEigen the eigendecomposition
	// of Example 3. They take two and three times the memory and many times the time, for
	// comparison.
	FactorQR    Factorization = "qr"
	FactorEigen Factorization = "eigen"
)

var factorizations = []Factorization{FactorPivoted, FactorCholesky, FactorQR, FactorEigen}

// newFactor factors gram = K_MM, m×m row-major, which it overwrites and keeps. epsilon, relative to
// the largest element, is the jitter of Cholesky, or the least pivot or eigenvalue.
func newFactor(how Factorization, workers int, gram []float64, m int, epsilon float64) (f factor, ok bool) {
	switch how {
	case FactorCholesky:
		return newCholesky(workers, gram, m, epsilon)
	case FactorQR:
		return newQR(workers, gram, m, epsilon)
	case FactorEigen:
		return newEigen(workers, gram, m, epsilon)
	default:
		return newPivoted(workers, gram, m, epsilon)
	}
}

// factorGram is newFactor for a matrix that may be on a device, where it is factored without
// being copied.
func factorGram(how Factorization, workers int, gram *kernel.Gram, epsilon float64) (f factor, ok bool, err error) {
	m := len(gram.Diagonal())
	switch how {
	case FactorCholesky:
		trace := 0.0
		for _, v := range gram.Diagonal() {
			trace += v
		}
		if l, device, q, done := gram.Factor(epsilon*trace, 0, nil); done {
			f, ok = fullRank(workers, blocked.New(m, m, l), q, device)
			return f, ok, nil
		}
	case FactorPivoted:
		perm := make([]int, m)
		if l, device, q, done := gram.Factor(0, epsilon, perm); done {
			f, ok = withPivots(workers, blocked.New(m, m, l), perm, q, device)
			return f, ok, nil
		}
	}
	data, err := gram.Matrix()
	if err != nil {
		return nil, false, err
	}
	f, ok = newFactor(how, workers, data, m, epsilon)
	return f, ok, nil
}

// triangle is F = L with LLᵀ = K_MM of the different centres. The row of a centre equal
// to an earlier one repeats the row of that one.
type triangle struct {
	workers int
	l       blocked.Matrix[float64]
	solver  *solver // of l, used by every iteration
	numbers []int
}

// newCholesky adds epsilon·trace to the diagonal, which is ε·M·I for k(x,x) = 1.
func newCholesky(workers int, gram []float64, m int, epsilon float64) (factor, bool) {
	trace := 0.0
	for i := range m {
		trace += gram[i*m+i]
	}
	for i := range m {
		gram[i*m+i] += epsilon * trace
	}
	a := blocked.New(m, m, gram)
	device, q, done := gpu.NewFactor(gram, m, 0, nil)
	if !done {
		q = blocked.Cholesky(workers, a)
	}
	return fullRank(workers, a, q, device)
}

// fullRank returns the factor l if it has q = m rows.
func fullRank(workers int, l blocked.Matrix[float64], q int, device gpu.Factor) (factor, bool) {
	if q < l.Rows {
		return nil, false
	}
	return &triangle{workers, l, newSolver(l, device), upTo(q)}, true
}

func (t *triangle) rank() int    { return t.l.Cols }
func (t *triangle) used() []int  { return t.numbers }
func (t *triangle) order() []int { return t.numbers }

func (t *triangle) onDevice() *solver { return t.solver }

func (t *triangle) rows(dst []float64, i0, i1 int) int {
	lowerRows(dst, t.l, i0, i1, i1)
	return i1
}

func (t *triangle) coefficients(a, v []float64, c int) {
	copy(a, v)
	t.solver.solve(t.workers, true, a[:t.l.Rows*c], c)
}

func (t *triangle) coordinates(v, z []float64, c int) {
	copy(v, z)
	t.solver.solve(t.workers, false, v[:t.l.Rows*c], c)
}

// lowerRows copies rows i0 ≤ i < i1 of a lower trapezoidal matrix, cols columns
// of them.
func lowerRows(dst []float64, l blocked.Matrix[float64], i0, i1, cols int) {
	for i := i0; i < i1; i++ {
		row := dst[(i-i0)*cols:][:cols]
		k := min(i+1, cols)
		copy(row[:k], l.Data[i*l.Stride:])
		clear(row[k:])
	}
}

// pivoted is F = P·L, where L, M×q, is lower trapezoidal. Its first q rows belong to
// the pivots.
type pivoted struct {
	triangle // of the pivots
	all      blocked.Matrix[float64]
	perm     []int
}

func newPivoted(workers int, gram []float64, m int, epsilon float64) (factor, bool) {
	a := blocked.New(m, m, gram)
	perm := make([]int, m)
	device, q, done := gpu.NewFactor(gram, m, epsilon, perm)
	if !done {
		q = blocked.PivotedCholesky(workers, a, epsilon, perm)
	}
	return withPivots(workers, a, perm, q, device)
}

// withPivots returns the factor a of rank q, unless that is 0.
func withPivots(workers int, a blocked.Matrix[float64], perm []int, q int, device gpu.Factor) (factor, bool) {
	if q == 0 {
		return nil, false
	}
	l := a.Sub(0, 0, q, q)
	pivots := triangle{workers, l, newSolver(l, device), perm[:q]}
	return &pivoted{pivots, a.Sub(0, 0, a.Rows, q), perm}, true
}

func (p *pivoted) order() []int { return p.perm }

func (p *pivoted) rows(dst []float64, i0, i1 int) int {
	cols := min(i1, p.all.Cols)
	lowerRows(dst, p.all, i0, i1, cols)
	return cols
}

// merge finds equal centres in K_MM, which have k(x,x) = k(x,y) = k(y,y) to the bit. It returns
// the numbers of the different centres, and the index of each centre among them.
func merge(gram []float64, m int) (different, at []int) {
	at = make([]int, m)
	for i := range m {
		k := slices.IndexFunc(different, func(j int) bool {
			v := gram[i*m+j]
			return v == gram[i*m+i] && v == gram[j*m+j]
		})
		if k < 0 {
			k = len(different)
			different = append(different, i)
		}
		at[i] = k
	}
	return different, at
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
