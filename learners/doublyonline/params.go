package doublyonline

import (
	"cmp"
	"context"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/learners/sgdrf"
	"github.com/bkbtuner/bkb/sketch"
)

const (
	algorithm = "doublyonline"
	// DefaultFeatures is B if Params do not say.
	DefaultFeatures = 16
	// checkpoints is how many iterations a fit has at most.
	checkpoints = 20
)

// Params are the hyper-parameters. The zero values of all but Kernel stand for
// defaults.
type Params struct {
	// Kernel is what the features converge to.
	Kernel kernel.Kernel
	// Family is the kind of features, which must be independent: Fourier,
	// FourierCosine, ReLU or GaussianSketch; empty: the one that suits the kernel.
	Family sketch.Family
	// Features is B, the new features in each step, even for Fourier; 0: 16.
	Features int
	// StepSize is η; 0: T^−½.
	StepSize float64
	// StepDecay is θ in η_t = ηt^−θ, 0 ≤ θ < 1.
	StepDecay float64
	// Lambda is λ ≥ 0, the ridge λ‖f‖² of the kernel's space; ηλ < 1.
	Lambda float64
	// Passes over the data; 0: 1. T = Passes·n.
	Passes int
	// Sampling is the order of the rows; empty: minibatch.Reshuffle, every row
	// once. minibatch.Cycle takes a stream as it comes.
	Sampling minibatch.Sampling
	// Chunk is that of minibatch.Plan.
	Chunk int
}

var _ learners.Estimator = Params{}

// Validate implements learners.Estimator.
func (p Params) Validate() error {
	if p.Kernel == nil {
		return learners.Invalid(algorithm, "kernel", nil, "one; start with a Gaussian with the median distance as length scale")
	}
	if err := p.settings().Validate(algorithm); err != nil {
		return err
	}
	if p.Lambda*max(p.StepSize, 0) >= 1 || p.StepSize == 0 && p.Lambda >= 1 {
		return learners.Invalid(algorithm, "lambda", p.Lambda, "below 1/η, η being the step size, or 1 if that is the default")
	}
	switch p.family() {
	case sketch.Fourier, sketch.FourierCosine, sketch.ReLU, sketch.GaussianSketch:
	default:
		return learners.Invalid(algorithm, "family", p.Family, "one of independent features: fourier, fourier_cosine, relu or gaussian_sketch")
	}
	if p.Features%2 != 0 && p.family() == sketch.Fourier {
		return learners.Invalid(algorithm, "features", p.Features, "even: a cosine and a sine for each frequency")
	}
	if _, err := p.newFeatures(learners.SomeDim(p.Kernel), p.perStep(), 0); err != nil {
		return learners.Invalid(algorithm, "family", p.family(), "one that suits the kernel: "+err.Error())
	}
	return nil
}

func (p Params) family() sketch.Family {
	if p.Family != "" {
		return p.Family
	}
	if f := sgdrf.FamilyOf(p.Kernel, 1); f != sketch.Orthogonal {
		return f
	}
	return sketch.Fourier
}

func (p Params) perStep() int {
	return cmp.Or(p.Features, DefaultFeatures)
}

func (p Params) newFeatures(d, m int, seed uint64) (sketch.FeatureMap, error) {
	return learners.NewFeatures(context.Background(), algorithm, sketch.FeatureSpec{Family: p.family(), Kernel: p.Kernel.Spec(), Dim: d, Features: m, Seed: seed})
}

// stepSize returns η for T steps.
func (p Params) stepSize(steps int) float64 {
	if p.StepSize > 0 {
		return p.StepSize
	}
	return 1 / math.Sqrt(float64(steps))
}

func (p Params) settings() minibatch.Settings {
	return minibatch.Settings{
		Features: p.Features, Passes: p.Passes, Chunk: p.Chunk,
		StepSize: p.StepSize, StepDecay: p.StepDecay, Lambda: p.Lambda,
		Sampling: cmp.Or(p.Sampling, minibatch.Reshuffle),
	}
}
