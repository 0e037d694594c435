package bandit

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// base is the common part of the policies on finite arms.
type base struct {
	cfg   Config
	arms  kernel.Rows
	bound float64 // κ²
}

func newBase(cfg Config, arms kernel.Rows) (base, error) {
	cfg = cfg.withDefaults()
	if err := checkArms(cfg.Kernel, arms); err != nil {
		return base{}, err
	}
	b := base{cfg: cfg, arms: arms, bound: cfg.Kernel.Bound()}
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
		EffectiveDimension: dimension, InformationGain: gain, Exact: exact,
	}
}

// decision builds the Decision for an arm. open is Σ log(1 + σ²/λ) of the pending
// pulls. They may have shrunk a variance by at most its exponential, which counts
// against C̃.
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
	arm, top := argmax(mean), math.Inf(-1)
	for i, m := range mean {
		top = max(top, m+beta*math.Sqrt(variance[i]))
	}
	d := b.decision(s, arm, inducing, beta, mean[arm], variance[arm], open)
	d.Gap = top - d.LCB()
	return d
}

// argmax returns the index of the largest number, the lowest of equals.
func argmax(v []float64) int { return slices.Index(v, slices.Max(v)) }
