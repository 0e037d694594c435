package bandit

import "github.com/bkbtuner/bkb/gp/kernel"

// BBKB is batched BKB (Calandriello et al. 2020, Near-linear Time Gaussian Process
// Optimization with Adaptive Batching and Resparsification). A batch continues while
//
//	1 + Σ σ̃²_start(x_s)/λ ≤ C̃
//
// over its pulls, with the variances at its start. Then no variance shrinks by more
// than C̃ before the model gets the rewards and inducing points are drawn. Batches grow
// with time, like T/d_eff. With C̃ = 1 every batch is one pull, and BBKB is BKB from
// scratch. A batch also has at most a quarter of the pulls before it, which matters
// only for λ ≥ κ² or so. With cfg.Local the batch continues until some single arm may
// exceed the limit, Σ cov²(x, x_s)/(λσ̃²_start(x)) > C̃ − 1. Decision.MaxBatch is then
// the number of pulls that is safe without this rule.
//
// Next costs O(m²) for each of the few arms (15 of 3000) whose UCB must be computed
// again. The end of a batch costs O((A + u)m²). The mean is frozen within a batch. If
// rewards come at once, BKB makes better use of them.
type BBKB struct{ batched }

var _ Policy = (*BBKB)(nil)

// NewBBKB returns BBKB on the given arms, which must not change any more. C̃ is
// cfg.Ratio. Its errors are those of [NewBKB].
func NewBBKB(cfg BKBConfig, arms kernel.Rows) (*BBKB, error) {
	b, err := newBatched(cfg.Config, cfg.Sparsity, arms)
	if err != nil {
		return nil, err
	}
	return &BBKB{b}, nil
}

// Next implements Policy. It returns ErrBatchFull until all rewards of a full batch are
// there.
func (p *BBKB) Next() (Decision, error) {
	if p.fault != nil {
		return Decision{}, p.fault
	}
	if p.full() {
		return Decision{}, ErrBatchFull
	}
	return p.report(p.top()), nil
}
