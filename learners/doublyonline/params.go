package doublyonline

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/sketch"
)

const (
	algorithm = "doublyonline"
	// DefaultFeatures is the default of B.
	DefaultFeatures = 16
	// checkpoints is the largest number of iterations of a fit.
	checkpoints = 20
)

// Params are the hyper-parameters. Zero values mean defaults for all fields except Kernel.
type Params struct {
	// Kernel is the kernel to which the features converge.
	Kernel kernel.Kernel
	// Family is the kind of features, which must be independent. It is Fourier, FourierCosine,
	// ReLU or GaussianSketch. If empty, it is the one that suits the kernel.
	Family sketch.Family
	// Features is B, the number of new features in each step, which must be even for
	// Fourier. If 0, it is 16.
	Features int
	// StepSize is η. If 0, it is T^−½.
	StepSize float64
	// StepDecay is θ in η_t = ηt^−θ, 0 ≤ θ < 1.
	StepDecay float64
	// Lambda is λ ≥ 0, the ridge λ‖f‖² of the kernel's space, with ηλ < 1.
	Lambda float64
	// Passes is the number of passes over the data. If 0, it is 1. T = Passes·n.
	Passes int
	// Sampling is the order of the rows. If empty, it is minibatch.Reshuffle, which
	// takes every row once. minibatch.Cycle takes the rows of a stream in their order.
	Sampling minibatch.Sampling
	// Chunk is the chunk of minibatch.Plan.
	Chunk int
}

var _ learners.Estimator = Params{}

func (p Params) Validate() error {
	if err := learners.CheckKernel(algorithm, p.Kernel); err != nil {
		return err
	}
	families := []sketch.Family{sketch.Fourier, sketch.FourierCosine, sketch.ReLU, sketch.GaussianSketch}
	err := cmp.Or(
		p.settings().Validate(algorithm),
		learners.Require(p.Lambda*max(p.StepSize, 0) < 1 && (p.StepSize != 0 || p.Lambda < 1), algorithm, "lambda", p.Lambda, "below 1/η for the step size η, or below 1 for the default step size"),
		learners.Require(slices.Contains(families, p.family()), algorithm, "family", p.Family, "one of independent features: fourier, fourier_cosine, relu or gaussian_sketch"),
		learners.Require(p.Features%2 == 0 || p.family() != sketch.Fourier, algorithm, "features", p.Features, "even, for a cosine and a sine of each frequency"),
	)
	if err != nil {
		return err
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
	if f := sketch.FamilyOf(p.Kernel, 1); f != sketch.Orthogonal {
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
