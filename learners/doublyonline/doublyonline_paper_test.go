package doublyonline

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/theory"
)

// Assumption 1 of the paper comes with the remark that κ² = 1 for the Gaussian kernel.
// But κ² also bounds φ_v(x)φ_v(x'), and that is 2 for √2cos features.
func TestPaperKappaOfCosines(t *testing.T) {
	kerneltest.Claim(t)
	p := Params{Kernel: kerneltest.Gaussian(1), Family: "fourier_cosine"}
	const m = 2000
	phi := must(p.newFeatures(1, m, 3))
	out := make([]float64, m)
	if err := phi.Apply(out, kernel.NewPoints(1, 1, []float64{0.4})); err != nil {
		t.Fatal(err)
	}
	largest := 0.0
	for _, v := range out {
		largest = max(largest, v*v*m)
	}
	if largest < 1.99 || largest > 2+1e-12 {
		t.Errorf("the largest φ_v(x)² is %g", largest)
	}
}

// The step of Corollary 3.4, with its constant 1/(24κ⁴), is much too small. After
// T = 1000 steps the function is still near 0, while the step T^−½ has learnt.
func TestPaperConstantsAreThoseOfAProof(t *testing.T) {
	kerneltest.Claim(t)
	rng := kerneltest.Seeded(t, 11)
	const n = 1000
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = rng.Float64()
		y[i] = math.Sin(2*math.Pi*x[i]) + 0.1*rng.NormFloat64()
	}
	train := must(data.NewMemory(kernel.NewPoints(n, 1, x), y, 1))
	literal := must(theory.DoublyOnline{Zeta: 0.5, Gamma: 1, KappaSq: 2}.Fixed(n)).StepSize
	errorOf := func(step float64) float64 {
		model := must(Params{Kernel: kerneltest.Gaussian(0.2), StepSize: step}.Fit(background, train, learners.Options{Seed: 1}))
		f := make([]float64, n)
		if err := model.Predict(background, f, train); err != nil {
			t.Fatal(err)
		}
		return (learners.Scoring{}).Measure("normalised-error")(f, y, 1)
	}
	a, b := errorOf(literal), errorOf(0)
	t.Logf("normalised error: %.3f with η = %.2g, %.3f with T^−½", a, literal, b)
	if a < 0.8 || b > 0.5 {
		t.Errorf("normalised error %g with the literal step, %g with T^−½", a, b)
	}
}

// Equation (2.4) as printed shrinks f by 1 − λ in every step, for any η_t. With the λ
// of Corollary 3.8 for T = 1000, only the last few dozen steps are left, and the
// function is far from that of (2.6).
func TestPaperEquation24LacksEta(t *testing.T) {
	kerneltest.Claim(t)
	s, err := theory.DoublyOnline{Zeta: 0.5, KappaSq: 2}.Regularised(1000, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	printed, ours := 1.0, 1.0
	for step := 501; step <= 1000; step++ {
		printed *= 1 - s.Lambda
		ours *= 1 - s.StepSize*math.Pow(float64(step), -s.StepDecay)*s.Lambda
	}
	t.Logf("λ = %.3f: of step 500 %.2g is left as printed, %.2g with η_t", s.Lambda, printed, ours)
	if printed > 1e-6 || ours < 0.5 {
		t.Errorf("of step 500 %g is left as printed, %g with η_t", printed, ours)
	}
}
