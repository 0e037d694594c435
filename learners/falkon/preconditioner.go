package falkon

import (
	"math"

	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/gpu"
)

// preconditioner is B of the generalised algorithm, which is never formed.
//
//	RᵀR = Fᵀ diag(w/n) F + λI,   c = n^−½ B'β with B' taking β to the coefficients of R⁻¹β,
//
// Then BBᵀ = (K diag(w) K + λnK)⁻¹ on the span of the centres.
type preconditioner struct {
	factor
	workers int
	g       blocked.Matrix[float64] // R transposed, lower triangular, and 0 above
	solver  *solver
	block   []float64
}

// assembleRows is the number of rows of F that are squared at a time.
const assembleRows = 256

func newPreconditioner(f factor, workers int) *preconditioner {
	q := f.rank()
	return &preconditioner{
		factor: f, workers: workers,
		block: make([]float64, min(assembleRows, len(f.order()))*q),
	}
}

// set makes R for the weights w/n of the centres and λ. It reports false if the sum is
// not positive definite because of rounding. It costs (M + q/3)q² operations.
func (p *preconditioner) set(perRow []float64, lambda float64) bool {
	if whole, done := p.setOnDevice(perRow, lambda); done {
		return whole
	}
	q, order := p.rank(), p.order()
	p.clear()
	for i := range q {
		p.g.Data[i*q+i] = lambda
	}
	for i0 := 0; i0 < len(order); i0 += assembleRows {
		i1 := min(i0+assembleRows, len(order))
		cols := p.rows(p.block, i0, i1)
		for i := i0; i < i1; i++ {
			s := math.Sqrt(perRow[order[i]])
			row := p.block[(i-i0)*cols:][:cols]
			for j := range row {
				row[j] *= s
			}
		}
		blocked.Syrk(p.workers, true, blocked.New(i1-i0, cols, p.block[:(i1-i0)*cols]), 1, 1, p.g.Sub(0, 0, cols, cols))
	}
	whole := blocked.Cholesky(p.workers, p.g) == q
	p.solver = newSolver(p.g, nil)
	return whole
}

// clear makes R zero.
func (p *preconditioner) clear() {
	if q := p.rank(); p.g.Rows != q {
		p.g = blocked.New[float64](q, q, nil) // is 0
		return
	}
	clear(p.g.Data)
}

// setOnDevice is set where the factor is on a device. done is false if it is not, or if the
// device failed.
func (p *preconditioner) setOnDevice(perRow []float64, lambda float64) (whole, done bool) {
	p.solver.leave(nil)
	f := p.onDevice()
	if f == nil || f.device == nil {
		return false, false
	}
	weights := make([]float64, len(p.order()))
	for i, k := range p.order() {
		weights[i] = perRow[k]
	}
	p.clear()
	g, err := f.device.Gram(p.g.Data, weights, lambda)
	if err != nil {
		gpu.Warn(err)
		return false, false
	}
	p.solver = newSolver(p.g, g)
	return g != nil, true
}

// close frees the memory on devices. Solutions go on on the CPU.
func (p *preconditioner) close() {
	p.solver.leave(nil)
	p.onDevice().leave(nil)
}

// up overwrites β, q×c, by the coordinates R⁻¹β, and down overwrites v by R⁻ᵀv.
func (p *preconditioner) up(v []float64, c int)   { p.solve(true, v, c) }
func (p *preconditioner) down(v []float64, c int) { p.solve(false, v, c) }

func (p *preconditioner) solve(trans bool, v []float64, c int) {
	p.solver.solve(p.workers, trans, v[:p.rank()*c], c)
}

// invert overwrites coordinates v by β = Rv, as the inverse of up. It reads the half of
// R that is not 0, and squares of 0 beside the diagonal.
func (p *preconditioner) invert(v []float64, c int) {
	out := make([]float64, len(v))
	for i0 := 0; i0 < p.rank(); i0 += assembleRows {
		i1 := min(i0+assembleRows, p.rank())
		multiply(p.workers, true, p.g.Sub(i0, 0, i1, i1), v[i0*c:i1*c], 1, out[:i1*c], c)
	}
	copy(v, out)
}

// multiply sets y = op(a)x + beta·y for x and y of c columns.
func multiply(workers int, trans bool, a blocked.Matrix[float64], x []float64, beta float64, y []float64, c int) {
	if c == 1 {
		blocked.Gemv(workers, trans, a, x, 1, beta, y)
		return
	}
	blocked.Gemm(workers, trans, a, false, blocked.New(len(x)/c, c, x), 1, beta, blocked.New(len(y)/c, c, y))
}
