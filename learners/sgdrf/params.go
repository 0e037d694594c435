package sgdrf

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/sketch"
)

const (
	algorithm = "sgdrf"
	// DefaultPasses is the default number of passes.
	DefaultPasses = 5
	// MinFeatures and MaxFeatures limit the default M.
	MinFeatures = 256
	MaxFeatures = 1 << 14
)

// Params are the hyper-parameters. Zero values mean defaults for all fields except Kernel.
type Params struct {
	// Kernel is the kernel to which the features converge, for a Family that has it.
	Kernel kernel.Kernel
	// Family is the kind of features. If empty, it is [sketch.FamilyOf] the kernel and d.
	Family sketch.Family
	// Features is M, which must be even for features in pairs. If 0, it is [DefaultFeatures].
	Features int
	// BatchSize is b, at most n. If 0, it is ⌈√n⌉.
	BatchSize int
	// StepSize is γ. If 0, it is StepScale·γ*, see [Curvature.Step].
	StepSize float64
	// StepScale is c in γ = c·γ*, below 2. If 0, it is 1 from b = √n on and 0.1 up to
	// b = 10. Between them it grows in proportion to log b.
	StepScale float64
	// StepDecay is θ in γ_t = γt^−θ, 0 ≤ θ < 1. 0 was always best in our measurements, as in
	// Theorem 3. For the quantile loss steps of constant size do not converge, and ½ is better.
	StepDecay float64
	// Passes is the number of passes over the data. If 0, it is 5. A pass is ⌈n/b⌉ steps.
	Passes int
	// Lambda is λ ≥ 0 of a ridge λ‖w‖², per sample. Early stopping does not need it.
	Lambda    float64
	Averaging Averaging
	// Loss is the loss, or empty for the squared loss. Steps follow half of its gradient
	// for the squared loss, and its gradient for the others.
	Loss learners.Loss
	// Delta is δ > 0 of the Huber loss, in the units of the targets. If 0, it is 1.
	Delta float64
	// Quantile is τ of the quantile loss, between 0 and 1. If 0, it is ½.
	Quantile float64
	// Sampling says how mini-batches are drawn. If empty, it is minibatch.Replacement,
	// as in (3.2). minibatch.Cycle with b = n is gradient descent.
	Sampling minibatch.Sampling
	// Chunk is the number of consecutive rows from which a mini-batch is drawn, see
	// minibatch.Plan.
	Chunk int
}

var _ learners.Estimator = Params{}

// DefaultFeatures returns M = 4√n, at least 256 and at most 16384, rounded up to an even number.
func DefaultFeatures(n int) int {
	m := recommended(n).Features
	m += m % 2
	return min(max(m, MinFeatures), MaxFeatures)
}

// recommended is Corollary 5, (c1.3), for n ≥ 1.
func recommended(n int) theory.SGD {
	s, err := theory.MiniBatches.Settings(max(n, 1), theory.WorstCase())
	if err != nil {
		panic(err) // n ≥ 1 and the worst case are in range
	}
	return s
}

// DefaultStepScale returns c for mini-batches of b of n rows, see Params.
func DefaultStepScale(b, n int) float64 {
	const few, small = 10, 0.1
	root := math.Sqrt(float64(n))
	switch {
	case float64(b) >= root:
		return 1
	case b <= few:
		return small
	}
	share := math.Log(float64(b)/few) / math.Log(root/few)
	return small + share*(1-small)
}

func (p Params) Validate() error {
	if err := learners.CheckKernel(algorithm, p.Kernel); err != nil {
		return err
	}
	d := learners.SomeDim(p.Kernel)
	losses := []learners.Loss{learners.SquaredLoss, learners.HuberLoss, learners.QuantileLoss}
	err := cmp.Or(
		p.settings().Validate(algorithm),
		learners.Require(p.Features%2 == 0 || !paired(p.family(d)), algorithm, "features", p.Features, "even, for a cosine and a sine of each frequency"),
		learners.Require(p.StepScale >= 0 && p.StepScale < 2, algorithm, "step scale", p.StepScale, "above 0 and below 2, where iterates diverge, or 0 for the default"),
		learners.Require(p.StepScale == 0 || p.StepSize == 0, algorithm, "step scale", p.StepScale, "0 if the step size is given"),
		learners.Require(slices.Contains(losses, p.Loss), algorithm, "loss", p.Loss, fmt.Sprintf("empty, %q or %q", learners.HuberLoss, learners.QuantileLoss)),
		learners.NotNegative(algorithm, "delta", p.Delta),
		learners.CheckQuantile(algorithm, p.Quantile),
		learners.Require(slices.Contains([]Averaging{None, Tail, All}, p.averaging(1)), algorithm, "averaging", p.Averaging, "none, tail or all, or empty for the default"),
	)
	if err != nil {
		return err
	}
	if _, err := p.newFeatures(context.Background(), d, 2, 0); err != nil {
		return learners.Invalid(algorithm, "family", p.family(d), "one that suits the kernel: "+err.Error())
	}
	return nil
}

func paired(f sketch.Family) bool {
	return f == sketch.Orthogonal || f == sketch.Fourier || f == sketch.Fastfood
}

func (p Params) family(d int) sketch.Family {
	if p.Family != "" {
		return p.Family
	}
	return sketch.FamilyOf(p.Kernel, d)
}

func (p Params) settings() minibatch.Settings {
	return minibatch.Settings{
		Features: p.Features, BatchSize: p.BatchSize, Passes: p.Passes, Chunk: p.Chunk,
		StepSize: p.StepSize, StepDecay: p.StepDecay, Lambda: p.Lambda,
		Sampling: cmp.Or(p.Sampling, minibatch.Replacement),
	}
}

func (p Params) averaging(passes int) Averaging {
	switch {
	case p.Averaging != AveragingAuto:
		return p.Averaging
	case passes > 10, p.Loss == learners.QuantileLoss:
		return Tail
	default:
		return None
	}
}

// newFeatures returns the map with M features, 0 for those of p.
func (p Params) newFeatures(ctx context.Context, d, m int, seed uint64) (sketch.FeatureMap, error) {
	return learners.NewFeatures(ctx, algorithm, sketch.FeatureSpec{
		Family: p.family(d), Kernel: p.Kernel.Spec(), Dim: d, Features: m, Seed: seed,
	})
}
