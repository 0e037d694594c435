package falkon

import (
	"context"
	"math"
)

const (
	// powerSteps is the largest number of iterations of the power method for λ_max(W),
	// which ends when the estimate changes by less than powerChange. stepSafety
	// corrects the estimate, which is a lower bound.
	powerSteps  = 20
	powerChange = 0.01
	stepSafety  = 1.1
)

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
	largest, err := largestEigenvalue(ctx, apply, len(b)/c)
	d.gamma = 1 / (stepSafety * largest)
	return d, err
}

// largestEigenvalue is the power method. It starts from ones with varied additions,
// which are almost never orthogonal to an eigenvector of a preconditioned system.
func largestEigenvalue(ctx context.Context, apply func(ctx context.Context, dst, u []float64, c int) error, q int) (float64, error) {
	u, wu := make([]float64, q), make([]float64, q)
	for i := range u {
		u[i] = 1 + float64(i%7)/7
	}
	last := 0.0
	for range powerSteps {
		norm := norms(u, 1)[0]
		for i := range u {
			u[i] /= norm
		}
		if err := apply(ctx, wu, u, 1); err != nil {
			return 0, err
		}
		value := norms(wu, 1)[0]
		u, wu = wu, u
		if math.Abs(value-last) <= powerChange*value {
			return value, nil
		}
		last = value
	}
	return last, nil
}

func (d *descent) residual() float64 {
	largest := 0.0
	for k, r := range norms(d.r, d.c) {
		if e := relative(r, d.norm[k]); !(e <= largest) {
			largest = e
		}
	}
	return largest
}

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
