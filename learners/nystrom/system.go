package nystrom

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
)

const (
	powerSteps = 20
	// safety corrects the estimate of an eigenvalue, which is a lower bound.
	safety = 1.1
	// stepRows is the number of rows for the estimate of the step size.
	stepRows = 4000
)

// system gives the products of Aw = b, with A = Pᵀ(K_nMᵀK_nM + λnK_MM)P and b = PᵀK_nMᵀy.
type system struct {
	f   *run
	k   *kernel.Operator
	rhs []float64 // b, m×c
	// size is ‖y‖².
	size float64
}

func (f *run) newSystem() (*system, error) {
	y, err := learners.Targets(f.ctx, f.train)
	if err != nil {
		return nil, err
	}
	k, err := kernel.NewOperator(f.Kernel, f.train, f.basis.points, kernel.Options{Workers: f.o.Workers, Precision: f.Precision, Distances: f.Distances})
	if err != nil {
		return nil, err
	}
	s := &system{f: f, k: k, rhs: make([]float64, f.basis.m*f.c)}
	weighted := y
	if f.rows != nil {
		weighted = slices.Clone(y)
		scaleRows(weighted, f.c, f.rows)
	}
	if err := k.ApplyT(f.ctx, s.rhs, weighted); err != nil {
		k.Close()
		return nil, err
	}
	f.basis.pull(s.rhs, f.c)
	for i, v := range y {
		s.size += v * weighted[i]
	}
	return s, nil
}

// apply returns Aw.
func (s *system) apply(ctx context.Context, w []float64) ([]float64, error) {
	b, c := s.f.basis, s.f.c
	out := b.coefficients(w, c)
	if err := gram(ctx, s.k, out, out, c, s.f.rows); err != nil {
		return nil, err
	}
	b.pull(out, c)
	b.addPenalty(out, w, s.f.Lambda*float64(s.f.n), c)
	return out, nil
}

// gram sets dst to KᵀSKv, for c columns and the weights s of the rows of K.
func gram(ctx context.Context, k *kernel.Operator, dst, v []float64, c int, s []float64) error {
	if s == nil {
		return k.Gram(ctx, dst, v, nil)
	}
	return k.GramFunc(ctx, dst, v, func(row int, t []float64) { scaleRows(t, c, s[row:][:len(t)/c]) })
}

// objective returns (1/n)‖f(X) − y‖² + λ‖f‖² of w with the residual b − Aw.
func (s *system) objective(w, residual []float64) float64 {
	v := s.size
	for i, x := range w {
		v -= x * (s.rhs[i] + residual[i])
	}
	return max(v, 0) / float64(s.f.n)
}

// relative returns the largest relative residual of the outputs.
func (s *system) relative(residual []float64) float64 {
	c := s.f.c
	num, den := make([]float64, c), make([]float64, c)
	for i, v := range residual {
		num[i%c] += v * v
		den[i%c] += s.rhs[i] * s.rhs[i]
	}
	return relative(num, den)
}

// curvature estimates from a uniform sample of the rows two numbers. s is the largest
// eigenvalue of PᵀK_nMᵀK_nM P/n + λPᵀK_MM P, and β is the largest ‖Pᵀk_M(x)‖².
func (f *run) curvature() (s, beta float64, err error) {
	x, weights, err := f.sample()
	if err != nil {
		return 0, 0, err
	}
	k, err := kernel.NewOperator(f.Kernel, kernel.FromRows(x), f.basis.points, kernel.Options{Workers: f.o.Workers, Distances: f.Distances})
	if err != nil {
		return 0, 0, err
	}
	defer k.Close()
	b, share := f.basis, 1/float64(x.Len())
	s, err = learners.LargestEigenvalue(f.ctx, b.m, powerSteps, f.o.Seed, func(ctx context.Context, dst, v []float64) error {
		c := b.coefficients(v, 1)
		if err := gram(ctx, k, dst, c, 1, weights); err != nil {
			return err
		}
		for i := range dst {
			dst[i] *= share
		}
		b.pull(dst, 1)
		b.addPenalty(dst, v, f.Lambda, 1)
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	beta, err = f.largestFeature(x, weights)
	return s, beta, err
}

// largestFeature returns the largest s‖Pᵀk_M(x)‖² of some rows with weights s. In
// whitened coordinates it is at most s·k(x, x).
func (f *run) largestFeature(x kernel.Rows, weights []float64) (float64, error) {
	weight := func(i int) float64 {
		if weights == nil {
			return 1
		}
		return weights[i]
	}
	if f.basis.l != nil {
		d, err := kernel.Diagonal(f.Kernel, x)
		if err != nil {
			return 0, err
		}
		largest := 0.0
		for i, v := range d {
			largest = max(largest, weight(i)*v)
		}
		return largest, nil
	}
	largest, m := 0.0, f.basis.m
	for i0 := 0; i0 < x.Len(); i0 += blockRows {
		a, err := kernel.Matrix(f.Kernel, x.Slice(i0, min(i0+blockRows, x.Len())), f.basis.points)
		if err != nil {
			return 0, err
		}
		for i := 0; i+m <= len(a); i += m {
			sum := 0.0
			for _, v := range a[i : i+m] {
				sum += v * v
			}
			largest = max(largest, weight(i0+i/m)*sum)
		}
	}
	return largest, nil
}

// sample returns stepRows different rows, or all, and their weights.
func (f *run) sample() (kernel.Rows, []float64, error) {
	idx := make([]int, min(f.n, stepRows))
	order := stream.NewPermutation(stream.Derive(f.o.Seed, "nystrom step", 0), uint64(f.n))
	for i := range idx {
		idx[i] = int(order.At(uint64(i)))
	}
	var weights []float64
	if f.rows != nil {
		for _, i := range idx {
			weights = append(weights, f.rows[i])
		}
	}
	x, err := kernel.Select(f.ctx, f.train, idx)
	if err != nil {
		return nil, nil, err
	}
	err = kernel.CheckFinite("x", x)
	var bad *kernel.NonFiniteError
	if errors.As(err, &bad) {
		bad.Row = idx[bad.Row]
	}
	return x, weights, err
}

// reciprocal is 1/v, or 1 for v = 0, where every step is equally good.
func reciprocal(v float64) float64 {
	if v == 0 || math.IsNaN(v) {
		return 1
	}
	return 1 / v
}
