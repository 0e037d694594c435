package doublyonline

import (
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
	invalid := func(name string, value any, want string) error {
		return learners.Invalid(algorithm, name, value, want)
	}
	if p.Kernel == nil {
		return invalid("kernel", nil, "one; start with a Gaussian with the median distance as length scale")
	}
	for _, c := range []struct {
		name  string
		value int
	}{{"features", p.Features}, {"passes", p.Passes}, {"chunk", p.Chunk}} {
		if c.value < 0 {
			return invalid(c.name, c.value, "at least 1, or 0 for the default")
		}
	}
	for _, c := range []struct {
		name  string
		value float64
	}{{"step size", p.StepSize}, {"lambda", p.Lambda}} {
		if err := learners.NotNegative(algorithm, c.name, c.value); err != nil {
			return err
		}
	}
	if !(p.StepDecay >= 0 && p.StepDecay < 1) {
		return invalid("step decay", p.StepDecay, "in [0, 1)")
	}
	if p.Lambda*max(p.StepSize, 0) >= 1 || p.StepSize == 0 && p.Lambda >= 1 {
		return invalid("lambda", p.Lambda, "below 1/η, η being the step size, or 1 if that is the default")
	}
	if !p.plan(1).Sampling.Valid() {
		return invalid("sampling", p.Sampling, "replacement, reshuffle or cycle")
	}
	switch p.family() {
	case sketch.Fourier, sketch.FourierCosine, sketch.ReLU, sketch.GaussianSketch:
	default:
		return invalid("family", p.Family, "one of independent features: fourier, fourier_cosine, relu or gaussian_sketch")
	}
	if p.Features%2 != 0 && p.family() == sketch.Fourier {
		return invalid("features", p.Features, "even: a cosine and a sine for each frequency")
	}
	if _, err := p.newFeatures(someDim(p.Kernel), p.perStep(), 0); err != nil {
		return invalid("family", p.family(), "one that suits the kernel: "+err.Error())
	}
	return nil
}

// someDim is a number of coordinates that the kernel accepts.
func someDim(k kernel.Kernel) int {
	spec := k.Spec()
	for spec.Name == "scaled" && len(spec.Parts) == 1 {
		spec = spec.Parts[0]
	}
	return max(1, len(spec.LengthScales))
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
	if p.Features == 0 {
		return DefaultFeatures
	}
	return p.Features
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

// plan deals blocks of rows to step on one by one.
func (p Params) plan(block int) minibatch.Plan {
	plan := minibatch.Plan{Sampling: p.Sampling, BatchSize: block, Exact: true, Chunk: p.Chunk}
	if plan.Sampling == "" {
		plan.Sampling = minibatch.Reshuffle
	}
	return plan
}
