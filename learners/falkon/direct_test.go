package falkon

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/krr"
)

// Where all rows are centres, one factorisation gives the solution of the three of the iteration. It is
// for defaults only: the iteration runs where something says how.
func TestAllRowsAreSolvedDirectly(t *testing.T) {
	rng := kerneltest.Seeded(t, 44)
	train, k := regression(rng, 80, 2, 2), kerneltest.Gaussian(1)
	weights := make([]float64, train.Len())
	for i := range weights {
		weights[i] = rng.Float64() + 0.1
	}
	for _, o := range []learners.Options{{Seed: 1}, {Seed: 1, Weights: weights}} {
		direct := must(krr.Params{Kernel: k, Lambda: 1e-3}.Fit(background, train, o)).(*learners.Expansion)
		for name, c := range map[string]struct {
			p    Params
			same bool
		}{
			"defaults":      {Params{Centers: 80}, true},
			"more centres":  {Params{Centers: 1000, Sampler: learners.Automatic{}}, true},
			"fewer":         {Params{Centers: 79}, false},
			"iterations":    {Params{Centers: 80, Iterations: 300}, false},
			"tolerance":     {Params{Centers: 80, Tolerance: 1e-12}, false},
			"factorization": {Params{Centers: 80, Factorization: FactorCholesky}, false},
			"epsilon":       {Params{Centers: 80, Epsilon: 1e-12}, false},
		} {
			c.p.Kernel, c.p.Lambda = k, 1e-3
			steps := 0
			o.Progress = func(p learners.Progress) error { steps = p.Iteration; return nil }
			m := must(c.p.Fit(background, train, o)).(*learners.Expansion)
			if same := slices.Equal(m.Coefficients(), direct.Coefficients()); same != c.same || same && steps != 1 {
				t.Errorf("%s, weights %v: solved directly: %v after %d steps", name, o.Weights != nil, same, steps)
			}
			if c.p.Centers >= 80 {
				requireNear(t, name, predict(t, m, train.Rows()), predict(t, direct, train.Rows()), 1e-5)
			}
		}
	}
}

// Where the rows have a small rank, the model has as few centres.
func TestModelsOfASmallRankAreSmall(t *testing.T) {
	train := regression(kerneltest.Seeded(t, 46), 400, 1, 1)
	p := Params{Kernel: kerneltest.Gaussian(1), Lambda: 1e-9, Centers: 400}
	m := must(p.Fit(background, train, learners.Options{})).(*learners.Expansion)
	direct := must(krr.Params{Kernel: p.Kernel, Lambda: p.Lambda}.Fit(background, train, learners.Options{}))
	if n := m.Centers().Len(); n > 100 {
		t.Errorf("the model has %d centres", n)
	}
	requireNear(t, "outputs", predict(t, m, train.Rows()), predict(t, direct, train.Rows()), 1e-5)
}

// Where the matrix of all rows has no Cholesky factor, the iteration runs in place of it.
func TestIndefiniteKernelsAreIterated(t *testing.T) {
	train := regression(kerneltest.Seeded(t, 45), 50, 2, 1)
	p := Params{Kernel: indefinite(), Lambda: 1e-6, Centers: 50}
	_, err := krr.Params{Kernel: p.Kernel, Lambda: p.Lambda}.Fit(background, train, learners.Options{})
	if psd := (*krr.NotPSDError)(nil); !errors.As(err, &psd) {
		t.Fatalf("the direct solution has the error %v", err)
	}
	m, err := p.Fit(background, train, learners.Options{})
	p.Tolerance = defaultTolerance * (1 - 1e-9) // which is not the default
	other, same := p.Fit(background, train, learners.Options{})
	if err != nil || same != nil {
		if fmt.Sprint(err) != fmt.Sprint(same) || errors.As(err, new(*krr.NotPSDError)) {
			t.Errorf("errors %v, and %v of the iteration", err, same)
		}
		return
	}
	if !slices.Equal(m.(*learners.Expansion).Coefficients(), other.(*learners.Expansion).Coefficients()) {
		t.Error("the model is not that of the iteration")
	}
}
