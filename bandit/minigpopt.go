package bandit

import (
	"errors"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// MiniGPOpt is GP-UCB with few unique candidates (mini-GP-Opt of Calandriello,
// Carratino, Lazaric, Valko and Rosasco, Scaling Gaussian process optimization
// by evaluating a few unique candidates multiple times, ICML 2022): the arm
// with the largest UCB is pulled
//
//	B = max(1, ⌊(C̃ − 1)λ/σ²(x)⌋)
//
// times before the model hears of it, C̃ being the square of the paper's C; at
// most, though, a quarter of the pulls before it, so that an arm that is known for
// certain, σ² = 0, is not pulled for ever. The
// posterior is exact, on the u different inputs; a change of the model costs
// O(u³ + Au²), and there are O(γ_T C̃/(C̃ − 1)) of them.
//
// It is for rewards with real noise: of a deterministic one, more than one
// evaluation tells nothing. For tuning, the B pulls are seeds or folds.
type MiniGPOpt struct{ batched }

var _ Policy = (*MiniGPOpt)(nil)

// NewMiniGPOpt returns the policy on the given arms, which must not change any
// more. C̃ is cfg.Ratio. Errors: as [NewGPUCB].
func NewMiniGPOpt(cfg Config, arms kernel.Rows) (*MiniGPOpt, error) {
	if cfg.Ratio != 0 && cfg.Ratio <= 1 {
		return nil, errors.Join(cfg.Validate(), valueError("Ratio", -1, cfg.Ratio, "> 1"))
	}
	b, err := newBatched(cfg, Sparsity{Oversampling: math.Inf(1)}, arms)
	if err != nil {
		return nil, err
	}
	b.unique, b.exact = true, true
	b.begin()
	return &MiniGPOpt{b}, nil
}

// Next implements Policy: the arm of the batch until it was pulled B times, then
// [ErrBatchFull] until all rewards have come. Decision.MaxBatch is the
// number of pulls that are left.
func (p *MiniGPOpt) Next() (Decision, error) {
	if p.fault != nil {
		return Decision{}, p.fault
	}
	if p.full() {
		return Decision{}, ErrBatchFull
	}
	arm := p.stick
	if p.size == 0 {
		arm = p.top()
	}
	d := p.report(arm)
	d.MaxBatch = max(p.repeats(arm)-p.size, 1)
	return d, nil
}
