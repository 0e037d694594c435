package bandit

import (
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// NewGPUCB returns exact GP-UCB on the given arms (Srinivas et al. 2010 and Carratino 2020,
// §6.4), which must not change any more. It is BKB with every pulled input as an inducing
// point, so that a step costs O(uA) for u of them. It suits a few hundred steps, or few arms.
// With [kernel.NewLinear] it is LinUCB.
//
// Its errors are those of [Config.Validate]. For the arms they are [*EmptyError],
// [*DuplicateArmError], *[kernel.TypeError] and *[kernel.NonFiniteError], and for the kernel
// *[kernel.NotPSDError] and *[kernel.AsymmetryError].
func NewGPUCB(cfg Config, arms kernel.Rows) (*BKB, error) {
	p, err := NewBKB(BKBConfig{cfg, Sparsity{Oversampling: math.Inf(1), Threshold: math.SmallestNonzeroFloat64}}, arms)
	if err != nil {
		return nil, err
	}
	p.exact = true
	return p, nil
}
