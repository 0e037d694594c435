package gp

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// FeatureMap is a map φ from inputs to ℝᴹ with E φ(x)ᵀφ(y) = k(x, y), such as
// the random features of package sketch.
type FeatureMap interface {
	// Features returns M.
	Features() int
	// Apply sets row i of dst, x.Len()×M row-major, to φ(x_i).
	Apply(dst []float64, x kernel.Rows) error
}

// Path is one function drawn from a sparse posterior, which can be evaluated anywhere,
// again and again. It is not affected by later changes of the posterior and is safe for
// concurrent use.
type Path struct {
	emb      *embedding
	mean     float64
	weights  []float64  // of z
	features FeatureMap // nil for none
	theta    []float64  // of φ
	workers  int
}

// Path draws a function by Matheron's rule on the inducing points (pathwise
// conditioning, Wilson et al. 2020), in place of the q³ of [Sparse.Sample].
//
//	f(x) = m(x) + z(x)ᵀw̃ + φ(x)ᵀθ − z(x)ᵀL_D⁻¹Φ_Dθ,
//	w̃ ~ N(w, V⁻¹), θ ~ N(0, I).
//
// Its mean is μ̃. Its covariance is that of [Sparse.Covariance] with φᵀφ for k in the
// part outside the span of the inducing points. SoR has no such part, and features may
// be nil. It costs O(m² + m·M). Its errors are those of features.
func (s *Sparse) Path(features FeatureMap, rng *rand.Rand) (*Path, error) {
	m := s.emb.len()
	p := &Path{emb: s.emb, mean: s.opts.Mean, weights: make([]float64, m), workers: s.opts.Workers}
	for j := range p.weights {
		p.weights[j] = rng.NormFloat64()
	}
	s.settled()
	s.varL.backward(p.weights)
	addTo(p.weights, s.reg.w)
	if s.opts.Approximation == SoR {
		return p, nil
	}
	if features == nil {
		return nil, errors.New("gp: a path needs features for the part of the kernel outside the span of the inducing points; pass features, or use SoR")
	}
	p.features, p.theta = features, make([]float64, features.Features())
	for j := range p.theta {
		p.theta[j] = rng.NormFloat64()
	}
	atD, err := p.prior(s.emb.rows)
	if err != nil {
		return nil, err
	}
	s.emb.l.forward(atD)
	for j, v := range atD {
		p.weights[j] -= v
	}
	return p, nil
}

// prior returns φ(x)ᵀθ for every row.
func (p *Path) prior(x kernel.Rows) ([]float64, error) {
	n, m := x.Len(), len(p.theta)
	phi, out := make([]float64, n*m), make([]float64, n)
	if err := p.features.Apply(phi, x); err != nil {
		return nil, fmt.Errorf("gp: features: %w", err)
	}
	gemv(out, phi, p.theta, n, m)
	return out, nil
}

// At returns f at every row of x. It costs O(m² + md) a row, and the cost of the
// features. Its errors are those of [Sparse.Predict] and of the features.
func (p *Path) At(x kernel.Rows) ([]float64, error) {
	if err := checkRows("x", p.emb.k, x, p.emb.rows); err != nil {
		return nil, err
	}
	n := x.Len()
	out := make([]float64, n)
	err := forBlocks(n, predictBlock, p.workers, func(i0, i1 int, _ *kernel.Scratch) error {
		part := x.Slice(i0, i1)
		z, _, _, err := p.emb.embed(part, 1)
		if err != nil {
			return err
		}
		gemv(out[i0:i1], z, p.weights, i1-i0, p.emb.len())
		for i := range out[i0:i1] {
			out[i0+i] += p.mean
		}
		if p.features == nil {
			return nil
		}
		prior, err := p.prior(part)
		addTo(out[i0:i1], prior)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
