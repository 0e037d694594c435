package avgsgd

import (
	"cmp"
	"context"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/sketch"
)

const (
	algorithm = "avgsgd"
	// DefaultPasses is the default number of passes.
	DefaultPasses = 5
	// gramRows is the largest n for which K is held in memory, with 200 MB.
	gramRows = 5000
)

// Averaging says which iterates make the model.
type Averaging string

const (
	// All takes the mean of all iterates. It is the default.
	All Averaging = "all"
	// None takes the last iterate.
	None Averaging = "none"
)

// Params are the hyper-parameters. The zero Params are the linear model.
type Params struct {
	// Kernel is nil for the linear model, f(x) = ⟨w, x⟩.
	Kernel kernel.Kernel
	// Features is the number M of random features of the kernel, or 0 for the kernel itself.
	Features int
	// Family is the kind of features. If empty, it is sketch.FamilyOf the kernel and d.
	Family sketch.Family
	// StepSize is γ. If 0, it is 1/(4R²), where R² is the largest ‖Φ(x_i)‖² of the data.
	StepSize float64
	// Passes is the number of passes over the data, n steps each. If 0, it is 5.
	Passes    int
	Averaging Averaging
	// Sampling is the order of the rows. If empty, it is minibatch.Replacement.
	Sampling minibatch.Sampling
	// Chunk is the chunk of minibatch.Plan. The kernelised form has one chunk.
	Chunk int
}

var _ learners.Estimator = Params{}

func (p Params) Validate() error {
	err := cmp.Or(
		p.settings().Validate(algorithm),
		learners.Require(p.Averaging == "" || p.Averaging == All || p.Averaging == None, algorithm, "averaging", p.Averaging, "all or none"),
		learners.Require(p.Kernel != nil || p.Features == 0 && p.Family == "", algorithm, "kernel", nil, "one for random features"),
		learners.Require(p.Features > 0 || p.Family == "", algorithm, "features", 0, "at least 1 with a family of features"),
	)
	if err != nil || p.Features == 0 {
		return err
	}
	if _, err := p.newFeatures(context.Background(), learners.SomeDim(p.Kernel), p.Features, 0); err != nil {
		return learners.Invalid(algorithm, "features", p.Features, "a number that suits the family and the kernel: "+err.Error())
	}
	return nil
}

func (p Params) newFeatures(ctx context.Context, d, m int, seed uint64) (sketch.FeatureMap, error) {
	family := p.Family
	if family == "" {
		family = sketch.FamilyOf(p.Kernel, d)
	}
	return learners.NewFeatures(ctx, algorithm, sketch.FeatureSpec{Family: family, Kernel: p.Kernel.Spec(), Dim: d, Features: m, Seed: seed})
}

func (p Params) settings() minibatch.Settings {
	return minibatch.Settings{
		Features: p.Features, Passes: p.Passes, Chunk: p.Chunk, StepSize: p.StepSize,
		Sampling: cmp.Or(p.Sampling, minibatch.Replacement),
	}
}
