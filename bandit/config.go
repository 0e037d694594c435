package bandit

import (
	"errors"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// Config holds the settings that all policies share.
type Config struct {
	// Kernel is the prior covariance of the rewards. Its scale matters. Fit it (package gp) rather
	// than increase Beta. [kernel.NewLinear] makes the policies linear bandits.
	Kernel kernel.Kernel
	// NoiseVariance is λ = ξ² > 0. A value 4 times the true one costs 1.3 times the regret on Branin,
	// and a smaller one costs inducing points.
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
