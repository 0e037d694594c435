package falkon

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

// The converged function is that of Nyström-KRR for every factorisation of K_MM, for
// several outputs at once.
func TestConvergesToNystrom(t *testing.T) {
	racetest.Alone(t)
	for seed := range uint64(3) {
		rng := kerneltest.Seeded(t, seed)
		train, test := regression(rng, 300, 3, 3), kerneltest.Points(rng, 80, 3)
		k := kerneltest.Gaussian(1.5)
		for _, lambda := range []float64{1e-2, 1e-4, 1e-6} {
			for _, f := range factorizations {
				p := Params{Kernel: k, Lambda: lambda, Centers: 40, Factorization: f, Iterations: 200, Tolerance: 1e-12}
				m := must(p.Fit(background, train, learners.Options{Seed: seed}))
				c := must(learners.ChooseCenters(background, k, train, learners.Sampling{Most: 40}, seed))
				want := direct(k, train.Rows(), c.Points, train.Targets(), nil, 3, lambda, test)
				requireNear(t, fmt.Sprintf("λ = %g, factor %q", lambda, f), predict(t, m, test), want, 1e-6)
			}
		}
	}
}

// With M = n the function is that of exact kernel ridge regression.
func TestConvergesToExactRidge(t *testing.T) {
	rng := kerneltest.Seeded(t, 1)
	train, test := regression(rng, 150, 2, 1), kerneltest.Points(rng, 50, 2)
	k := must(kernel.NewMatern32(1))
	for _, centers := range []int{150, 1000} { // more than n means n
		m := must(Params{Kernel: k, Lambda: 1e-4, Centers: centers, Iterations: 100, Tolerance: 1e-13}.Fit(background, train, learners.Options{}))
		requireNear(t, "M = n", predict(t, m, test), exact(k, train.Rows(), train.Targets(), 1e-4, test), 1e-8)
		if got := m.(*learners.Expansion).Centers().Len(); got != 150 {
			t.Errorf("%d centres for n = 150", got)
		}
	}
}

// The system has one more factor, the weights of the rows.
func TestRowWeights(t *testing.T) {
	rng := kerneltest.Seeded(t, 2)
	train, test := regression(rng, 200, 2, 2), kerneltest.Points(rng, 50, 2)
	w := make([]float64, 200)
	for i := range w {
		w[i] = math.Exp(2 * rng.NormFloat64())
	}
	w[7] = 0
	w = meanOne(w)
	k := kerneltest.Gaussian(1)
	for _, f := range factorizations {
		m := must(Params{Kernel: k, Lambda: 1e-3, Centers: 30, Factorization: f, Iterations: 300, Tolerance: 1e-12}.Fit(background, train, learners.Options{Weights: w}))
		counted := must(learners.CountRows(algorithm, train, learners.Options{Weights: w}))
		c := must(learners.ChooseCenters(background, k, counted.Source, learners.Sampling{Most: 30, Weights: counted.Weights}, 0))
		want := direct(k, train.Rows(), c.Points, train.Targets(), w, 2, 1e-3, test)
		tolerance := 1e-8
		if f == FactorCholesky { // its jitter is part of the regulariser
			tolerance = 1e-5
		}
		requireNear(t, fmt.Sprintf("factor %q", f), predict(t, m, test), want, tolerance)
	}
}

// No bit depends on the number of workers or on where the rows are.
func TestSameBits(t *testing.T) {
	rng := kerneltest.Seeded(t, 3)
	train := regression(rng, 1100, 3, 2)
	k := kerneltest.Gaussian(1)
	weights := slices.Repeat([]float64{0.5, 2}, 550)
	for _, p := range []Params{
		{Kernel: k, Lambda: 1e-5, Centers: 60},
		{Kernel: k, Lambda: 1e-5, Centers: 60, Factorization: FactorQR},
		{Kernel: k, Lambda: 1e-3, Centers: 60, Solver: Gradient},
		{Kernel: k, Lambda: 1e-5, Centers: 60, Factorization: FactorEigen},
	} {
		weights := weights
		if p.Factorization != FactorQR {
			weights = nil
		}
		var first []float64
		var objectives []float64
		for i, run := range []struct {
			workers int
			stream  bool
		}{{1, false}, {4, false}, {1, true}, {3, true}} {
			var seen []float64
			o := learners.Options{Seed: 5, Workers: run.workers, Weights: weights, Progress: func(p learners.Progress) error {
				seen = append(seen, p.Objective)
				return nil
			}}
			var m learners.Model
			if run.stream {
				m = must(p.Fit(background, streamed{train}, o))
			} else {
				m = must(p.Fit(background, train, o))
			}
			got := m.(*learners.Expansion).Coefficients()
			if i == 0 {
				first, objectives = got, seen
			} else if !slices.Equal(first, got) || !slices.Equal(objectives, seen) {
				t.Errorf("%d workers, streamed %t: other coefficients or objectives", run.workers, run.stream)
			}
		}
	}
}

// With products in single precision the model differs by little, and it has the same
// bits for any number of workers.
func TestSinglePrecision(t *testing.T) {
	rng := kerneltest.Seeded(t, 4)
	train, test := regression(rng, 2000, 3, 1), kerneltest.Points(rng, 100, 3)
	p := Params{Kernel: kerneltest.Gaussian(1.5), Lambda: 1e-3, Centers: 100, Epsilon: 1e-6}
	want := predict(t, must(p.Fit(background, train, learners.Options{})), test)
	p.Precision = kernel.Float32
	got := predict(t, must(p.Fit(background, train, learners.Options{Workers: 1})), test)
	requireNear(t, "single precision", got, want, 2e-3)
	if !slices.Equal(got, predict(t, must(p.Fit(background, train, learners.Options{Workers: 3})), test)) {
		t.Error("other bits with 3 workers")
	}
}

// These rows use expanded distances by default. For both losses they change the
// function as Precision says of float32, with 3e-15(1 + R²) in place of 6e-8.
func TestDistances(t *testing.T) {
	const lambda, epsilon = 1e-3, 1e-6
	rng := kerneltest.Seeded(t, 5)
	train, test := regression(rng, 1000, 3, 1), kerneltest.Points(rng, 100, 3)
	signs := make([]float64, train.Len())
	for i, y := range train.Targets() {
		signs[i] = math.Copysign(1, y)
	}
	classes := must(data.NewMemory(train.Rows(), signs, 1))
	for name, with := range map[string]func(d kernel.Distances) []float64{
		"squared": func(d kernel.Distances) []float64 {
			p := Params{Kernel: kerneltest.Gaussian(1.5), Lambda: lambda, Centers: 50, Epsilon: epsilon, Iterations: 100, Tolerance: 1e-13, Distances: d}
			return predict(t, must(p.Fit(background, train, learners.Options{})), test)
		},
		"logistic": func(d kernel.Distances) []float64 {
			p := LogisticParams{Params: Params{Kernel: kerneltest.Gaussian(1.5), Lambda: lambda, Centers: 50, Epsilon: epsilon, Distances: d}}
			return predict(t, must(p.Fit(background, classes, learners.Options{})), test)
		},
	} {
		auto, direct, expanded := with(kernel.AutoDistances), with(kernel.DirectDistances), with(kernel.ExpandedDistances)
		if slices.Equal(auto, direct) || !slices.Equal(auto, expanded) {
			t.Errorf("%s: automatic is direct, %t, expanded, %t", name, slices.Equal(auto, direct), slices.Equal(auto, expanded))
		}
		requireNear(t, name, auto, direct, 3e-15*(1+5*5)/math.Sqrt(epsilon*lambda))
	}
	var bad *learners.ParameterError
	if _, err := (LogisticParams{Params: Params{Kernel: kerneltest.Gaussian(1), Distances: 9}}).Fit(background, classes, learners.Options{}); !errors.As(err, &bad) || bad.Parameter != "distances" {
		t.Errorf("distances that do not exist: %v", err)
	}
}

// Zero fields get the values that theory recommends.
func TestDefaults(t *testing.T) {
	p := must(Params{Kernel: kerneltest.Gaussian(1)}.settled(10_000, 10_000, 4))
	if p.Lambda != 4e-4 || p.SamplerLambda != 4e-2 || p.Iterations != 100 || p.Tolerance != 1e-7 || p.Epsilon != 1e-13 {
		t.Errorf("defaults %+v", p)
	}
	if root := float64(p.Centers) / 100; root < 5 || root > 20 {
		t.Errorf("%d centres for n = 10⁴, want about 10√n", p.Centers)
	}
	if p := must(Params{Kernel: kerneltest.Gaussian(1)}.settled(5, 5, 1)); p.Centers != 5 || p.SamplerLambda != 1 {
		t.Errorf("defaults for n = 5: %+v", p)
	}
}

// Patience ends a fit early with the best iterate, and so does the residual.
func TestStopping(t *testing.T) {
	rng := kerneltest.Seeded(t, 6)
	train, valid := regression(rng, 120, 2, 1), regression(rng, 200, 2, 1)
	p := Params{Kernel: kerneltest.Gaussian(0.3), Lambda: 1e-9, Centers: 120, Iterations: 200}
	iterations := func(o learners.Options) (n int) {
		o.Progress = func(learners.Progress) error { n++; return nil }
		must(p.Fit(background, train, o))
		return n
	}
	p.Tolerance = 1e-300
	p.Centers = 60
	all := iterations(learners.Options{})
	patient := iterations(learners.Options{Validation: valid, Patience: 3})
	p.Tolerance = 1e-2
	loose := iterations(learners.Options{})
	if patient >= all || loose >= all {
		t.Errorf("%d iterations in all, %d with patience, %d with a loose tolerance", all, patient, loose)
	}
}

// The reported objective, which costs no pass, equals its definition at every iterate.
func TestObjective(t *testing.T) {
	rng := kerneltest.Seeded(t, 7)
	train := regression(rng, 150, 2, 2)
	w := make([]float64, 150)
	for i := range w {
		w[i] = rng.ExpFloat64()
	}
	w = meanOne(w)
	k, lambda := must(kernel.NewMatern32(1)), 1e-3
	for _, f := range factorizations {
		for _, solver := range []Solver{ConjugateGradient, Gradient} {
			p := Params{Kernel: k, Lambda: lambda, Centers: 30, Factorization: f, Solver: solver, Iterations: 12}
			must(p.Fit(background, train, learners.Options{Weights: w, Progress: func(p learners.Progress) error {
				m := must(p.Snapshot()).(*learners.Expansion)
				want, values := 0.0, predict(t, m, train.Rows())
				for i, y := range train.Targets() {
					want += w[i/2] * (values[i] - y) * (values[i] - y) / 150
				}
				a := mat.NewDense(m.Centers().Len(), 2, m.Coefficients())
				var ka, aka mat.Dense
				ka.Mul(kerneltest.Gram(k, m.Centers(), m.Centers()), a)
				aka.Mul(a.T(), &ka)
				want += lambda * mat.Trace(&aka)
				requireNear(t, fmt.Sprintf("factor %q, solver %q, iteration %d", f, solver, p.Iteration), []float64{p.Objective}, []float64{want}, 1e-8)
				return nil
			}}))
		}
	}
}
