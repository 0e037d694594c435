package gp

import "github.com/bkbtuner/bkb/gp/kernel"

// Evidence is a log marginal likelihood with its gradient.
type Evidence struct {
	Value float64
	// Kernel is the gradient with respect to the logarithms of the kernel's hyper-parameters, in
	// the order of kernel.Tunable.Parameters. It is nil if the kernel has none.
	Kernel []float64
	// Noise is the derivative with respect to log ξ².
	Noise float64
}

// LogEvidence returns the log marginal likelihood of all observations,
//
//	log p(y) = −½ (y − m)ᵀA⁻¹(y − m) − ½ log det A − (n/2) log 2π,  A = K + Λ,
//
// without its gradient. It costs O(n).
func (g *Exact) LogEvidence() float64 {
	n := g.obs.len()
	if n == 0 {
		return 0
	}
	within, _ := g.obs.withinEvidence(g.opts.NoiseVariance)
	return within - 0.5*(dot(g.resid, g.alpha)+g.chol.logDet()+float64(n)*log2Pi)
}

// evidence returns [Exact.LogEvidence] with its gradient,
//
//	∂/∂θ = ½ tr((ααᵀ − A⁻¹) ∂A/∂θ),  α = A⁻¹(y − m)
//
// (Rasmussen and Williams, (5.9)). It costs O(n³ + n²p).
func (g *Exact) evidence(memory *workspace) Evidence {
	e := Evidence{Value: g.LogEvidence()}
	_, e.Noise = g.obs.withinEvidence(g.opts.NoiseVariance)
	n := g.obs.len()
	if n == 0 {
		if t, ok := kernel.AsTunable(g.k); ok {
			e.Kernel = make([]float64, len(t.Parameters()))
		}
		return e
	}
	w := g.chol.inverse(memory)
	for i, a := range g.alpha {
		row := w[i*n:][:i+1]
		for j, v := range row {
			row[j] = 0.5 * (a*g.alpha[j] - v)
		}
	}
	for i := range n {
		e.Noise += w[i*n+i] * g.opts.NoiseVariance / g.obs.stats[i].observations()
	}
	e.Kernel = gramGradient(g.k, g.obs.x, w, g.opts.Workers)
	return e
}

// gramGradient returns Σ_ij w_ij ∂k(x_i, x_j)/∂log θ for a symmetric w, n×n, of which it reads
// the lower triangle, or nil if k has no parameters. The order of the sum does not depend on the
// number of workers.
func gramGradient(k kernel.Kernel, x kernel.Rows, w []float64, workers int) []float64 {
	t, ok := kernel.AsTunable(k)
	if !ok {
		return nil
	}
	n, p := x.Len(), len(t.Parameters())
	parts := make([]float64, (n+gradientRows-1)/gradientRows*p)
	_ = forBlocks(n, gradientRows, workers, func(i0, i1 int, s *kernel.Scratch) error {
		dst := parts[i0/gradientRows*p:][:p]
		done := addTriangle(dst, t, w, x, i0, i1, s)
		for i := i0; i < i1; i++ {
			t.AddLogGrad(dst, w[i*n+i], x, i, x, i)
			for j, v := range w[i*n:][:i] {
				if !done && v != 0 {
					t.AddLogGrad(dst, 2*v, x, i, x, j)
				}
			}
		}
		return nil
	})
	sum := make([]float64, p)
	for i, v := range parts {
		sum[i%p] += v
	}
	return sum
}

// addTriangle adds 2 Σ_ij w_ij ∂k(x_i, x_j)/∂log θ for i0 ≤ i < i1 and j < i to dst, as
// [kernel.AddLogGrads] does.
func addTriangle(dst []float64, k kernel.Tunable, w []float64, x kernel.Rows, i0, i1 int, s *kernel.Scratch) bool {
	defer s.Release(s.Mark())
	n, block := x.Len(), s.Floats((i1-i0)*i1)
	for i := i0; i < i1; i++ {
		row := block[(i-i0)*i1:][:i1]
		for j, v := range w[i*n:][:i] {
			row[j] = 2 * v
		}
		clear(row[i:])
	}
	return kernel.AddLogGrads(dst, k, block, x.Slice(i0, i1), x.Slice(0, i1), s)
}

// gradientRows is the number of rows of one task of a gradient.
const gradientRows = 32

// LeaveOneOut holds the predictions of every target from all others.
type LeaveOneOut struct {
	Mean     []float64
	Variance []float64 // noise included
}

// LeaveOneOut predicts every target from the others, without changing the
// hyper-parameters (Rasmussen and Williams, (5.10) to (5.12)). It costs O(n³).
//
//	μ_i = y_i − α_i/(A⁻¹)_ii,  σ²_i = 1/(A⁻¹)_ii.
func (g *Exact) LeaveOneOut() LeaveOneOut {
	n := g.obs.len()
	inv := g.chol.inverse(new(workspace))
	out := LeaveOneOut{make([]float64, n), make([]float64, n)}
	for i := range n {
		v := 1 / inv[i*n+i]
		out.Mean[i], out.Variance[i] = g.obs.stats[i].target(g.opts.NoiseVariance)-g.alpha[i]*v, v
	}
	return out
}
