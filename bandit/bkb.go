package bandit

import (
	"math"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// BKBConfig holds the settings of BKB and BBKB.
type BKBConfig struct {
	Config
	Sparsity
}

// BKB is budgeted kernel bandits (Carratino 2020, Algorithm 5). It is GP-UCB on a
// posterior supported on m inducing points, drawn among the pulled inputs by posterior
// variance. So m follows the effective dimension, and σ̃ stays close to σ.
//
// Between draws the inducing points stay, and a reward is a rank-one update of
// O(Am + m²). This is the incremental dictionary of §7.1.2 there. With FromScratch a
// draw follows every reward, with O((A + u)m²) for u different inputs.
//
// The mean uses every reward at once. Pending pulls shrink σ̃ and do not change the
// mean. If they cause a draw, only the approximation of the mean changes.
type BKB struct{ sparse }

var _ Policy = (*BKB)(nil)

// NewBKB returns BKB on the given arms, which must not change any more. Its errors are
// those of [NewGPUCB] and of [Sparsity.Validate].
func NewBKB(cfg BKBConfig, arms kernel.Rows) (*BKB, error) {
	s, err := newSparse(cfg.Config, cfg.Sparsity, arms, false)
	if err != nil {
		return nil, err
	}
	s.exact = s.sparsity.FromScratch && math.IsInf(s.sparsity.Oversampling, 1)
	return &BKB{s}, nil
}

// Next implements Policy. It costs O(A).
func (p *BKB) Next() (Decision, error) {
	if p.fault != nil {
		return Decision{}, p.fault
	}
	s := p.stateNow()
	b := p.cfg.Beta.Beta(s)
	arm := p.cfg.first(p.arms.Len())
	if p.Steps() > 0 {
		arm = p.post.MaxUCB(b)
	}
	return p.decide(s, arm, b), nil
}

func (p *BKB) decide(s State, arm int, b float64) Decision {
	mean, variance := p.post.Arm(arm)
	return p.decision(s, arm, p.post.Rank(), b, mean, variance, p.post.PendingGain())
}

func (p *BKB) Best() (Decision, error) {
	s := p.stateNow()
	return p.best(s, p.post.Rank(), p.cfg.Beta.Beta(s), p.post.ArmMeans(), p.post.ArmVariances(), p.post.PendingGain()), p.fault
}

func (p *BKB) stateNow() State {
	gain := p.post.InformationGain()
	if p.exact { // also after cancelled pulls
		gain = p.post.PendingLogDet()
	}
	return p.state(p.Steps(), p.post.EffectiveDimension(), gain, p.exact)
}

// Pull implements Policy. It costs as much as Observe, because it also draws the
// inducing points when they are due, with pending pulls counted. Otherwise an arm far
// from all inducing points would keep its σ̃ and be chosen for every worker.
func (p *BKB) Pull(arm int) error {
	if err := p.checkArm(arm); err != nil {
		return err
	}
	if err := p.post.PullArm(arm); err != nil {
		return err
	}
	p.refresh()
	return nil
}

// Observe implements Policy. It costs O(Am + m²) for each reward, and O((A + u)m²)
// where inducing points are drawn.
func (p *BKB) Observe(arm int, y ...float64) error {
	if err := p.checkArm(arm); err != nil {
		return err
	}
	if err := checkRewards(y); err != nil {
		return err
	}
	for _, v := range y {
		var before State
		if p.guesses() {
			before = p.stateNow()
		}
		mean, variance := p.post.Arm(arm)
		if err := p.post.ObserveArm(arm, v); err != nil {
			return err
		}
		p.learnNorm(before, mean, variance, v)
		p.refresh()
	}
	return nil
}

// refresh draws the inducing points when they are due. They are due when C is exceeded, or when
// there are more pulls by a quarter than at the last draw. With much noise, λ ≥ κ², C alone would
// leave the first λC/κ² pulls without inducing points, all of them on one arm.
func (p *BKB) refresh() {
	grown := 4*p.Steps() > 5*p.drawn
	if p.sparsity.FromScratch || grown || p.post.Leverage()-p.settled > p.sparsity.Threshold {
		p.redraw()
	}
}

func (p *BKB) redraw() {
	same := func() { p.settled = p.post.Leverage() }
	if p.sparsity.FromScratch {
		same = nil
	}
	p.drawn = p.Steps()
	p.resparsify(same)
}

// Learn takes rewards of inputs that need not be arms, such as those of another study.
// They resolve pending pulls of equal inputs. A long history is taken in parts that double, with
// a draw of inducing points after each. The first draw has no inducing points to judge by and
// takes every input, so that at once a history would have as many inducing points as inputs. Its
// errors are those of [gp.Sparse.Observe], and then nothing is learned.
func (p *BKB) Learn(x kernel.Rows, y []float64) error {
	if err := checkRewards(y); err != nil {
		return err
	}
	if x == nil || x.Len() != len(y) {
		return shapeError("y", len(y), lenOf(x))
	}
	if err := p.checkInputs(x); err != nil {
		return err
	}
	for done := 0; done < len(y); {
		end := min(len(y), done+max(p.Steps(), firstPart))
		if err := p.post.Observe(gp.Data{X: x.Slice(done, end), Y: y[done:end]}); err != nil {
			return err
		}
		p.refresh()
		done = end
	}
	if len(y) > firstPart {
		p.redraw()
	}
	return p.fault
}

// firstPart is the number of rewards of the first part of a history.
const firstPart = 32

// checkInputs refuses inputs that the posterior would refuse, before any are learned.
func (p *BKB) checkInputs(x kernel.Rows) error {
	if err := p.cfg.Kernel.Check(x); err != nil {
		return err
	}
	return kernel.CheckFinite("x", x)
}

func lenOf(x kernel.Rows) int {
	if x == nil {
		return 0
	}
	return x.Len()
}

// Cancel implements Policy. It costs O((A + u)m²).
func (p *BKB) Cancel(arm int) error {
	if err := p.checkArm(arm); err != nil {
		return err
	}
	if p.post.CancelArm(arm) != nil {
		return ErrNotPending
	}
	return nil
}

func (p *BKB) Pending() int { return p.post.Pending() }

// Means returns μ̃ of every arm, as a view.
func (p *BKB) Means() []float64 { return p.post.ArmMeans() }

// Variances returns σ̃² of every arm, as a view.
func (p *BKB) Variances() []float64 { return p.post.ArmVariances() }

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
