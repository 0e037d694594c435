package bandit

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// batched is the common part of BBKB and MiniGPOpt. While a batch is open, means,
// inducing points and b stay as they were at its start, and rewards are held. Pulls
// shrink variances, which are computed lazily. When the batch is full and all rewards
// are there, the model gets them at once, and the next batch begins.
type batched struct {
	sparse
	start    []float64 // σ̃² of the arms at the start of the batch
	opened   State     // at the start of the batch
	beta     float64
	used     float64 // Σ σ̃²_start(x_s)/λ of the pulls in the batch
	size     int     // their number
	limit    int     // their largest number
	held     []reward
	open     map[int]int // pulls of arms without reward
	owing    int         // their number
	lazy     lazyMax
	switches int

	batch  []int     // the arms pulled in the batch
	shrink []float64 // Σ cov²/(λσ̃²_start) of every arm, over the first seen pulls
	seen   int
	most   float64 // the largest of them

	unique bool // the first arm of a batch is the only one, as in MiniGPOpt
	stick  int  // that arm
}

// reward is held until the batch ends.
type reward struct {
	arm int
	y   float64
}

func newBatched(cfg Config, sp Sparsity, arms kernel.Rows) (batched, error) {
	s, err := newSparse(cfg, sp, arms, true)
	if err != nil {
		return batched{}, err
	}
	p := batched{sparse: s, open: map[int]int{}}
	p.begin()
	return p, nil
}

// begin opens a batch.
func (p *batched) begin() {
	p.start = append(p.start[:0], p.post.ArmVariances()...)
	p.size, p.used = 0, 0
	p.opened = p.state(p.Steps(), p.currentDimension(), p.information(), p.exact)
	p.beta = p.cfg.Beta.Beta(p.opened)
	p.limit, p.held = p.quarter(), p.held[:0]
	p.batch, p.seen, p.most = p.batch[:0], 0, 0
	key := p.lazy.key
	if len(key) != len(p.start) {
		key = make([]float64, len(p.start))
	}
	for a, m := range p.post.ArmMeans() {
		key[a] = m + p.beta*math.Sqrt(p.start[a])
	}
	p.lazy.reset(key)
}

// information returns the information gain, for MiniGPOpt that of the exact process. An
// input that is not yet an inducing point keeps its residual in σ̃ during the batch.
// Each pull of it would count as new information.
func (p *batched) information() float64 {
	if p.unique {
		return p.post.LogDet() + math.Log1p(p.used)
	}
	return p.post.InformationGain()
}

// full reports whether the batch accepts no more pulls.
func (p *batched) full() bool {
	if p.limit > 0 && p.size >= p.limit {
		return true
	}
	return p.size > 0 && 1+p.used > p.cfg.Ratio && p.shrunk()
}

// quarter is the largest number of pulls with which a batch begins, a quarter of those
// made before. With much noise, λ ≥ κ², the rule alone would use the first (C̃ − 1)λ/κ²
// pulls on one arm about which nothing is known. It costs at most log T/log 1.25
// batches.
func (p *batched) quarter() int { return max(1, (p.opened.Step-1)/4) }

// shrunk is the local rule, for batches beyond the limit of the global rule. It reports
// whether the variance of some arm may have shrunk by more than C̃. Let ‖u‖² = σ̃²/λ at
// the start, and let M be the pulls in the same coordinates. Then
//
//	σ̃²_start/σ̃² = ‖u‖²/uᵀ(I + M)⁻¹u ≤ uᵀ(I + M)u/‖u‖² = 1 + Σ cov²(x, x_s)/(λσ̃²_start)
//
// by Cauchy and Schwarz. By the same inequality this is at most the global sum. The
// inducing points give only part of the covariance. That of an arm with itself is
// counted in full, so a pull of an arm outside their span ends the batch. It costs
// O(Am) for each pull, and earlier pulls are counted once.
func (p *batched) shrunk() bool {
	if !p.cfg.Local || p.unique {
		return true
	}
	if p.seen == 0 {
		p.shrink = append(p.shrink[:0], make([]float64, len(p.start))...)
	}
	cov := make([]float64, len(p.start))
	for ; p.seen < len(p.batch) && 1+p.most <= p.cfg.Ratio; p.seen++ {
		arm := p.batch[p.seen]
		_ = p.post.ArmCovariances(cov, arm) // an arm that was pulled exists
		cov[arm] = p.start[arm]
		for a, c := range cov {
			if p.start[a] <= 0 {
				continue // known exactly, so it cannot shrink
			}
			p.shrink[a] += c * c / (p.cfg.NoiseVariance * p.start[a])
			p.most = max(p.most, p.shrink[a])
		}
	}
	return 1+p.most > p.cfg.Ratio
}

// repeats returns B of MiniGPOpt. It is finite also for an arm that is known exactly.
func (p *batched) repeats(arm int) int {
	return min(maxBatch(p.cfg.Ratio, 0, p.start[arm]/p.cfg.NoiseVariance), p.quarter())
}

// top returns the arm with the largest UCB within the batch.
func (p *batched) top() int {
	if p.Steps() == 0 {
		return p.cfg.first(p.arms.Len())
	}
	return p.lazy.top(func(a int) float64 {
		p.post.RefreshArms([]int{a})
		return p.post.ArmMeans()[a] + p.beta*math.Sqrt(p.post.ArmVariances()[a])
	})
}

// allowed returns how many more pulls of an arm the batch accepts.
func (p *batched) allowed(arm int) int {
	return min(maxBatch(p.cfg.Ratio, p.used, p.start[arm]/p.cfg.NoiseVariance), max(1, p.limit-p.size))
}

// report is the decision for an arm.
func (p *batched) report(arm int) Decision {
	if p.size > 0 {
		p.post.RefreshArms([]int{arm})
	}
	s := p.opened
	s.Step, s.InformationGain = p.Steps()+1, p.information()
	d := p.decision(s, arm, p.post.Rank(), p.beta, p.post.ArmMeans()[arm], p.post.ArmVariances()[arm], 0)
	d.MaxBatch = p.allowed(arm)
	return d
}

// Best implements Policy. It costs O(Am²) within a batch.
func (p *batched) Best() (Decision, error) {
	all := make([]int, p.arms.Len())
	for i := range all {
		all[i] = i
	}
	if p.size > 0 {
		p.post.RefreshArms(all)
	}
	s := p.opened
	s.Step, s.InformationGain = p.Steps()+1, p.information()
	d := p.best(s, p.post.Rank(), p.beta, p.post.ArmMeans(), p.post.ArmVariances(), 0)
	d.MaxBatch = p.allowed(d.Arm)
	return d, p.fault
}

// Pull implements Policy. Pulls that the policy did not choose are accepted even when
// the batch is full. It costs O(m²).
func (p *batched) Pull(arm int) error {
	if err := p.checkArm(arm); err != nil {
		return err
	}
	if err := p.post.PullArm(arm); err != nil {
		return err
	}
	p.count(arm, 1)
	p.used += p.start[arm] / p.cfg.NoiseVariance
	p.size++
	p.batch = append(p.batch, arm)
	p.open[arm]++
	p.owing++
	p.lazy.stale()
	if p.unique && p.size == 1 {
		p.stick, p.limit = arm, p.repeats(arm)
	}
	return nil
}

// Observe implements Policy. The rewards are held until the batch ends. The last one of
// a full batch ends it. It costs O(m²) for each, and O((A + u)m²) at the end of a
// batch.
func (p *batched) Observe(arm int, y ...float64) error {
	if err := p.checkArm(arm); err != nil {
		return err
	}
	if err := checkRewards(y); err != nil {
		return err
	}
	for _, v := range y {
		if err := p.take(arm, v); err != nil {
			return err
		}
	}
	return nil
}

func (p *batched) take(arm int, y float64) error {
	if p.open[arm] == 0 {
		if err := p.Pull(arm); err != nil {
			return err
		}
	}
	p.learnNorm(p.opened, p.post.ArmMeans()[arm], p.start[arm], y)
	p.settle(arm)
	p.held = append(p.held, reward{arm, y})
	if p.full() && p.owing == 0 {
		p.close()
	}
	return nil
}

// settle removes a pull without reward.
func (p *batched) settle(arm int) {
	p.owing--
	if p.open[arm]--; p.open[arm] == 0 {
		delete(p.open, arm)
	}
}

// Flush ends the batch early, and the model gets the rewards held. It returns
// [ErrPending] while some are missing.
func (p *batched) Flush() error {
	if p.owing > 0 {
		return ErrPending
	}
	if len(p.held) > 0 {
		p.close()
	}
	return p.fault
}

// close gives the held rewards to the model in the order of their arrival, draws
// inducing points and begins the next batch.
func (p *batched) close() {
	p.switches++
	away := keyed(p.arms)
	before, _ := p.post.Inducing()
	if away { // arms are computed once, at the end
		p.post.PauseArms()
	}
	p.fault = p.tell(away)
	if p.fault == nil {
		p.rechoose()
	}
	if away {
		p.resume(before)
	}
	p.begin()
}

// resume brings the arms back, if necessary with the inducing points of before. A
// kernel may prove not positive semi-definite only here.
func (p *batched) resume(before kernel.Rows) {
	err := p.post.ResumeArms()
	for _, d := range []kernel.Rows{before, p.arms.Slice(0, 0)} {
		if err == nil {
			return
		}
		if p.fault == nil {
			p.fault = err
		}
		p.chosen = nil
		if err = p.post.Resparsify(d); err == nil {
			err = p.post.ResumeArms()
		}
	}
}

func (p *batched) tell(away bool) error {
	if away {
		idx, y := make([]int, len(p.held)), make([]float64, len(p.held))
		for i, r := range p.held {
			idx[i], y[i] = r.arm, r.y
		}
		return p.post.Observe(gp.Data{X: p.arms.Select(idx), Y: y})
	}
	for _, r := range p.held {
		if err := p.post.ObserveArm(r.arm, r.y); err != nil {
			return err
		}
	}
	return nil
}

// Cancel implements Policy. It costs O((A + u)m²).
func (p *batched) Cancel(arm int) error {
	if err := p.checkArm(arm); err != nil {
		return err
	}
	if p.open[arm] == 0 {
		return ErrNotPending
	}
	if err := p.post.CancelArm(arm); err != nil {
		return err
	}
	p.count(arm, -1)
	p.settle(arm)
	p.used -= p.start[arm] / p.cfg.NoiseVariance
	p.size--
	p.batch = slices.Delete(p.batch, slices.Index(p.batch, arm), slices.Index(p.batch, arm)+1)
	p.seen, p.most = 0, 0
	switch {
	case p.full() && p.owing == 0:
		p.close()
	case p.size == 0:
		p.begin()
	default:
		p.reopen()
	}
	return nil
}

// reopen computes the bounds again after a pull was taken back, because variances have
// grown.
func (p *batched) reopen() {
	mean, variance := p.post.ArmMeans(), p.post.ArmVariances()
	for a := range p.lazy.key {
		p.lazy.key[a] = mean[a] + p.beta*math.Sqrt(variance[a])
	}
	p.lazy.reset(p.lazy.key)
}

// Pending implements Policy. It counts pulls without reward, and not those whose reward
// is held.
func (p *batched) Pending() int { return p.owing }

// Batch returns the number of pulls in the open batch, and their Σ σ̃²/λ with the
// variances at its start.
func (p *batched) Batch() (pulls int, leverage float64) { return p.size, p.used }

// Switches returns the number of changes of the model, which is the number of batches.
func (p *batched) Switches() int { return p.switches }

// SetArms implements Policy. The model gets the held rewards first. It costs
// O((A + u)m²).
func (p *batched) SetArms(arms kernel.Rows) error {
	if p.owing > 0 {
		return ErrPending
	}
	if err := p.checkNext(arms); err != nil {
		return err
	}
	if len(p.held) > 0 {
		p.close()
	}
	if err := p.setArms(arms, true); err != nil {
		return err
	}
	p.begin()
	return nil
}
