package doublyonline

import (
	"context"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/theory"
)

// Rule is a choice of steps in Lin and Rosasco (2019).
type Rule string

// These are the rules. Their exponents come from theory.DoublyOnline.
const (
	Fixed       Rule = "fixed"       // Corollary 3.2, constant steps for a known T
	Decaying    Rule = "decaying"    // Corollary 3.6, steps that decay
	Regularised Rule = "regularised" // Corollary 3.8, steps that decay, and λ
)

// Study measures the rate at which ‖f_T − f_ρ‖² falls as T grows. x is uniform on [0,
// 1], and the Gaussian kernel has the length scale 0.2. f_ρ is a random function of its
// space, so that ζ ≥ ½ and γ ≈ 0, and the noise is normal.
type Study struct {
	Rule  Rule
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

// Rates is the result of a Study.
type Rates struct {
	Sizes []int
	Error []float64 // mean of ‖f_T − f_ρ‖², relative to ‖f_ρ‖²
	// Slope is the slope of log Error against log T. Theory is −Rate, the bound of the
	// corollary.
	Slope, Theory float64
}

const (
	studyScale   = 0.2
	studyCenters = 20
	studyGrid    = 400
	// studyEpsilon is ε of Corollary 3.8.
	studyEpsilon = 0.05
)

// studyProblem has γ = 0 for the spectrum of the Gaussian kernel.
var studyProblem = theory.DoublyOnline{Zeta: 0.5, Gamma: 0, KappaSq: 2}

// Run makes the experiment, with Repetitions·B·T² operations for every T.
func (s Study) Run(ctx context.Context) (*Rates, error) {
	if s.StepSize == 0 {
		s.StepSize = 1
	}
	if s.Repetitions == 0 {
		s.Repetitions = 8
	}
	if len(s.Sizes) < 2 || s.Sizes[0] < 1 || !slices.IsSorted(s.Sizes) || s.Sizes[0] == s.Sizes[len(s.Sizes)-1] {
		return nil, learners.Invalid(algorithm, "sizes", s.Sizes, "two different numbers of steps at least, increasing")
	}
	out := &Rates{Sizes: s.Sizes, Error: make([]float64, len(s.Sizes))}
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
func (s Study) params(steps int) (p Params, rate float64, err error) {
	var t theory.Steps
	switch s.Rule {
	case Fixed:
		t, err = studyProblem.Fixed(steps)
		at1, _ := studyProblem.Fixed(1)
		t.StepSize /= at1.StepSize // only the power of T
	case Decaying:
		t, err = studyProblem.Decaying()
		t.StepSize = 1
	case Regularised:
		t, err = studyProblem.Regularised(steps, studyEpsilon)
		t.StepSize = 1
	default:
		err = learners.Invalid(algorithm, "rule", s.Rule, "fixed, decaying or regularised")
	}
	if err != nil {
		return p, 0, err
	}
	k, err := kernel.NewGaussian(studyScale)
	return Params{
		Kernel: k, Features: s.Features, StepSize: s.StepSize * t.StepSize, StepDecay: t.StepDecay, Lambda: t.Lambda,
	}, t.Rate, err
}

// once returns ‖f_T − f_ρ‖²/‖f_ρ‖² for one stream of rows and features.
func (s Study) once(ctx context.Context, p Params, steps, rep int) (float64, error) {
	rng := stream.New(stream.Derive(s.Seed, "doublyonline/study", uint64(rep)))
	coef, centers := make([]float64, studyCenters), make([]float64, studyCenters)
	for i := range coef {
		coef[i], centers[i] = rng.NormFloat64(), rng.Float64()
	}
	target, err := learners.NewExpansion(p.Kernel, kernel.NewPoints(studyCenters, 1, centers), coef, 1)
	if err != nil {
		return 0, err
	}
	x, y, grid := make([]float64, steps), make([]float64, steps), make([]float64, studyGrid)
	for i := range x {
		x[i] = rng.Float64()
	}
	for i := range grid {
		grid[i] = (float64(i) + 0.5) / studyGrid
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
	points := kernel.FromRows(kernel.NewPoints(studyGrid, 1, grid))
	f, want := make([]float64, studyGrid), make([]float64, studyGrid)
	if err := target.Predict(ctx, want, points); err != nil {
		return 0, err
	}
	if err := model.Predict(ctx, f, points); err != nil {
		return 0, err
	}
	return learners.MSE(f, want, 1) / learners.MSE(make([]float64, studyGrid), want, 1), nil
}
