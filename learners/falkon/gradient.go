package falkon

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/learners"
)

// powerSteps is the number of passes for λ_max(W), and stepSafety corrects this estimate, which is
// a lower bound.
const powerSteps, stepSafety = 10, 1.1

// descent is gradient descent for WX = B, the basic algorithm.
type descent struct {
	apply      func(ctx context.Context, dst, u []float64, c int) error
	c          int
	b, x, r    []float64
	norm       []float64
	tol, gamma float64
	start      float64 // residual at the start
}

// newDescent estimates λ_max(W) from r, at one pass for each product.
func newDescent(ctx context.Context, apply func(ctx context.Context, dst, u []float64, c int) error, b, x, r []float64, c int, tol float64) (*descent, error) {
	d := &descent{apply: apply, c: c, b: b, x: x, r: r, norm: scales(b, r, c), tol: tol}
	d.start = d.residual()
	largest, err := learners.LargestEigenvalue(ctx, len(b)/c, powerSteps, 0, func(ctx context.Context, dst, v []float64) error { return apply(ctx, dst, v, 1) })
	d.gamma = 1 / (stepSafety * largest)
	return d, err
}

func (d *descent) residual() float64 { return worst(squares(d.r, d.c), d.norm) }

func (d *descent) done() bool { return d.residual() <= d.tol }

// iterate makes one step, and reports false if it diverges.
func (d *descent) iterate(ctx context.Context) (bool, error) {
	next := make([]float64, len(d.x))
	for i, r := range d.r {
		next[i] = d.x[i] + d.gamma*r
	}
	wx := make([]float64, len(next))
	if err := d.apply(ctx, wx, next, d.c); err != nil {
		return false, err
	}
	d.x = next
	for i := range d.r {
		d.r[i] = d.b[i] - wx[i]
	}
	return d.residual() <= 2*math.Max(d.start, 1), nil
}
