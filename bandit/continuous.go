package bandit

import (
	"errors"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/sobol"
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
	// Local is the number of candidates near the 5 best inputs so far. An eighth as
	// many are near the best candidates, three times over. If 0, it is 256, and −1
	// means none.
	Local int
	// Refine is the number of best candidates from which the search climbs the gradient
	// of the UCB. If 0, it is 4, and −1 means none. A kernel without a gradient
	// disables it.
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

// Continuous is BKB, or exact GP-UCB, on a box. A [Search] maximises the UCB over
// Sobol' points and moves of the best inputs, and climbs its gradient in the span of
// the inducing points. The guarantees of Theorem 21 need the true maximum, which no
// search can promise (Carratino 2020, §7.1.4, infinite arm sets). Random numbers depend
// on seed and step, as in the other policies.
//
// Next costs O((Candidates + Local)(m² + md)).
type Continuous struct {
	base  base
	cfg   ContinuousConfig
	box   box
	model *surface
}

// NewContinuous returns the bandit. Its errors are those of
// [ContinuousConfig.Validate], and those of the kernel as in [NewGPUCB].
func NewContinuous(cfg ContinuousConfig) (*Continuous, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	p := &Continuous{cfg: cfg, box: newBox(cfg.Lo, cfg.Hi)}
	var err error
	if p.base, err = newBase(cfg.Config, p.sobol(256, 0)); err != nil {
		return nil, err
	}
	p.model, err = newSurface(cfg.BKBConfig, p.base)
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
	d := len(p.cfg.Lo)
	x := kernel.NewPoints[float64](n, d, nil)
	seq := sobol.New(d, stream.Derive(p.cfg.Seed, "bandit candidates", uint64(step)))
	for i := range n {
		row := x.Row(i)
		seq.At(uint32(i), row)
		for c, u := range row {
			row[c] = p.cfg.Lo[c] + u*(p.cfg.Hi[c]-p.cfg.Lo[c])
		}
	}
	return x
}

// Steps returns the number of pulls so far, pending ones included.
func (p *Continuous) Steps() int { return p.model.Steps() }

// Pending returns the number of pulls without reward.
func (p *Continuous) Pending() int { return p.model.post.Pending() }

// Norm returns the current F, or 0 where it is not guessed.
func (p *Continuous) Norm() float64 { return p.base.norm }

// Next returns the suggestion for the next step. It changes nothing.
func (p *Continuous) Next() (Suggestion, error) {
	if p.model.fault != nil {
		return Suggestion{}, p.model.fault
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
	x := p.model.points()
	if x == nil {
		return Suggestion{}, &EmptyError{What: "pull yet"}
	}
	mean, _, err := p.model.Predict(x)
	if err != nil {
		return Suggestion{}, err
	}
	s := p.stateNow()
	row := x.(interface{ Row(int) []float64 }).Row(argmax(mean))
	return p.suggest(s, p.cfg.Beta.Beta(s), slices.Clone(row))
}

func (p *Continuous) stateNow() State {
	return p.base.state(p.Steps(), p.model.currentDimension(), p.model.post.InformationGain(), false)
}

func (p *Continuous) suggest(s State, b float64, x []float64) (Suggestion, error) {
	mean, variance, err := p.model.Predict(kernel.NewPoints(1, len(x), x))
	if err != nil {
		return Suggestion{}, err
	}
	return Suggestion{X: x, Decision: p.base.decision(s, -1, p.model.post.Rank(), b, mean[0], variance[0], p.model.post.PendingGain())}, nil
}

// climbedFor is the number of evaluations of one climb.
const climbedFor = 60

// best returns the input with the largest UCB that the search finds at a step.
func (p *Continuous) best(step int, b float64) ([]float64, error) {
	search := Search{
		Surface: ucb{p.model, b, p.cfg.Kernel}, Domain: &p.box,
		Wide: p.cfg.Candidates, Seed: stream.Derive(p.cfg.Seed, "bandit candidates", uint64(step)),
		Near: p.cfg.Local, Refine: p.cfg.Local / 8,
		Starts: p.cfg.Refine, Budget: climbedFor * p.cfg.Refine,
	}
	if known := p.model.points(); p.cfg.Local > 0 && known != nil {
		mean, _, err := p.model.Predict(known)
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
	*surface
	b      float64
	kernel kernel.Kernel
}

// Score implements [Surface].
func (u ucb) Score(x *kernel.Points[float64]) (Scores, error) {
	mean, variance, err := u.Predict(x)
	if err != nil {
		return Scores{}, err
	}
	score := make([]float64, len(mean))
	for i, m := range mean {
		score[i] = m + u.b*math.Sqrt(variance[i])
	}
	return Scores{score, mean, variance}, nil
}

// Probe implements [Surface].
func (u ucb) Probe() *Probe {
	if _, ok := kernel.AsDifferentiable(u.kernel); !ok {
		return nil
	}
	return &Probe{sparseSlope{u.post.Probe()}, u.b}
}

// sparseSlope evaluates the sparse posterior at single points.
type sparseSlope struct{ probe *gp.Probe }

// Value implements [Slope].
func (s sparseSlope) Value(u []float64) (mean, sd float64, err error) { return s.probe.Value(u) }

// Gradient implements [Slope].
func (s sparseSlope) Gradient() (mean, sd []float64, err error) {
	mean, sd = s.probe.Gradient()
	return mean, sd, nil
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
	return p.model.pull(row)
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
		mean, variance, err := p.model.Predict(row)
		if err != nil {
			return err
		}
		before := p.base.guessing(p.stateNow)
		if err := p.model.Learn(row, []float64{v}); err != nil {
			return err
		}
		p.base.learnNorm(before, mean[0], variance[0], v)
	}
	return nil
}

// Cancel takes back a pending pull of x. Its errors are those of Pull, and
// [ErrNotPending].
func (p *Continuous) Cancel(x []float64) error {
	row, err := p.row(x)
	if err != nil {
		return err
	}
	return p.model.cancel(row)
}
