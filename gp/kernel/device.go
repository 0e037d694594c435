package kernel

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"

	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/inorder"
	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

// onDevice returns K on the devices of the process, or nil if the CPU computes its products.
func onDevice(p *panelPrepared, opts Options, precision Precision, x Rows) gpu.Matrix {
	problem, ok := deviceProblem(p, opts, precision, x)
	if !ok {
		return nil
	}
	m, err := gpu.NewMatrix(problem)
	if err != nil {
		gpu.Warn(err)
		return nil
	}
	return m
}

// deviceProblem returns K as a problem for the devices of the process. ok is false if it
// belongs on the CPU.
func deviceProblem(p *panelPrepared, opts Options, precision Precision, x Rows) (problem gpu.Problem, ok bool) {
	single := precision == Float32
	reach := float64(reach64)
	if single {
		reach = reach32
	}
	f := p.expand(opts.Distances, reach)
	g, scale, ok := deviceFunction(f, p.y.D)
	if !ok || x == nil {
		return problem, false
	}
	shift := make([]float64, p.y.D)
	problem = gpu.Problem{Function: g, Single: single, Y: deviceRows(p.y.N, p.y.D, shift, scale, func(i int) []float64 { return p.y.Data[i*p.y.D:] })}
	switch x := x.(type) {
	case *Points[float64]:
		problem.X = deviceRows(x.n, x.d, shift, scale, x.Row)
	case *Points[float32]:
		problem.X = deviceRows(x.n, x.d, shift, scale, x.Row)
	default:
		return problem, false
	}
	if !gpu.Wanted(problem) {
		return problem, false
	}
	if g.Statistic != gpu.Dot {
		copy(shift, centre(p.y)) // of M·d steps, which small products on the CPU need not pay
	}
	return problem, true
}

// centre returns the mean of the rows.
func centre(y panel.Rows[float64]) []float64 {
	mean := make([]float64, y.D)
	for i := range y.N {
		for c, v := range y.Data[i*y.D:][:y.D] {
			mean[c] += (v - mean[c]) / float64(i+1)
		}
	}
	return mean
}

// deviceRows are (x − shift)·scale.
func deviceRows[T Float](n, d int, shift, scale []float64, row func(i int) []T) gpu.Rows {
	return gpu.Rows{N: n, D: d, Row: func(dst []float64, i int) {
		for c, v := range row(i)[:d] {
			dst[c] = (float64(v) - shift[c]) * scale[c]
		}
	}}
}

// deviceFunction returns f as a function of coordinates that are multiplied by scale, if
// the devices have it. The weights, and P0 of a distance, are in the scale.
func deviceFunction(f panel.Function, d int) (g gpu.Function, scale []float64, ok bool) {
	statistics := map[simd.Statistic]gpu.Statistic{simd.Squared: gpu.Squared, simd.Manhattan: gpu.Manhattan, simd.Dot: gpu.Dot}
	if g.Statistic, ok = statistics[f.Statistic]; !ok || f.Norms || f.Phase != nil {
		return g, nil, false
	}
	unit := f.P0 // of the statistic
	switch f.Func {
	case simd.ExpScaled:
		g.Profile, unit = gpu.Decay, -f.P0*math.Log2E
		ok = g.Statistic != gpu.Dot
	case simd.Matern12:
		g.Profile = gpu.Matern12
	case simd.Matern32:
		g.Profile = gpu.Matern32
	case simd.Matern52:
		g.Profile = gpu.Matern52
	case simd.Affine:
		g.Profile, g.P0, g.P1, g.Exponent, unit = gpu.Power, f.P0, f.P1, 1, 1
		ok = g.Statistic == gpu.Dot
	case simd.Power:
		g.Profile, g.P0, g.P1, g.Exponent, unit = gpu.Power, f.P0, f.P1, f.Power, 1
	default:
		return g, nil, false
	}
	g.Factor = f.Factor
	if g.Factor == 0 {
		g.Factor = 1
	}
	g.Expand, g.Reach = f.Expand, f.Reach*unit
	scale = make([]float64, d)
	for c := range scale {
		w := unit
		if f.Weights != nil {
			w *= f.Weights[c]
		}
		if g.Statistic != gpu.Manhattan {
			w = math.Sqrt(w)
		}
		scale[c] = w
	}
	return g, scale, ok
}

// leaveDevice frees the memory of the device. If err is not nil, it reports that later
// products run on the CPU.
func (o *Operator) leaveDevice(err error) {
	if o.gpu == nil {
		return
	}
	if err != nil {
		gpu.Warn(err)
	}
	if err := o.gpu.Close(); err != nil {
		gpu.Warn(err)
	}
	o.gpu = nil
}

// devicePass is a pass in steps, each of all rows. The functions of the caller run on its
// goroutine between them. If the device fails, the CPU makes the step that failed,
// or all of KᵀKv.
func (o *Operator) devicePass(ctx context.Context, r request, c int) error {
	if r.forward && r.backward && r.u == nil && r.f == nil && ctx.Err() == nil {
		// The steps below find where a number is not finite.
		err := o.gpu.Gram(o.acc, r.v, c)
		if err == nil && checkFiniteMatrix("the product", o.acc, c, 0) == nil {
			return nil
		}
		if err != nil {
			o.leaveDevice(err)
			return o.pass(ctx, r, c)
		}
	}
	t := r.u
	if r.forward {
		t = r.dst
		if r.backward {
			t = make([]float64, o.n*c)
		}
		if err := o.deviceForward(ctx, t, r.v, c); err != nil {
			return err
		}
		if r.u != nil {
			addTo(t, r.u)
		}
		if err := checkFiniteMatrix("Kv", t, c, 0); err != nil {
			return err
		}
	}
	if r.f != nil {
		for i := 0; i < o.n; i += taskRows {
			if err := ctx.Err(); err != nil {
				return err
			}
			part := t[i*c : min(i+taskRows, o.n)*c]
			r.f(i, part)
			if err := checkFiniteMatrix("f(Kv)", part, c, i); err != nil {
				return err
			}
		}
	}
	if !r.backward {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.gpu != nil {
		err := o.gpu.ApplyT(o.acc, t, c)
		if err == nil {
			return nil
		}
		o.leaveDevice(err)
	}
	return o.pass(ctx, request{backward: true, dst: r.dst, u: t}, c)
}

// deviceForward sets dst = K·v.
func (o *Operator) deviceForward(ctx context.Context, dst, v []float64, c int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := o.gpu.Apply(dst, v, c)
	if err == nil {
		return nil
	}
	o.leaveDevice(err)
	v = slices.Clone(v) // o.v is packed again
	return o.pass(ctx, request{forward: true, dst: dst, v: v}, c)
}

// Gram is K(X, X) for learners, whose matrices can be large enough for a device
// (docs/gpu.md). There it is computed when it is needed, and factored without being copied.
// Results of the device differ in rounding.
type Gram struct {
	kernel   Kernel
	x        Rows
	diagonal []float64
	device   gpu.Gramian // or nil
}

// NewGram returns K(X, X), which the caller closes. The errors are those of [Gramian].
func NewGram(k Kernel, x Rows) (*Gram, error) {
	if err := checkPair(k, x, x); err != nil {
		return nil, err
	}
	g := &Gram{kernel: k, x: x, diagonal: make([]float64, x.Len())}
	for i := range g.diagonal {
		g.diagonal[i] = k.Diag(x, i)
	}
	size := gpu.Rows{N: x.Len(), D: x.Dim()}
	if !gpu.Wanted(gpu.Problem{X: size, Y: size}) {
		return g, nil // the CPU prepares its own panels
	}
	p, ok := Prepare(k, x).(*panelPrepared)
	if !ok {
		return g, nil
	}
	if problem, ok := deviceProblem(p, Options{Distances: DirectDistances}, Float64, x); ok {
		m, err := gpu.NewGramian(problem)
		if err != nil {
			gpu.Warn(err)
			return g, nil
		}
		g.device = m
	}
	return g, nil
}

// Diagonal returns the diagonal of K. Do not change it.
func (g *Gram) Diagonal() []float64 { return g.diagonal }

// Matrix returns K, n×n row-major.
func (g *Gram) Matrix() ([]float64, error) {
	n := len(g.diagonal)
	if g.device != nil {
		out := make([]float64, n*n)
		err := g.device.Fill(out)
		if err == nil {
			for i, v := range g.diagonal {
				out[i*n+i] = v
			}
			return out, checkFiniteMatrix("K(X, X)", out, n, 0)
		}
		g.leave(err)
	}
	return Gramian(g.kernel, g.x)
}

// Factor factors K + shift·I on the device that has K, as gpu.NewFactor does. It sets the lower
// triangle of l, n×n. K is computed again if it is needed later. done is false if K is on the
// CPU, does not fit on the device, or has numbers that are not finite, and if the device failed.
func (g *Gram) Factor(shift, tolerance float64, perm []int) (l []float64, f gpu.Factor, rank int, done bool) {
	n := len(g.diagonal)
	if g.device == nil || !g.device.Stored() || checkFiniteMatrix("the diagonal", g.diagonal, n, 0) != nil {
		return nil, nil, 0, false
	}
	diagonal := make([]float64, n)
	for i, v := range g.diagonal {
		diagonal[i] = v + shift
	}
	l = make([]float64, n*n)
	f, rank, err := g.device.Factor(l, diagonal, tolerance, perm)
	g.leave(err)
	if err != nil {
		return nil, nil, 0, false
	}
	if f != nil && checkLower(l, n, rank) != nil {
		if err := f.Close(); err != nil {
			gpu.Warn(err)
		}
		return nil, nil, 0, false
	}
	return l, f, rank, true
}

// checkLower checks the lower triangle of L, n×rank with rows n apart.
func checkLower(l []float64, n, rank int) error {
	const piece = 64
	return inorder.Blocks(n, piece, runtime.GOMAXPROCS(0), func(i0, i1 int) error {
		for i := i0; i < i1; i++ {
			if err := checkFiniteMatrix("L", l[i*n:][:min(i+1, rank)], n, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// leave frees the memory of the device, after an error or at the end.
func (g *Gram) leave(err error) {
	if g.device == nil {
		return
	}
	if err = errors.Join(err, g.device.Close()); err != nil {
		gpu.Warn(err)
	}
	g.device = nil
}

// Close frees the memory on a device. A factor stays.
func (g *Gram) Close() { g.leave(nil) }

// LargeGramian is the matrix of a [Gram].
func LargeGramian(k Kernel, x Rows) ([]float64, error) {
	g, err := NewGram(k, x)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.Matrix()
}
