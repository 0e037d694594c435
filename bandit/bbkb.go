package bandit

import (
	"math"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// BBKB is batched BKB (Calandriello et al. 2020, Near-linear Time Gaussian Process
// Optimization with Adaptive Batching and Resparsification). A batch continues while
//
//	1 + Σ σ̃²_start(x_s)/λ ≤ C̃
//
// over its pulls, with the variances at its start. Then no variance shrinks by more than C̃
// before the model gets the rewards and inducing points are drawn. Batches grow with time, like
// T/d_eff. With C̃ = 1 every batch is one pull, and BBKB is BKB from scratch. A batch also has at
// most a quarter of the pulls before it. With much noise, λ ≥ κ², the rule alone would use the first
// (C̃ − 1)λ/κ² pulls on one arm about which nothing is known.
//
// While a batch is open, means, inducing points and b stay as they were at its start, and rewards
// are held. Pulls shrink variances, which are computed lazily. So Next costs O(m²) for each of
// the few arms (15 of 3000) whose UCB must be computed again. The end of a batch, when it is full
// and all rewards are there, costs O((A + u)m²).
type BBKB struct {
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
}

var _ Policy = (*BBKB)(nil)

// reward is held until the batch ends.
type reward struct {
	arm int
	y   float64
}

// NewBBKB returns BBKB on the given arms, which must not change any more. C̃ is
// cfg.Ratio. Its errors are those of [NewBKB].
func NewBBKB(cfg BKBConfig, arms kernel.Rows) (*BBKB, error) {
	s, err := newSparse(cfg.Config, cfg.Sparsity, arms, true)
	if err != nil {
		return nil, err
	}
	p := &BBKB{sparse: s, open: map[int]int{}}
	p.begin()
	return p, nil
}

// begin opens a batch.
func (p *BBKB) begin() {
	p.start = append(p.start[:0], p.post.ArmVariances()...)
	p.size, p.used = 0, 0
	p.opened = p.state(p.Steps(), p.post.EffectiveDimension(), p.post.InformationGain(), p.exact)
	p.beta = p.cfg.Beta.Beta(p.opened)
	p.limit, p.held = max(1, (p.opened.Step-1)/4), p.held[:0]
	p.reopen()
}

// full reports whether the batch accepts no more pulls.
func (p *BBKB) full() bool {
	return p.size > 0 && (p.size >= p.limit || 1+p.used > p.cfg.Ratio)
}

// Next implements Policy. It returns ErrBatchFull until all rewards of a full batch are there.
func (p *BBKB) Next() (Decision, error) {
	if p.fault != nil {
		return Decision{}, p.fault
	}
	if p.full() {
		return Decision{}, ErrBatchFull
	}
	return p.report(p.top()), nil
}

// top returns the arm with the largest UCB within the batch.
func (p *BBKB) top() int {
	if p.Steps() == 0 {
		return p.cfg.first(p.arms.Len())
	}
	return p.lazy.top(func(a int) float64 {
		p.post.RefreshArms([]int{a})
		return p.post.ArmMeans()[a] + p.beta*math.Sqrt(p.post.ArmVariances()[a])
	})
}

// allowed returns how many more pulls of an arm the batch accepts.
func (p *BBKB) allowed(arm int) int {
	return min(maxBatch(p.cfg.Ratio, p.used, p.start[arm]/p.cfg.NoiseVariance), max(1, p.limit-p.size))
}

// report is the decision for an arm.
func (p *BBKB) report(arm int) Decision {
	if p.size > 0 {
		p.post.RefreshArms([]int{arm})
	}
	d := p.decision(p.stateNow(), arm, p.post.Rank(), p.beta, p.post.ArmMeans()[arm], p.post.ArmVariances()[arm], 0)
	d.MaxBatch = p.allowed(arm)
	return d
}

// stateNow is the state at the start of the batch, with the pulls since.
func (p *BBKB) stateNow() State {
	s := p.opened
	s.Step, s.InformationGain = p.Steps()+1, p.post.InformationGain()
	return s
}

// Best implements Policy. It costs O(Am²) within a batch.
func (p *BBKB) Best() (Decision, error) {
	all := make([]int, p.arms.Len())
	for i := range all {
		all[i] = i
	}
	if p.size > 0 {
		p.post.RefreshArms(all)
	}
	d := p.best(p.stateNow(), p.post.Rank(), p.beta, p.post.ArmMeans(), p.post.ArmVariances(), 0)
	d.MaxBatch = p.allowed(d.Arm)
	return d, p.fault
}

// Pull implements Policy. Pulls that the policy did not choose are accepted even when
// the batch is full. It costs O(m²).
func (p *BBKB) Pull(arm int) error {
	if err := p.checkArm(arm); err != nil {
		return err
	}
	if err := p.post.PullArm(arm); err != nil {
		return err
	}
	p.used += p.start[arm] / p.cfg.NoiseVariance
	p.size++
	p.open[arm]++
	p.owing++
	p.lazy.stale()
	return nil
}

// Observe implements Policy. The rewards are held until the batch ends. The last one of a full
// batch ends it. It costs O(m²) for each, and O((A + u)m²) at the end of a batch.
func (p *BBKB) Observe(arm int, y ...float64) error {
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

func (p *BBKB) take(arm int, y float64) error {
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
func (p *BBKB) settle(arm int) {
	p.owing--
	if p.open[arm]--; p.open[arm] == 0 {
		delete(p.open, arm)
	}
}

// Flush ends the batch early, and the model gets the rewards held. It returns
// [ErrPending] while some are missing.
func (p *BBKB) Flush() error {
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
func (p *BBKB) close() {
	p.switches++
	away := keyed(p.arms)
	before, _ := p.post.Inducing()
	if away { // arms are computed once, at the end
		p.post.PauseArms()
	}
	p.fault = p.tell(away)
	if p.fault == nil {
		p.resparsify(func() { p.post.Anchor() }) // inputs need not be embedded again
	}
	if away {
		p.resume(before)
	}
	p.begin()
}

// resume brings the arms back, if necessary with the inducing points of before. A
// kernel may prove not positive semi-definite only here.
func (p *BBKB) resume(before kernel.Rows) {
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

func (p *BBKB) tell(away bool) error {
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
func (p *BBKB) Cancel(arm int) error {
	if err := p.checkArm(arm); err != nil {
		return err
	}
	if p.open[arm] == 0 {
		return ErrNotPending
	}
	if err := p.post.CancelArm(arm); err != nil {
		return err
	}
	p.settle(arm)
	p.used -= p.start[arm] / p.cfg.NoiseVariance
	p.size--
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

// reopen computes the bounds, also after a pull was taken back, because variances have grown.
func (p *BBKB) reopen() {
	key, variance := make([]float64, len(p.start)), p.post.ArmVariances()
	for a, m := range p.post.ArmMeans() {
		key[a] = m + p.beta*math.Sqrt(variance[a])
	}
	p.lazy.reset(key)
}

// Pending implements Policy. It counts pulls without reward, and not those whose reward is held.
func (p *BBKB) Pending() int { return p.owing }

// Batch returns the number of pulls in the open batch, and their Σ σ̃²/λ with the
// variances at its start.
func (p *BBKB) Batch() (pulls int, leverage float64) { return p.size, p.used }

// Switches returns the number of changes of the model, which is the number of batches.
func (p *BBKB) Switches() int { return p.switches }

// lazyMax finds the largest of A numbers from known upper bounds, and computes few of
// them. It computes the top of a heap of bounds until that is up to date. Within a
// batch the means stay and the variances shrink, so that an earlier UCB is a bound.
type lazyMax struct {
	key   []float64 // of every arm
	epoch []int     // when it was computed
	now   int
	heap  []int
	fresh int // refreshed since the start, for reports
}

// reset starts with numbers that are up to date. It costs O(A).
func (h *lazyMax) reset(key []float64) {
	h.key, h.now, h.fresh = key, 0, 0
	if len(h.heap) != len(key) {
		h.heap, h.epoch = make([]int, len(key)), make([]int, len(key))
	}
	for i := range h.heap {
		h.heap[i], h.epoch[i] = i, 0
	}
	for i := len(h.heap)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// stale marks the numbers as possibly smaller.
func (h *lazyMax) stale() { h.now++ }

// top returns the arm with the largest number, the lowest of equals. refresh computes
// the number of an arm. It costs O(log A) for each that is computed.
func (h *lazyMax) top(refresh func(arm int) float64) int {
	for {
		a := h.heap[0]
		if h.epoch[a] == h.now {
			return a
		}
		h.key[a], h.epoch[a] = refresh(a), h.now
		h.fresh++
		h.down(0)
	}
}

// before reports whether arm a comes before arm b in the heap.
func (h *lazyMax) before(a, b int) bool {
	return h.key[a] > h.key[b] || h.key[a] == h.key[b] && a < b
}

func (h *lazyMax) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h.heap) {
			return
		}
		if c+1 < len(h.heap) && h.before(h.heap[c+1], h.heap[c]) {
			c++
		}
		if !h.before(h.heap[c], h.heap[i]) {
			return
		}
		h.heap[i], h.heap[c] = h.heap[c], h.heap[i]
		i = c
	}
}
