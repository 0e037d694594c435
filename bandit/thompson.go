package bandit

import (
	"errors"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// ThompsonConfig holds the settings of Thompson sampling.
type ThompsonConfig struct {
	BKBConfig
	// Candidates is the number q of arms for which one function is drawn jointly. These
	// are the arms with the largest UCB. If 0, it is 256, and the number of arms means
	// all of them. It has no effect with Features.
	Candidates int
	// Features, if not nil, draws the function on all arms at once by Matheron's rule
	// (gp.Path). They are features of the kernel, such as those of package sketch or a
	// Quadrature.
	Features gp.FeatureMap
	// Scale > 0 multiplies deviations of the draw from the mean. If 0, it is 1, which
	// samples from the posterior. Theory asks for β̃.
	Scale float64
}

// Validate reports all faults at once.
func (c ThompsonConfig) Validate() error {
	errs := []error{c.BKBConfig.Validate()}
	if c.Candidates < 0 {
		errs = append(errs, valueError("Candidates", -1, float64(c.Candidates), "≥ 0"))
	}
	if c.Scale != 0 {
		errs = append(errs, positive("Scale", c.Scale))
	}
	return errors.Join(errs...)
}

// Thompson is Thompson sampling on the posterior of BKB. It pulls the best arm of one
// function drawn from it. All methods except Next are those of BKB. Beta, UCB and Gap
// have the same meaning, but they are only reported. Draws depend on the seed and the
// step, so that the answer stays the same until an event.
//
// Next costs O(qm² + q³), or O(Am² + A·M) with M features.
type Thompson struct {
	BKB
	opts ThompsonConfig
}

var _ Policy = (*Thompson)(nil)

// NewThompson returns Thompson sampling on the given arms, which must not change any
// more. Its errors are those of [NewBKB].
func NewThompson(cfg ThompsonConfig, arms kernel.Rows) (*Thompson, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	b, err := NewBKB(cfg.BKBConfig, arms)
	if err != nil {
		return nil, err
	}
	if cfg.Candidates == 0 {
		cfg.Candidates = 256
	}
	if cfg.Scale == 0 {
		cfg.Scale = 1
	}
	return &Thompson{BKB: *b, opts: cfg}, nil
}

// Next implements Policy.
func (p *Thompson) Next() (Decision, error) {
	if p.fault != nil {
		return Decision{}, p.fault
	}
	s := p.stateNow()
	b := p.cfg.Beta.Beta(s)
	if p.Steps() == 0 {
		return p.decide(s, p.cfg.first(p.arms.Len()), b), nil
	}
	idx := p.candidates(b)
	f, jitter, err := p.sample(idx)
	if err != nil {
		return Decision{}, err
	}
	for i, a := range idx {
		m := p.post.ArmMeans()[a]
		f[i] = m + p.opts.Scale*(f[i]-m)
	}
	d := p.decide(s, idx[argmax(f)], b)
	d.Jitter = jitter.Relative
	return d, nil
}

// candidates returns the arms to draw for, increasing.
func (p *Thompson) candidates(b float64) []int {
	n := p.arms.Len()
	idx := make([]int, n)
	for i := range idx {
		idx[i] = i
	}
	if p.opts.Features != nil || n <= p.opts.Candidates {
		return idx
	}
	ucb := make([]float64, n)
	for i, m := range p.post.ArmMeans() {
		ucb[i] = m + b*math.Sqrt(p.post.ArmVariances()[i])
	}
	slices.SortFunc(idx, func(i, j int) int {
		switch {
		case ucb[i] > ucb[j]:
			return -1
		case ucb[i] < ucb[j]:
			return 1
		}
		return i - j
	})
	idx = idx[:p.opts.Candidates]
	slices.Sort(idx)
	return idx
}

// sample draws one function at arms.
func (p *Thompson) sample(idx []int) ([]float64, gp.Jitter, error) {
	rng := stream.New(stream.Derive(p.cfg.Seed, "bandit thompson", uint64(p.Steps())))
	if p.opts.Features == nil {
		return p.post.Sample(p.arms.Select(idx), 1, rng)
	}
	path, err := p.post.Path(p.opts.Features, rng)
	if err != nil {
		return nil, gp.Jitter{}, err
	}
	f, err := path.At(p.arms)
	return f, gp.Jitter{}, err
}
