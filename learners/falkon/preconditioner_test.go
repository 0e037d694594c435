package falkon

import (
	"fmt"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

// TestPreconditionerInverse compares Rv and Rᵀv with sums over the R of gonum's
// Cholesky factorisation, and inverts them, across the blocks of R.
func TestPreconditionerInverse(t *testing.T) {
	const lambda = 1e-3
	rng := kerneltest.Seeded(t, 21)
	for _, m := range []int{1, 2, assembleRows, assembleRows + 1, 2*assembleRows + 40} {
		gram := must(kernel.Gramian(kerneltest.Gaussian(0.3), kerneltest.Points(rng, m, 3)))
		f, ok := newFactor(FactorPivoted, 2, gram, m, 1e-13)
		if !ok {
			t.Fatal("no factor")
		}
		q, perRow := f.rank(), make([]float64, m)
		for i := range perRow {
			perRow[i] = rng.Float64() / float64(m)
		}
		p := newPreconditioner(f, 2)
		if !p.set(perRow, lambda) {
			t.Fatal("not positive definite")
		}
		r := cholesky(t, f, m, perRow, lambda)
		for _, c := range []int{1, 3} {
			what := fmt.Sprintf("M = %d, q = %d, c = %d", m, q, c)
			v := make([]float64, q*c)
			for i := range v {
				v[i] = rng.NormFloat64()
			}
			var forward, transposed mat.Dense
			forward.Mul(r, mat.NewDense(q, c, slices.Clone(v)))
			got := slices.Clone(v)
			p.invert(got, c)
			requireNear(t, what, got, forward.RawMatrix().Data, 1e-11)
			p.up(got, c)
			requireNear(t, what+", undone", got, v, 1e-9)
			transposed.Mul(r.T(), mat.NewDense(q, c, slices.Clone(v)))
			got = slices.Clone(transposed.RawMatrix().Data)
			p.down(got, c)
			requireNear(t, what+", transposed", got, v, 1e-9)
		}
	}
}

// cholesky returns R of RᵀR = Fᵀ diag(perRow) F + λI.
func cholesky(t *testing.T, f factor, m int, perRow []float64, lambda float64) *mat.TriDense {
	q := f.rank()
	sum, row := mat.NewSymDense(q, nil), make([]float64, q)
	for i := range m {
		clear(row)
		f.rows(row, i, i+1)
		sum.SymRankOne(sum, perRow[f.order()[i]], mat.NewVecDense(q, row))
	}
	for i := range q {
		sum.SetSym(i, i, sum.At(i, i)+lambda)
	}
	var c mat.Cholesky
	if !c.Factorize(sum) {
		t.Fatal("not positive definite")
	}
	r := mat.NewTriDense(q, mat.Upper, nil)
	c.UTo(r)
	return r
}
