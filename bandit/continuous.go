package bandit

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// ContinuousConfig holds the settings of a bandit on a box.
type ContinuousConfig struct {
	BKBConfig
	// Lo and Hi are the corners of the box, Lo < Hi.
	Lo, Hi []float64
	// Candidates is the number of Sobol' points among which the maximum of the UCB is
	// searched. If 0, it is 1024. Powers of 2 cover the box evenly.
	Candidates int
	// Local is the number of candidates near the 5 best inputs so far. An eighth as many are near
	// the best candidates, three times over. If 0, it is 256, and −1 means none.
	Local int
	// Refine is the number of best candidates from which the search climbs the gradient of the
	// UCB. If 0, it is 4, and −1 means none. A kernel without a gradient disables it.
	Refine int
}

// Validate reports all faults at once.
func (c ContinuousConfig) Validate() error {
	errs := []error{c.BKBConfig.Validate()}
	if len(c.Lo) == 0 || len(c.Lo) != len(c.Hi) {
		errs = append(errs, shapeError("Hi", len(c.Hi), max(len(c.Lo), 1)))
		return errors.Join(errs...)
	}
	for i, lo := range c.Lo {
		if !(lo < c.Hi[i]) || !finite(c.Hi[i]-lo) {
			errs = append(errs, valueError("Lo", i, lo, "< Hi, both finite"))
		}
	}
	if c.Candidates < 0 || c.Candidates > math.MaxInt32 {
		errs = append(errs, valueError("Candidates", -1, float64(c.Candidates), "≥ 0"))
	}
	return errors.Join(errs...)
}

// Suggestion is a decision for an input that is not a numbered arm, so Arm is −1.
type Suggestion struct {
	X []float64
	Decision
}

// Continuous is BKB on a box. A [Search] maximises the UCB over Sobol' points and moves of the
// best inputs, and climbs its gradient in the span of the inducing points. The guarantees of
// Theorem 21 need the true maximum, which no search can promise (Carratino 2020, §7.1.4, infinite
// arm sets). Random numbers depend on seed and step, as in the other policies.
//
// Next costs O((Candidates + Local)(m² + md)).
type Continuous struct {
	cfg ContinuousConfig
	box box
	bkb BKB // without arms
}

// NewContinuous returns the bandit. Its errors are those of
// [ContinuousConfig.Validate], and those of the kernel as in [NewGPUCB].
func NewContinuous(cfg ContinuousConfig) (*Continuous, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	p := &Continuous{cfg: cfg, box: newBox(cfg.Lo, cfg.Hi)}
	b, err := newBase(cfg.Config, p.sobol(256, 0))
	if err != nil {
		return nil, err
	}
	p.bkb.sparse, err = sparseOn(b, cfg.Sparsity)
	return p, err
}

func (c ContinuousConfig) withDefaults() ContinuousConfig {
	c.Config, c.Sparsity = c.Config.withDefaults(), c.Sparsity.withDefaults()
	c.Lo, c.Hi = slices.Clone(c.Lo), slices.Clone(c.Hi)
	for _, d := range []struct {
		v     *int
		value int
	}{{&c.Candidates, 1024}, {&c.Local, 256}, {&c.Refine, 4}} {
		if *d.v == 0 {
			*d.v = d.value
		}
		*d.v = max(*d.v, 0)
	}
	return c
}

// sobol returns points of the box for a step.
func (p *Continuous) sobol(n, step int) *kernel.Points[float64] {
	return (&Search{Domain: &p.box, Wide: n, Seed: p.seed(step)}).wide()
}

// seed is that of the candidates of a step.
func (p *Continuous) seed(step int) uint64 {
	return stream.Derive(p.cfg.Seed, "bandit candidates", uint64(step))
}

// Steps returns the number of pulls so far, pending ones included.
func (p *Continuous) Steps() int { return p.bkb.Steps() }

// Pending returns the number of pulls without reward.
func (p *Continuous) Pending() int { return p.bkb.post.Pending() }

// Next returns the suggestion for the next step. It changes nothing.
func (p *Continuous) Next() (Suggestion, error) {
	if p.bkb.fault != nil {
		return Suggestion{}, p.bkb.fault
	}
	s := p.stateNow()
	b := p.cfg.Beta.Beta(s)
	if s.Step == 1 {
		return p.suggest(s, b, p.sobol(1, 0).Row(0))
	}
	x, err := p.best(s.Step, b)
	if err != nil {
		return Suggestion{}, err
	}
	return p.suggest(s, b, x)
}

// Best returns the input with the largest posterior mean among those observed or
// pending. Its Gap is 2·Beta·σ̃. It returns an [*EmptyError] before the first input.
func (p *Continuous) Best() (Suggestion, error) {
	x := p.points()
	if x == nil {
		return Suggestion{}, &EmptyError{What: "pull yet"}
	}
	mean, _, err := p.bkb.post.Predict(x)
	if err != nil {
		return Suggestion{}, err
	}
	s := p.stateNow()
	row := x.(interface{ Row(int) []float64 }).Row(argmax(mean))
	return p.suggest(s, p.cfg.Beta.Beta(s), slices.Clone(row))
}

// points returns the inputs observed or pending, without those that were only taken back, or nil.
func (p *Continuous) points() kernel.Rows {
	if keep := p.bkb.known(); len(keep) > 0 {
		return p.bkb.post.Points().Select(keep)
	}
	return nil
}

func (p *Continuous) stateNow() State {
	return p.bkb.state(p.Steps(), p.bkb.post.EffectiveDimension(), p.bkb.post.InformationGain(), false)
}

func (p *Continuous) suggest(s State, b float64, x []float64) (Suggestion, error) {
	mean, variance, err := p.bkb.post.Predict(kernel.NewPoints(1, len(x), x))
	if err != nil {
		return Suggestion{}, err
	}
	return Suggestion{X: x, Decision: p.bkb.decision(s, -1, p.bkb.post.Rank(), b, mean[0], variance[0], p.bkb.post.PendingGain())}, nil
}

// climbedFor is the number of evaluations of one climb.
const climbedFor = 60

// best returns the input with the largest UCB that the search finds at a step.
func (p *Continuous) best(step int, b float64) ([]float64, error) {
	search := Search{
		Surface: ucb{p.bkb.post, b}, Domain: &p.box,
		Wide: p.cfg.Candidates, Seed: p.seed(step),
		Near: p.cfg.Local, Refine: p.cfg.Local / 8,
		Starts: p.cfg.Refine, Budget: climbedFor * p.cfg.Refine,
	}
	if known := p.points(); p.cfg.Local > 0 && known != nil {
		mean, _, err := p.bkb.post.Predict(known)
		if err != nil {
			return nil, err
		}
		rows := known.(interface{ Row(int) []float64 })
		for _, i := range Largest(mean, 5) {
			search.Parents = append(search.Parents, rows.Row(i))
		}
	}
	pool, err := search.Run(stream.New(stream.Derive(p.cfg.Seed, "bandit local", uint64(step))))
	if err != nil {
		return nil, err
	}
	return slices.Clone(pool.X[argmax(pool.Score)]), nil
}

// ucb is μ + b·σ of a posterior.
type ucb struct {
	*gp.Sparse
	b float64
}

func (u ucb) Score(x *kernel.Points[float64]) (Scores, error) {
	mean, variance, err := u.Predict(x)
	score := make([]float64, len(mean))
	for i, m := range mean {
		score[i] = m + u.b*math.Sqrt(variance[i])
	}
	return Scores{score, mean, variance}, err
}

func (u ucb) Probe() *Probe {
	return &Probe{u.Sparse.Probe(), u.b}
}

// row verifies an input and copies it.
func (p *Continuous) row(x []float64) (kernel.Rows, error) {
	if len(x) != len(p.cfg.Lo) {
		return nil, shapeError("x", len(x), len(p.cfg.Lo))
	}
	for c, v := range x {
		if !(v >= p.cfg.Lo[c] && v <= p.cfg.Hi[c]) {
			return nil, valueError("x", c, v, "within Lo and Hi")
		}
	}
	return kernel.NewPoints(1, len(x), slices.Clone(x)), nil
}

// Pull records that x is being pulled and its reward will come later. Its errors are
// [*ShapeError] and [*ValueError].
func (p *Continuous) Pull(x []float64) error {
	row, err := p.row(x)
	if err != nil {
		return err
	}
	if err := p.bkb.post.ObserveVariance(row); err != nil {
		return err
	}
	p.bkb.refresh()
	return nil
}

// Observe takes rewards of x. Each resolves a pending pull of x, if there is one. Its
// errors are those of Pull, and [*EmptyError].
func (p *Continuous) Observe(x []float64, y ...float64) error {
	row, err := p.row(x)
	if err != nil {
		return err
	}
	if err := checkRewards(y); err != nil {
		return err
	}
	for _, v := range y {
		mean, variance, err := p.bkb.post.Predict(row)
		if err != nil {
			return err
		}
		before := p.stateNow()
		if err := p.bkb.Learn(row, []float64{v}); err != nil {
			return err
		}
		p.bkb.learnNorm(before, mean[0], variance[0], v)
	}
	return nil
}

// Cancel takes back a pending pull of x. Its errors are those of Pull, and [ErrNotPending].
func (p *Continuous) Cancel(x []float64) error {
	row, err := p.row(x)
	if err != nil {
		return err
	}
	if p.bkb.post.Cancel(row) != nil {
		return ErrNotPending
	}
	return nil
}

// box is the [Domain] of which every point is valid.
type box struct{ low, high, unit []float64 }

// boxUnit is the unit of steps, as a share of each side.
const boxUnit = 0.4

func newBox(low, high []float64) box {
	unit := make([]float64, len(low))
	for c := range unit {
		unit[c] = boxUnit * (high[c] - low[c])
	}
	return box{low, high, unit}
}

func (b *box) Box() (low, high []float64) { return b.low, b.high }

func (b *box) Unit() []float64 { return b.unit }

// Mutate implements [Domain]. It moves one coordinate, and each other one with probability 0.3.
func (b *box) Mutate(x []float64, size float64, rng *rand.Rand) {
	must := rng.IntN(len(x))
	for c := range x {
		if c == must || rng.Float64() < 0.3 {
			x[c] = min(max(x[c]+size*b.unit[c]*rng.NormFloat64(), b.low[c]), b.high[c])
		}
	}
}

func (b *box) Snap(*kernel.Points[float64]) {}

func (b *box) Free(_ []float64, free []bool) bool {
	for c := range free {
		free[c] = true
	}
	return true
}
