package avgsgd

import (
	"fmt"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// primal is the recursion in weights, w ∈ ℝᵐˣᶜ, on rows of m coordinates.
type primal struct {
	m, c int
	step float64
	t    int
	w, u []float64
	out  []float64
	row  []float64
}

func newPrimal(m, c int, step float64) *primal {
	return &primal{
		m: m, c: c, step: step,
		w: make([]float64, m*c), u: make([]float64, m*c), out: make([]float64, c), row: make([]float64, m),
	}
}

// rows makes a step for every row of x, dense or sparse, and returns the sum of
// the losses before them.
func (p *primal) rows(x kernel.Rows, y []float64) (loss float64, err error) {
	switch x := x.(type) {
	case *kernel.Points[float64]:
		for i := range x.Len() {
			loss += p.dense(x.Row(i), y[i*p.c:][:p.c])
		}
	case *kernel.Points[float32]:
		for i := range x.Len() {
			for j, v := range x.Row(i) {
				p.row[j] = float64(v)
			}
			loss += p.dense(p.row, y[i*p.c:][:p.c])
		}
	case *kernel.CSR[float64]:
		loss = sparseRows(p, x, y)
	case *kernel.CSR[float32]:
		loss = sparseRows(p, x, y)
	default:
		return 0, &kernel.TypeError{Kernel: "linear", Got: fmt.Sprintf("%T", x), Want: "dense or sparse rows"}
	}
	return loss, nil
}

// dense makes the step for one row in O(mc).
func (p *primal) dense(x, y []float64) (loss float64) {
	p.t++
	multiply(p.out, x, p.w, p.c)
	loss = p.residuals(y)
	v := blas64.Vector{N: p.m, Inc: 1, Data: x}
	if p.c == 1 {
		blas64.Axpy(p.out[0], v, blas64.Vector{N: p.m, Inc: 1, Data: p.w})
		blas64.Axpy(float64(p.t)*p.out[0], v, blas64.Vector{N: p.m, Inc: 1, Data: p.u})
		return loss
	}
	d := blas64.Vector{N: p.c, Inc: 1, Data: p.out}
	blas64.Ger(1, v, d, blas64.General{Rows: p.m, Cols: p.c, Stride: p.c, Data: p.w})
	blas64.Ger(float64(p.t), v, d, blas64.General{Rows: p.m, Cols: p.c, Stride: p.c, Data: p.u})
	return loss
}

// residuals turns outputs into γ(y − f) and returns ‖f − y‖².
func (p *primal) residuals(y []float64) (loss float64) {
	for j, f := range p.out {
		e := y[j] - f
		loss += e * e
		p.out[j] = p.step * e
	}
	return loss
}

func sparseRows[T kernel.Float](p *primal, x *kernel.CSR[T], y []float64) (loss float64) {
	for i := range x.Len() {
		col, val := x.Row(i)
		loss += sparse(p, col, val, y[i*p.c:][:p.c])
	}
	return loss
}

// sparse makes the step for one row, in O(c) for each stored element.
func sparse[T kernel.Float](p *primal, col []int32, val []T, y []float64) (loss float64) {
	p.t++
	clear(p.out)
	for k, j := range col {
		for o, w := range p.w[int(j)*p.c:][:p.c] {
			p.out[o] += float64(val[k]) * w
		}
	}
	loss = p.residuals(y)
	for k, j := range col {
		v := float64(val[k])
		w, u := p.w[int(j)*p.c:][:p.c], p.u[int(j)*p.c:][:p.c]
		for o, delta := range p.out {
			w[o] += delta * v
			u[o] += float64(p.t) * delta * v
		}
	}
	return loss
}
