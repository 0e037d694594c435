package bandit

import (
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// FeatureMap is a map φ from inputs to ℝᴹ with E φ(x)ᵀφ(y) = k(x, y), such as the random
// features of package sketch.
type FeatureMap interface {
	// Features returns M.
	Features() int
	// Apply sets row i of dst, x.Len()×M row-major, to φ(x_i).
	Apply(dst []float64, x kernel.Rows) error
}

// Static is GP-UCB on a finite number of features, a comparator that starves. Far from the
// span of the features, or with more data than features, σ̃ is too small and arms are never
// tried (variance starvation, Carratino 2020, §7.1.3). It is here for comparison. Use BKB.
type Static struct {
	BKB
	given    kernel.Rows // the arms, before they were mapped
	features FeatureMap
}

var _ Policy = (*Static)(nil)

// NewFeatures returns Bayesian linear regression on the M features of a map, for
// Euclidean arms, such as the random Fourier features of package sketch. cfg.Kernel must be the kernel that the features approximate.
// It is not evaluated. A step costs O(AM + M²). Its errors are those of [NewGPUCB] and
// those of the map.
func NewFeatures(cfg Config, arms kernel.Rows, features FeatureMap) (*Static, error) {
	if features == nil {
		return nil, errors.Join(cfg.Validate(), &EmptyError{What: "features"})
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := checkArms(cfg.Kernel, arms); err != nil {
		return nil, err
	}
	m := features.Features()
	linear, err := kernel.NewLinear(1)
	if err != nil {
		return nil, err
	}
	p := &Static{given: arms, features: features}
	mapped, err := p.remap(arms)
	if err != nil {
		return nil, err
	}
	unit := make([]float64, m*m)
	for i := range m {
		unit[i*m+i] = 1
	}
	cfg.Beta = inputs{cfg.withDefaults().Beta, max(arms.Dim(), 1), cfg.Kernel.Bound()}
	cfg.Kernel = linear
	s, err := newSparseOn(cfg, Sparsity{Approximation: gp.DTC}, mapped, kernel.NewPoints(m, m, unit), false)
	if err != nil {
		return nil, err
	}
	s.frozen = true
	p.BKB = BKB{s}
	return p, nil
}

// remap returns the features of inputs.
func (p *Static) remap(x kernel.Rows) (kernel.Rows, error) {
	m := p.features.Features()
	data := make([]float64, x.Len()*m)
	if err := p.features.Apply(data, x); err != nil {
		return nil, fmt.Errorf("bandit: features of the arms: %w", err)
	}
	return kernel.NewPoints(x.Len(), m, data), nil
}

// inputs is a rule for b with the dimension and κ² of the inputs instead of those of
// the features.
type inputs struct {
	Confidence
	dim   int
	bound float64
}

func (c inputs) Beta(s State) float64 {
	s.Dim, s.Bound = c.dim, c.bound
	return c.Confidence.Beta(s)
}

// Arms returns the arms.
func (p *Static) Arms() kernel.Rows { return p.given }

// Learn takes rewards of inputs that need not be arms.
func (p *Static) Learn(x kernel.Rows, y []float64) error {
	if x == nil {
		return p.BKB.Learn(nil, y)
	}
	mapped, err := p.remap(x)
	if err != nil {
		return err
	}
	return p.BKB.Learn(mapped, y)
}
