package avgsgd

import (
	"context"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/learners/sgdrf"
	"github.com/bkbtuner/bkb/sketch"
)

const (
	algorithm = "avgsgd"
	// DefaultPasses is how often the data are read if Params do not say.
	DefaultPasses = 5
	// gramRows is up to which n K is held in memory: 200 MB.
	gramRows = 5000
)

// Averaging is which iterates make the model.
type Averaging string

const (
	// All takes the mean of all iterates. The default.
	All Averaging = "all"
	// None takes the last iterate.
	None Averaging = "none"
)

// Params are the hyper-parameters. The zero Params are the linear model.
type Params struct {
	// Kernel is nil for the linear model, f(x) = ⟨w, x⟩.
	Kernel kernel.Kernel
	// Features is M of random features of the kernel; 0 for the kernel itself.
	Features int
	// Family is the kind of features; empty: sgdrf.FamilyOf the kernel and d.
	Family sketch.Family
	// StepSize is γ; 0: 1/(4R²), R² being the largest ‖Φ(x_i)‖² of the data.
	StepSize float64
	// Passes over the data, n steps each; 0: 5.
	Passes    int
	Averaging Averaging
	// Sampling of the rows; empty: minibatch.Replacement.
	Sampling minibatch.Sampling
	// Chunk is that of minibatch.Plan. The kernelised form has one chunk.
	Chunk int
}

var _ learners.Estimator = Params{}

// Validate implements learners.Estimator.
func (p Params) Validate() error {
	invalid := func(name string, value any, want string) error {
		return learners.Invalid(algorithm, name, value, want)
	}
	for _, c := range []struct {
		name  string
		value int
	}{{"features", p.Features}, {"passes", p.Passes}, {"chunk", p.Chunk}} {
		if c.value < 0 {
			return invalid(c.name, c.value, "at least 1, or 0 for the default")
		}
	}
	if err := learners.NotNegative(algorithm, "step size", p.StepSize); err != nil {
		return err
	}
	if p.Averaging != "" && p.Averaging != All && p.Averaging != None {
		return invalid("averaging", p.Averaging, "all or none")
	}
	if !p.plan(1).Sampling.Valid() {
		return invalid("sampling", p.Sampling, "replacement, reshuffle or cycle")
	}
	if p.Kernel == nil {
		if p.Features > 0 || p.Family != "" {
			return invalid("kernel", nil, "one for random features")
		}
		return nil
	}
	if p.Features == 0 {
		if p.Family != "" {
			return invalid("features", 0, "at least 1 with a family of features")
		}
		return nil
	}
	if _, err := p.newFeatures(context.Background(), someDim(p.Kernel), p.Features, 0); err != nil {
		return invalid("features", p.Features, "a number that suits the family and the kernel: "+err.Error())
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

func (p Params) newFeatures(ctx context.Context, d, m int, seed uint64) (sketch.FeatureMap, error) {
	family := p.Family
	if family == "" {
		family = sgdrf.FamilyOf(p.Kernel, d)
	}
	return learners.NewFeatures(ctx, algorithm, sketch.FeatureSpec{Family: family, Kernel: p.Kernel.Spec(), Dim: d, Features: m, Seed: seed})
}

// plan deals blocks of rows to step on one by one.
func (p Params) plan(block int) minibatch.Plan {
	plan := minibatch.Plan{Sampling: p.Sampling, BatchSize: block, Exact: true, Chunk: p.Chunk}
	if plan.Sampling == "" {
		plan.Sampling = minibatch.Replacement
	}
	return plan
}
