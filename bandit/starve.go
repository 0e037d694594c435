package bandit

import (
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// Static is GP-UCB on a posterior whose finite rank never changes. These are the
// comparators that starve. Far from the span of their few functions, or with more data
// than functions, σ̃ is too small and arms are never tried (variance starvation,
// Carratino 2020, §7.1.3). They are here for comparison. Use BKB.
type Static struct {
	BKB
	given kernel.Rows // the arms, before they were mapped
	remap func(kernel.Rows) (kernel.Rows, error)
}

var _ Policy = (*Static)(nil)

// NewSubset returns the subset of regressors (SoR) on inducing points drawn uniformly
// among the arms, with σ̃² = λ‖L_V⁻¹z‖², without the residual. points ≥ 1 is their
// number, and more than there are arms means all. Its errors are those of [NewGPUCB].
func NewSubset(cfg Config, arms kernel.Rows, points int) (*Static, error) {
	if points < 1 {
		return nil, valueError("points", -1, float64(points), "≥ 1")
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := checkArms(cfg.Kernel, arms); err != nil {
		return nil, err
	}
	n := arms.Len()
	order := stream.NewPermutation(stream.Derive(cfg.Seed, "bandit subset", 0), uint64(n))
	idx := make([]int, min(points, n))
	for i := range idx {
		idx[i] = int(order.At(uint64(i)))
	}
	same := func(x kernel.Rows) (kernel.Rows, error) { return x, nil }
	return newStatic(cfg, gp.SoR, arms, arms.Select(idx), same)
}

// NewFeatures returns Bayesian linear regression on the M features of a map, for
// Euclidean arms. Random Fourier features of package sketch starve. A [Quadrature] does
// not, in few dimensions. cfg.Kernel must be the kernel that the features approximate.
// It is not evaluated. A step costs O(AM + M²). Its errors are those of [NewGPUCB] and
// those of the map.
func NewFeatures(cfg Config, arms kernel.Rows, features gp.FeatureMap) (*Static, error) {
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
	remap := func(x kernel.Rows) (kernel.Rows, error) {
		data := make([]float64, x.Len()*m)
		if err := features.Apply(data, x); err != nil {
			return nil, fmt.Errorf("bandit: features of the arms: %w", err)
		}
		return kernel.NewPoints(x.Len(), m, data), nil
	}
	mapped, err := remap(arms)
	if err != nil {
		return nil, err
	}
	unit := make([]float64, m*m)
	for i := range m {
		unit[i*m+i] = 1
	}
	cfg.Beta = inputs{cfg.withDefaults().Beta, max(arms.Dim(), 1), cfg.Kernel.Bound()}
	cfg.Kernel = linear
	p, err := newStatic(cfg, gp.DTC, mapped, kernel.NewPoints(m, m, unit), remap)
	if err != nil {
		return nil, err
	}
	p.given = arms
	return p, nil
}

func newStatic(cfg Config, a gp.Approximation, arms, dictionary kernel.Rows, remap func(kernel.Rows) (kernel.Rows, error)) (*Static, error) {
	s, err := newSparseOn(cfg, Sparsity{Approximation: a}, arms, dictionary, false)
	if err != nil {
		return nil, err
	}
	s.frozen = true
	return &Static{BKB: BKB{s}, given: arms, remap: remap}, nil
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

// SetArms implements Policy. Inducing points and features stay.
func (p *Static) SetArms(arms kernel.Rows) error {
	if arms == nil || arms.Len() == 0 {
		return &EmptyError{What: "arms"}
	}
	if err := checkDistinct(arms); err != nil {
		return err
	}
	mapped, err := p.remap(arms)
	if err != nil {
		return err
	}
	if err := p.BKB.SetArms(mapped); err != nil {
		return err
	}
	p.given = arms
	return nil
}

// Learn takes rewards of inputs that need not be arms.
func (p *Static) Learn(x kernel.Rows, y []float64) error { return p.LearnNoisy(x, y, nil) }

// LearnNoisy takes rewards with variances of their own.
func (p *Static) LearnNoisy(x kernel.Rows, y, variances []float64) error {
	if x == nil {
		return p.BKB.LearnNoisy(nil, y, variances)
	}
	mapped, err := p.remap(x)
	if err != nil {
		return err
	}
	return p.BKB.LearnNoisy(mapped, y, variances)
}
