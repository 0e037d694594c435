package bandit

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// base is the common part of the policies on finite arms.
type base struct {
	cfg   Config
	arms  kernel.Rows
	bound float64 // κ²
	norm  float64 // F, where it was doubled
}

func newBase(cfg Config, arms kernel.Rows) (base, error) {
	cfg = cfg.withDefaults()
	if err := checkArms(cfg.Kernel, arms); err != nil {
		return base{}, err
	}
	b := base{cfg: cfg, arms: arms, bound: cfg.Kernel.Bound()}
	if t, ok := cfg.Beta.(Theory); ok && t.Double {
		b.norm = t.Norm
	}
	if !math.IsInf(b.bound, 1) {
		return b, nil
	}
	prior, err := kernel.Diagonal(cfg.Kernel, arms)
	if err != nil {
		return b, err
	}
	b.bound = slices.Max(prior)
	return b, nil
}

// Arms returns the arms.
func (b *base) Arms() kernel.Rows { return b.arms }

// Norm returns F as rewards have doubled it, or 0 where it is not a guess.
func (b *base) Norm() float64 { return b.norm }

func (b *base) checkArm(arm int) error {
	if arm < 0 || arm >= b.arms.Len() {
		return &ArmError{Arm: arm, Arms: b.arms.Len()}
	}
	return nil
}

// state returns the arguments of β, after steps pulls.
func (b *base) state(steps int, dimension, gain float64, exact bool) State {
	return State{
		Step: steps + 1, Dim: max(b.arms.Dim(), 1), NoiseVariance: b.cfg.NoiseVariance, Bound: b.bound,
		EffectiveDimension: dimension, InformationGain: gain, Norm: b.norm, Exact: exact,
	}
}

// guesses reports whether F is a guess.
func (b *base) guesses() bool {
	t, ok := b.cfg.Beta.(Theory)
	return ok && t.Double
}

// learnNorm doubles F until a reward does not contradict the state before it.
func (b *base) learnNorm(s State, mean, variance, y float64) {
	t, ok := b.cfg.Beta.(Theory)
	if !ok || !t.Double || variance <= 0 {
		return
	}
	t.Norm = b.norm
	for t.contradicted(s, mean, math.Sqrt(variance), y) {
		t.Norm *= 2
	}
	b.norm = t.Norm
}

// decision builds the Decision for an arm. open is Σ log(1 + σ²/λ) of the pending pulls. They may
// have shrunk a variance by at most its exponential, which counts against C̃.
func (b *base) decision(s State, arm, inducing int, beta, mean, variance, open float64) Decision {
	sd := math.Sqrt(variance)
	return Decision{
		Arm: arm, Mean: mean, StdDev: sd, UCB: mean + beta*sd, Beta: beta,
		TheoryBeta: reported(b.cfg.Beta).Beta(s), Step: s.Step - 1,
		InducingPoints: inducing, EffectiveDimension: s.EffectiveDimension, InformationGain: s.InformationGain,
		Gap: 2 * beta * sd, MaxBatch: maxBatch(b.cfg.Ratio*math.Exp(-open), 0, variance/b.cfg.NoiseVariance),
	}
}

// best is decision for the arm with the largest mean, with the gap to all arms.
func (b *base) best(s State, inducing int, beta float64, mean, variance []float64, open float64) Decision {
	arm, top := slices.Index(mean, slices.Max(mean)), math.Inf(-1)
	for i, m := range mean {
		top = max(top, m+beta*math.Sqrt(variance[i]))
	}
	d := b.decision(s, arm, inducing, beta, mean[arm], variance[arm], open)
	d.Gap = top - d.LCB()
	return d
}

// psdSample is the number of arms on which a kernel is tested.
const psdSample = 48

// checkArms verifies arms for a kernel.
func checkArms(k kernel.Kernel, arms kernel.Rows) error {
	if arms == nil || arms.Len() == 0 {
		return &EmptyError{What: "arms"}
	}
	if err := k.Check(arms); err != nil {
		return fmt.Errorf("bandit: arms: %w", err)
	}
	if err := kernel.CheckFinite("arms", arms); err != nil {
		return fmt.Errorf("bandit: %w", err)
	}
	if err := checkDistinct(arms); err != nil {
		return err
	}
	if err := kernel.CheckPSD(k, spread(arms, psdSample)); err != nil {
		return fmt.Errorf("bandit: kernel: %w", err)
	}
	return nil
}

func checkDistinct(arms kernel.Rows) error {
	if !keyed(arms) {
		return nil
	}
	seen := make(map[string]int, arms.Len())
	for i := range arms.Len() {
		key, _ := kernel.RowKey(arms, i)
		if j, found := seen[key]; found {
			return &DuplicateArmError{First: j, Second: i}
		}
		seen[key] = i
	}
	return nil
}

// spread returns at most count rows, evenly spaced.
func spread(x kernel.Rows, count int) kernel.Rows {
	n := x.Len()
	if n <= count {
		return x
	}
	idx := make([]int, count)
	for i := range idx {
		idx[i] = i * n / count
	}
	return x.Select(idx)
}

// keyed reports whether rows can be compared by value, also by package gp.
func keyed(x kernel.Rows) bool {
	if x.Len() == 0 {
		return false
	}
	_, ok := kernel.RowKey(x, 0)
	return ok
}

// Config holds the settings that all policies share.
type Config struct {
	// Kernel is the prior covariance of the rewards. Its scale matters. Fit it (package gp) rather
	// than increase Beta. [kernel.NewLinear] makes the policies linear bandits.
	Kernel kernel.Kernel
	// NoiseVariance is λ = ξ² > 0.
	NoiseVariance float64
	Mean          float64    // prior mean of the rewards, a constant
	Beta          Confidence // width of the confidence bounds, or nil for Practical{}
	// Ratio is C̃ > 1 of the batch rule, or 0 for 2. It is the largest factor by which a variance may
	// shrink before the model gets the rewards.
	Ratio   float64
	Seed    uint64 // of all random numbers
	Workers int    // goroutines, or 0 for one per processor
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var errs []error
	if c.Kernel == nil {
		errs = append(errs, &EmptyError{What: "kernel"})
	}
	errs = append(errs, positive("NoiseVariance", c.NoiseVariance))
	if c.Beta != nil {
		errs = append(errs, c.Beta.Check())
	}
	if c.Ratio != 0 && !(c.Ratio >= 1 && finite(c.Ratio)) {
		errs = append(errs, valueError("Ratio", -1, c.Ratio, "≥ 1 and finite, or 0"))
	}
	if c.Workers < 0 {
		errs = append(errs, valueError("Workers", -1, float64(c.Workers), "≥ 0"))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Beta == nil {
		c.Beta = Practical{}
	}
	if c.Ratio == 0 {
		c.Ratio = 2
	}
	return c
}

// first is the arm of the first step, uniform as in Algorithm 5 of Carratino (2020).
func (c Config) first(arms int) int {
	return stream.New(stream.Derive(c.Seed, "bandit first arm", 0)).IntN(arms)
}
