package gp

import (
	"errors"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/simd"
)

// Options holds the settings of an [Exact] posterior.
type Options struct {
	// NoiseVariance is ξ² > 0, in the square of the units of the targets. It is the
	// total λ of (6.3), not the per-sample λ of ridge regression, see sketch.Ridge.
	NoiseVariance float64
	// Mean is the prior mean of the process, a constant.
	Mean float64
	// Workers is the number of goroutines that share a prediction or a gradient, or 0
	// for runtime.GOMAXPROCS(0). It changes no bit.
	Workers int
}

// Exact is the exact posterior of a Gaussian process given n observations with Gaussian
// noise, (6.3) and (6.4) of Carratino (2020), as the package comment says.
//
// It does not change, so that several goroutines may read at once.
type Exact struct {
	k    kernel.Kernel
	opts Options

	obs    *observations
	chol   *cholesky       // of K + Λ
	jitter float64         // added to the diagonal of K + Λ, usually 0
	prep   kernel.Prepared // of obs.x, nil when empty or in a fit
	resid  []float64       // ȳ − m
	alpha  []float64       // (K + Λ)⁻¹(ȳ − m)
}

// NewExact returns the posterior of a process with kernel k given data. If data is the
// zero Data, that is the prior. It costs O(n³). Its errors are [*ValueError] and [*ShapeError]
// for settings and targets, [*NotPSDError] for the kernel, and for the inputs those of k.Check,
// [*kernel.DimensionError] and [*kernel.NonFiniteError].
func NewExact(k kernel.Kernel, data Data, opts Options) (*Exact, error) {
	if k == nil {
		return nil, errors.New("gp: no kernel")
	}
	if err := checkVariance(opts.NoiseVariance); err != nil {
		return nil, err
	}
	if err := checkMean(opts.Mean); err != nil {
		return nil, err
	}
	g := &Exact{k: k, opts: opts, obs: new(observations), chol: new(cholesky)}
	if err := data.check(k, nil, 0); err != nil || data.len() == 0 {
		return g, err
	}
	g.obs = newObservations(data, false)
	if err := g.refactor(new(workspace)); err != nil {
		return nil, err
	}
	g.prep = kernel.Prepare(k, g.obs.x)
	g.solve()
	return g, nil
}

// refactor computes the factor from the kernel, in memory of w.
func (g *Exact) refactor(w *workspace) error {
	n := g.obs.len()
	a := simd.Sized(&w.gram, n*n)
	err := kernel.GramianTo(a, g.k, g.obs.x)
	if err != nil {
		return err
	}
	for i := range n {
		a[i*n+i] += g.obs.stats[i].variance(g.opts.NoiseVariance, 0)
	}
	g.chol, g.jitter, err = newCholesky("K + noise", a, n, w)
	return err
}

// workspace is memory for the matrices of one process after the other, as in a fit, where fresh
// pages took a third of the time. A factor in it is valid until the next one.
type workspace struct{ gram, factor, inverse []float64 }

// solve computes the residuals and α. It costs O(n²).
func (g *Exact) solve() {
	g.resid = make([]float64, g.obs.len())
	for i := range g.resid {
		g.resid[i] = g.obs.stats[i].target(g.opts.NoiseVariance) - g.opts.Mean
	}
	g.alpha = append([]float64(nil), g.resid...)
	g.chol.solveL(g.alpha)
	g.chol.solveLT(g.alpha)
}

// LogDet returns log det(I + Λ^−½KΛ^−½), twice the information that the observations
// have about the function. Its maximum is γ in §6.4 of Carratino (2020).
func (g *Exact) LogDet() float64 {
	s := g.chol.logDet()
	for i := range g.obs.len() {
		s -= math.Log(g.obs.stats[i].variance(g.opts.NoiseVariance, 0))
	}
	return s
}

// predictBlock is the number of rows of one task of a prediction.
const predictBlock = 128

// Predict returns the posterior mean and variance of the function at every row of x,
// without observation noise. The variance is at least 1e-12 of the prior variance. It
// costs O(n²) a row. Its errors are those for x in [NewExact], and [*NotPSDError] for a
// variance that is negative beyond rounding.
func (g *Exact) Predict(x kernel.Rows) (mean, variance []float64, err error) {
	if err := checkRows("x", g.k, x, g.obs.x); err != nil {
		return nil, nil, err
	}
	mean, variance = slices.Repeat([]float64{g.opts.Mean}, x.Len()), make([]float64, x.Len())
	n := g.obs.len()
	err = forBlocks(x.Len(), predictBlock, g.opts.Workers, func(i0, i1 int, s *kernel.Scratch) error {
		mark := s.Mark()
		defer s.Release(mark)
		v := s.Floats((i1 - i0) * n)
		if err := g.cross(v, x, i0, i1, s); err != nil {
			return err
		}
		for i := i0; i < i1 && n > 0; i++ {
			mean[i] += dot(v[(i-i0)*n:(i-i0+1)*n], g.alpha)
		}
		g.chol.solveRowsL(v, i1-i0)
		for i := i0; i < i1; i++ {
			prior := g.k.Diag(x, i)
			r := norm(v[(i-i0)*n : (i-i0+1)*n])
			c, err := clampVariance("posterior variance", i, prior-r*r, prior)
			if err != nil {
				return err
			}
			variance[i] = c
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return mean, variance, nil
}

// cross fills v, (i1−i0)×n, with K(x, X).
func (g *Exact) cross(v []float64, x kernel.Rows, i0, i1 int, s *kernel.Scratch) error {
	n := g.obs.len()
	if n == 0 {
		return nil
	}
	g.prep.Fill(v, n, x, i0, i1, s)
	return checkKernel(v, n, i0)
}

// checkKernel returns an error for kernel values that are not finite, in rows from row0.
func checkKernel(v []float64, cols, row0 int) error {
	for i, kv := range v {
		if !isFinite(kv) {
			return &kernel.NonFiniteError{What: "K(x, X)", Row: row0 + i/cols, Col: i % cols, Value: kv}
		}
	}
	return nil
}
