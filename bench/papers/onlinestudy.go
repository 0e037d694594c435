package papers

import (
	"context"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/doublyonline"
	"github.com/bkbtuner/bkb/learners/theory"
)

// onlineRule is a choice of steps in Lin and Rosasco (2019).
type onlineRule string

// These are the rules. Their exponents come from theory.DoublyOnline.
const (
	fixedSteps       onlineRule = "fixed"       // Corollary 3.2, constant steps for a known T
	decayingSteps    onlineRule = "decaying"    // Corollary 3.6, steps that decay
	regularisedSteps onlineRule = "regularised" // Corollary 3.8, steps that decay, and λ
)

// onlineStudy measures the rate at which ‖f_T − f_ρ‖² falls as T grows. x is uniform on [0,
// 1], and the Gaussian kernel has the length scale 0.2. f_ρ is a random function of its
// space, so that ζ ≥ ½ and γ ≈ 0, and the noise is normal.
type onlineStudy struct {
	Rule  onlineRule
	Sizes []int // T, increasing, at least two
	// StepSize replaces the constant of the paper before T^−… or t^−…, which comes from
	// a proof. If 0, it is 1.
	StepSize float64
	// Features is B. If 0, it is 16.
	Features int
	Noise    float64 // standard deviation
	// Repetitions is the number of repetitions to average. If 0, it is 8.
	Repetitions int
	Seed        uint64
}

// onlineRates is the result of an onlineStudy.
type onlineRates struct {
	Sizes []int
	Error []float64 // mean of ‖f_T − f_ρ‖², relative to ‖f_ρ‖²
	// Slope is the slope of log Error against log T. Theory is −Rate, the bound of the
	// corollary.
	Slope, Theory float64
}

const (
	onlineScale   = 0.2
	onlineCenters = 20
	onlineGrid    = 400
	// onlineEpsilon is ε of Corollary 3.8.
	onlineEpsilon = 0.05
)

// onlineProblem has γ = 0 for the spectrum of the Gaussian kernel.
var onlineProblem = theory.DoublyOnline{Zeta: 0.5, Gamma: 0, KappaSq: 2}

// Run makes the experiment, with Repetitions·B·T² operations for every T.
func (s onlineStudy) Run(ctx context.Context) (*onlineRates, error) {
	if s.StepSize == 0 {
		s.StepSize = 1
	}
	if s.Repetitions == 0 {
		s.Repetitions = 8
	}
	if len(s.Sizes) < 2 || s.Sizes[0] < 1 || !slices.IsSorted(s.Sizes) || s.Sizes[0] == s.Sizes[len(s.Sizes)-1] {
		return nil, learners.Invalid("doublyonline", "sizes", s.Sizes, "two different numbers of steps at least, increasing")
	}
	out := &onlineRates{Sizes: s.Sizes, Error: make([]float64, len(s.Sizes))}
	for i, steps := range s.Sizes {
		p, rate, err := s.params(steps)
		if err != nil {
			return nil, err
		}
		out.Theory = -rate
		for rep := range s.Repetitions {
			e, err := s.once(ctx, p, steps, rep)
			if err != nil {
				return nil, err
			}
			out.Error[i] += e / float64(s.Repetitions)
		}
	}
	out.Slope = theory.Slope(s.Sizes, out.Error)
	return out, nil
}

// params returns the parameters of the rule for T steps, and the rate of theory.
func (s onlineStudy) params(steps int) (p doublyonline.Params, rate float64, err error) {
	var t theory.Steps
	switch s.Rule {
	case fixedSteps:
		t, err = onlineProblem.Fixed(steps)
		at1, _ := onlineProblem.Fixed(1)
		t.StepSize /= at1.StepSize // only the power of T
	case decayingSteps:
		t, err = onlineProblem.Decaying()
		t.StepSize = 1
	case regularisedSteps:
		t, err = onlineProblem.Regularised(steps, onlineEpsilon)
		t.StepSize = 1
	default:
		err = learners.Invalid("doublyonline", "rule", s.Rule, "fixed, decaying or regularised")
	}
	if err != nil {
		return p, 0, err
	}
	k, err := kernel.NewGaussian(onlineScale)
	return doublyonline.Params{
		Kernel: k, Features: s.Features, StepSize: s.StepSize * t.StepSize, StepDecay: t.StepDecay, Lambda: t.Lambda,
	}, t.Rate, err
}

// once returns ‖f_T − f_ρ‖²/‖f_ρ‖² for one stream of rows and features.
func (s onlineStudy) once(ctx context.Context, p doublyonline.Params, steps, rep int) (float64, error) {
	rng := stream.New(stream.Derive(s.Seed, "doublyonline/study", uint64(rep)))
	coef, centers := make([]float64, onlineCenters), make([]float64, onlineCenters)
	for i := range coef {
		coef[i], centers[i] = rng.NormFloat64(), rng.Float64()
	}
	target, err := learners.NewExpansion(p.Kernel, kernel.NewPoints(onlineCenters, 1, centers), coef, 1)
	if err != nil {
		return 0, err
	}
	x, y, grid := make([]float64, steps), make([]float64, steps), make([]float64, onlineGrid)
	for i := range x {
		x[i] = rng.Float64()
	}
	for i := range grid {
		grid[i] = (float64(i) + 0.5) / onlineGrid
	}
	if err := target.Predict(ctx, y, kernel.FromRows(kernel.NewPoints(steps, 1, x))); err != nil {
		return 0, err
	}
	for i := range y {
		y[i] += s.Noise * rng.NormFloat64()
	}
	train, err := data.NewMemory(kernel.NewPoints(steps, 1, x), y, 1)
	if err != nil {
		return 0, err
	}
	model, err := p.Fit(ctx, train, learners.Options{Seed: rng.Uint64()})
	if err != nil {
		return 0, err
	}
	points := kernel.FromRows(kernel.NewPoints(onlineGrid, 1, grid))
	f, want := make([]float64, onlineGrid), make([]float64, onlineGrid)
	if err := target.Predict(ctx, want, points); err != nil {
		return 0, err
	}
	if err := model.Predict(ctx, f, points); err != nil {
		return 0, err
	}
	return learners.MSE(f, want, 1) / learners.MSE(make([]float64, onlineGrid), want, 1), nil
}
