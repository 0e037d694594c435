package bandit

import "github.com/bkbtuner/bkb/gp/kernel"

// BBKB is batched BKB (Calandriello, Carratino, Lazaric, Valko and Rosasco,
// Near-linear time Gaussian process optimization with adaptive batching and
// resparsification, ICML 2020). A batch goes on while
//
//	1 + Σ σ̃²_start(x_s)/λ ≤ C̃
//
// over its pulls, with the variances at its start: no variance then shrinks by
// more than C̃ before the model hears of the rewards and inducing points are
// drawn. Batches grow with time, like T/d_eff. With C̃ = 1 every batch is one
// pull, and BBKB is BKB from scratch. Besides, a batch has at most a quarter of
// the pulls before it, which matters only for λ ≥ κ² or so. With cfg.Local the batch goes on until the
// same is in danger for some single arm: Σ cov²(x, x_s)/(λσ̃²_start(x)) > C̃ − 1;
// Decision.MaxBatch then says how many pulls are safe without looking at that.
//
// Next costs O(m²) for each of the few arms (15 of 3000) whose UCB must be
// brought up to date, and the end of a batch O((A + u)m²). The mean is frozen
// within a batch: when rewards come at once, BKB makes more of them.
type BBKB struct{ batched }

var _ Policy = (*BBKB)(nil)

// NewBBKB returns BBKB on the given arms, which must not change any more. C̃ is
// cfg.Ratio. Errors: as [NewBKB].
func NewBBKB(cfg BKBConfig, arms kernel.Rows) (*BBKB, error) {
	b, err := newBatched(cfg.Config, cfg.Sparsity, arms)
	if err != nil {
		return nil, err
	}
	return &BBKB{b}, nil
}

// Next implements Policy. It returns ErrBatchFull until all rewards of a full
// batch have come.
func (p *BBKB) Next() (Decision, error) {
	if p.fault != nil {
		return Decision{}, p.fault
	}
	if p.full() {
		return Decision{}, ErrBatchFull
	}
	return p.report(p.top()), nil
}
