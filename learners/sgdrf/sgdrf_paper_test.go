package sgdrf

import (
	"errors"
	"math"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/sketch"
)

// Each test checks one statement of the papers. The data are the first rows of the
// SUSY-like problem. tuner bench draws the figures in full size.
const (
	susyRows = 4000
	susyTest = 4000
)

func susy(t *testing.T) (train, test *data.Memory) {
	t.Helper()
	p := data.SUSYLike{Seed: 1}
	train = must(data.Load(background, must(data.Generate[float64](p, 0, susyRows))))
	test = must(data.Load(background, must(data.Generate[float64](p, 1<<20, susyTest))))
	return train, test
}

// classError returns the class error of a fit on the test rows.
func classError(t *testing.T, p Params, train, test *data.Memory) float64 {
	t.Helper()
	p.Kernel, p.Averaging = kerneltest.Gaussian(4), None
	m := fit(t, p, train, learners.Options{Seed: 1})
	out := make([]float64, test.Len())
	if err := m.Predict(background, out, test); err != nil {
		t.Fatal(err)
	}
	return learners.ClassError(out, test.Targets(), 1)
}

// In figure 3.1, with b = √n, γ = 1 and 5 passes, the error falls with M up to about
// √n = 63 features and stays there.
func TestPaperFigure31(t *testing.T) {
	kerneltest.Claim(t)
	train, test := susy(t)
	errorAt := map[int]float64{}
	for _, m := range []int{6, 64, 128, 512} {
		errorAt[m] = classError(t, Params{Features: m, StepSize: 1, Family: sketch.FourierCosine}, train, test)
	}
	t.Logf("class error by M: %.3v", errorAt)
	if errorAt[6] < errorAt[64]+0.03 {
		t.Errorf("M = 6 has error %g, M = 64 %g", errorAt[6], errorAt[64])
	}
	if gain := errorAt[128] - errorAt[512]; gain > 0.015 {
		t.Errorf("from M = 128 to 512 the error falls by %g", gain)
	}
}

// In figure 3.2, in one pass with M = √n, the best step grows with the mini-batch, and
// b = n does not reach the least error in one pass.
func TestPaperFigure32(t *testing.T) {
	kerneltest.Claim(t)
	train, test := susy(t)
	best := func(b int, steps ...float64) (step, least float64) {
		least = math.Inf(1)
		for _, g := range steps {
			if e := classError(t, Params{Features: 64, BatchSize: b, StepSize: g, Passes: 1}, train, test); e < least {
				step, least = g, e
			}
		}
		return step, least
	}
	one, oneError := best(1, 0.003, 0.03, 0.3)
	root, rootError := best(64, 0.03, 0.3, 2)
	_, fullError := best(susyRows, 0.3, 2, 4)
	t.Logf("b = 1: γ = %g, error %.3f; b = 64: γ = %g, error %.3f; b = n: error %.3f", one, oneError, root, rootError, fullError)
	if root <= one {
		t.Errorf("the best step is %g for b = 1 and %g for b = 64", one, root)
	}
	if math.Abs(rootError-oneError) > 0.02 || fullError < rootError+0.03 {
		t.Errorf("errors %g, %g, %g", oneError, rootError, fullError)
	}
}

// By the remark to Theorem 3, decaying steps gain nothing at the best γ for constant
// steps.
func TestPaperDecayDoesNotHelp(t *testing.T) {
	kerneltest.Claim(t)
	train, test := susy(t)
	p := Params{Features: 128, StepSize: 2, Passes: 1}
	constant := classError(t, p, train, test)
	for _, theta := range []float64{0.25, 0.5} {
		p.StepDecay = theta
		decaying := classError(t, p, train, test)
		t.Logf("θ = %g: %.4f, constant %.4f", theta, decaying, constant)
		if decaying < constant-0.005 {
			t.Errorf("θ = %g has error %g, constant steps %g", theta, decaying, constant)
		}
	}
}

// With one pass, the mini-batch of Corollary 5 (c1.3) reaches the error for which
// gradient descent (c1.4) needs √n passes.
func TestPaperCorollary5(t *testing.T) {
	kerneltest.Claim(t)
	train, test := susy(t)
	run := func(s theory.Schedule, passes int) float64 {
		c := must(s.Settings(susyRows, theory.WorstCase()))
		if passes == 0 {
			passes = int(math.Ceil(c.Passes))
		}
		return classError(t, Params{Features: 128, BatchSize: c.BatchSize, StepSize: c.StepSize, Passes: passes}, train, test)
	}
	mini, full, short := run(theory.MiniBatches, 0), run(theory.FullBatch, 0), run(theory.FullBatch, 1)
	t.Logf("mini-batches, one pass: %.4f; full batch, √n passes: %.4f; one pass: %.4f", mini, full, short)
	if math.Abs(mini-full) > 0.02 || short < mini+0.03 {
		t.Errorf("errors %g, %g, %g", mini, full, short)
	}
}

// The fit runs at 1.9γ* and diverges at 2.6γ*, for mini-batches of 1, 10, √n and n
// rows.
func TestPaperLargestStep(t *testing.T) {
	kerneltest.Claim(t)
	full, _ := susy(t)
	train := must(data.Subset(full, learnerstest.First(1000)))
	p := Params{Kernel: kerneltest.Gaussian(4), Features: 64, Averaging: None}
	for _, b := range []int{1, 10, 32, 1000} {
		s := p
		s.BatchSize = b
		s.Passes = min(3*b, 60) // the number of steps matters
		gamma := must(s.newDescent(background, train, 1, learners.Options{Seed: 1})).step / DefaultStepScale(b, 1000)
		s.StepSize = 1.9 * gamma
		if _, err := s.Fit(background, train, learners.Options{Seed: 1}); err != nil {
			t.Errorf("b = %d, 1.9γ* = %g: %v", b, s.StepSize, err)
		}
		s.StepSize = 2.6 * gamma
		var d *learners.DivergenceError
		if _, err := s.Fit(background, train, learners.Options{Seed: 1}); !errors.As(err, &d) {
			t.Errorf("b = %d, 2.6γ* = %g: %v", b, s.StepSize, err)
		}
	}
}

// Without 1/√M in (3.3) and (3.5), ‖φ‖² is M. The step 1 of the paper diverges, and
// with the factor it is right. The same steps in units of ‖φ‖² are equal.
func TestPaperFeaturesNeedTheirFactor(t *testing.T) {
	kerneltest.Claim(t)
	full, _ := susy(t)
	train := must(data.Subset(full, learnerstest.First(500)))
	const m = 64
	base := Params{Kernel: kerneltest.Gaussian(4), Features: m, StepSize: 1, Averaging: None}
	fit(t, base, train, learners.Options{})
	printed := base
	printed.Kernel = must(kernel.NewScaled(m, kerneltest.Gaussian(4))) // φ without 1/√M
	var d *learners.DivergenceError
	if _, err := printed.Fit(background, train, learners.Options{}); !errors.As(err, &d) {
		t.Errorf("as printed: %v", err)
	}
	printed.StepSize = 1.0 / m
	a, b := fit(t, base, train, learners.Options{}), fit(t, printed, train, learners.Options{})
	f, g := make([]float64, 500), make([]float64, 500)
	if err := errors.Join(a.Predict(background, f, train), b.Predict(background, g, train)); err != nil {
		t.Fatal(err)
	}
	learnerstest.RequireClose(t, "predictions", g, f, 1e-10)
}

// (3.2) and (2.35) differ by a factor 2 in the step. Ours is (3.2), the gradient of
// ½(f(x) − y)². With one row, one step of γ = 1 with ‖φ‖ = 1 reaches its target. With
// the factor 2 it would overshoot to 2y.
func TestPaperStepHasNoFactorTwo(t *testing.T) {
	kerneltest.Claim(t)
	train := must(data.NewMemory(kernel.NewPoints(1, 1, []float64{0.7}), []float64{3}, 1))
	l := fit(t, Params{Kernel: kerneltest.Gaussian(1), Features: 4, StepSize: 1, Passes: 1}, train, learners.Options{})
	out := make([]float64, 1)
	if err := l.Predict(background, out, train); err != nil {
		t.Fatal(err)
	}
	learnerstest.RequireClose(t, "f", out, []float64{3}, 1e-14)
}

// Assumption 8, |ψ(x, ω)| ≤ κ, fails for ReLU and linear features. At one x the largest
// of M values grows as 2 log M, so β must be measured.
func TestPaperAssumption8FailsForUnboundedFeatures(t *testing.T) {
	kerneltest.Claim(t)
	x := kernel.NewPoints(1, 2, []float64{0.6, 0.8})
	for family, k := range map[sketch.Family]kernel.Kernel{
		sketch.ReLU: must(kernel.NewArcCosine(1)), sketch.GaussianSketch: must(kernel.NewLinear(1)),
		sketch.FourierCosine: kerneltest.Gaussian(1),
	} {
		largest := func(m int) float64 {
			out := make([]float64, m)
			if err := must(Params{Kernel: k, Family: family}.newFeatures(background, 2, m, 1)).Apply(out, x); err != nil {
				t.Fatal(err)
			}
			v := 0.0
			for _, a := range out {
				v = max(v, a*a*float64(m)) // ψ²
			}
			return v
		}
		few, many := largest(20), largest(20000)
		if bounded := many <= 2+1e-9; bounded != (family == sketch.FourierCosine) || !bounded && many < 2*few {
			t.Errorf("%s: the largest ψ² of 20 features is %g, of 20,000 %g", family, few, many)
		}
	}
}
