package bandit

import "github.com/bkbtuner/bkb/gp/kernel"

// GPUCB is exact GP-UCB on finite arms (Srinivas et al. 2010 and Carratino 2020, §6.4).
// It pulls the arm with the largest μ + b·σ. With [kernel.NewLinear] it is LinUCB. A
// step costs O(tA), and so does memory, with t·A numbers. It suits t up to a few
// hundred, or few arms. BKB costs less from t ≈ m on.
type GPUCB struct {
	base
	post *recursion
}

var _ Policy = (*GPUCB)(nil)

// NewGPUCB returns exact GP-UCB on the given arms, which must not change any more. Its
// errors are those of [Config.Validate]. For the arms they are [*EmptyError],
// [*DuplicateArmError], *[kernel.TypeError] and *[kernel.NonFiniteError], and for the
// kernel *[kernel.NotPSDError] and *[kernel.AsymmetryError].
func NewGPUCB(cfg Config, arms kernel.Rows) (*GPUCB, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	b, err := newBase(cfg, arms)
	if err != nil {
		return nil, err
	}
	post, err := newRecursion(b.cfg, arms)
	if err != nil {
		return nil, err
	}
	return &GPUCB{base: b, post: post}, nil
}

// Next implements Policy. It costs O(A).
func (p *GPUCB) Next() (Decision, error) {
	s := p.stateNow()
	b := p.cfg.Beta.Beta(s)
	arm := p.cfg.first(p.arms.Len())
	if p.Steps() > 0 {
		arm = argmaxUCB(p.post.mean, p.post.variance, b)
	}
	return p.decision(s, arm, p.Steps(), b, p.post.mean[arm], p.post.variance[arm], p.post.pendingGain()), nil
}

// Best implements Policy.
func (p *GPUCB) Best() (Decision, error) {
	s := p.stateNow()
	return p.best(s, p.Steps(), p.cfg.Beta.Beta(s), p.post.mean, p.post.variance, p.post.pendingGain()), nil
}

func (p *GPUCB) stateNow() State {
	return p.state(p.Steps(), p.exactDimension(), p.post.information(), true)
}

// exactDimension returns d_eff of the pulls.
func (p *GPUCB) exactDimension() float64 {
	return p.dimension(func(arm int) float64 { return p.post.variance[arm] })
}

// Pull implements Policy. It costs O(tA).
func (p *GPUCB) Pull(arm int) error {
	if err := p.checkArm(arm); err != nil {
		return err
	}
	if err := p.post.pull(arm); err != nil {
		return err
	}
	p.count(arm, 1)
	return nil
}

// Observe implements Policy. It costs O(tA) for each reward, or O(A) for that of the
// oldest pending pull.
func (p *GPUCB) Observe(arm int, y ...float64) error {
	if err := p.checkArm(arm); err != nil {
		return err
	}
	if err := checkRewards(y); err != nil {
		return err
	}
	for _, v := range y {
		mean, variance, before := p.post.mean[arm], p.post.variance[arm], p.guessing(p.stateNow)
		if p.post.find(arm) < 0 {
			if err := p.Pull(arm); err != nil {
				return err
			}
		}
		if err := p.post.resolve(arm, v); err != nil {
			return err
		}
		p.learnNorm(before, mean, variance, v)
	}
	return nil
}

// Cancel implements Policy. It costs O(tA) for each pending pull.
func (p *GPUCB) Cancel(arm int) error {
	if err := p.checkArm(arm); err != nil {
		return err
	}
	if p.post.find(arm) < 0 {
		return ErrNotPending
	}
	p.count(arm, -1)
	return p.post.cancel(arm)
}

// Pending implements Policy.
func (p *GPUCB) Pending() int { return p.post.pending() }

// Steps implements Policy.
func (p *GPUCB) Steps() int { return p.post.len() }

// Means returns μ of every arm, as a view.
func (p *GPUCB) Means() []float64 { return p.post.mean }

// Variances returns σ² of every arm, as a view.
func (p *GPUCB) Variances() []float64 { return p.post.variance }
