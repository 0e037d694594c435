package falkon

import (
	"fmt"
	"math"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/sketch"
)

func TestPathConformance(t *testing.T) {
	k := kerneltest.Gaussian(1.5)
	good := PathParams{Params: Params{Kernel: k, Centers: 30, Iterations: 8}, Lambdas: []float64{1e-2, 1e-3, 1e-4}}
	changed := func(lambdas ...float64) PathParams {
		p := good
		p.Lambdas = lambdas
		return p
	}
	bless := good
	bless.Params = Params{Kernel: k, Sampler: sketch.BLESS{}, Iterations: 8}
	for name, p := range map[string]PathParams{"uniform": good, "bless": bless} {
		t.Run(name, func(t *testing.T) {
			learnerstest.Run(t, learnerstest.Case{
				New:            func() learners.Estimator { return p },
				Invalid:        []learners.Estimator{PathParams{}, changed(), changed(0), changed(-1), changed(1, 1), changed(1, 2), changed(1, math.NaN()), PathParams{Lambdas: []float64{1}}},
				AloneTolerance: 1e-3, // iterations end before the tolerance
			})
		})
	}
}

// Each solution of a path is that of Nyström-KRR with its own centres and λ, and of
// FALKON from 0.
func TestPathSolutions(t *testing.T) {
	racetest.Alone(t)
	rng := kerneltest.Seeded(t, 1)
	train, test := regression(rng, 500, 2, 2), kerneltest.Points(rng, 50, 2)
	k := must(kernel.NewMatern32(1)) // of full rank, also to rounding
	lambdas := []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5}
	for name, s := range map[string]learners.Sampling{
		"uniform":       {Most: 40},
		"bless":         {Sampler: sketch.BLESS{}, Lambda: 1e-3},
		"bless, filled": {Sampler: sketch.BLESS{}, Most: 40},
		"blessr":        {Sampler: sketch.BLESSR{}, Lambda: 1e-3},
	} {
		for _, f := range []Factorization{FactorPivoted, FactorEigen} {
			p := PathParams{Params: Params{
				Kernel: k, Sampler: s.Sampler, SamplerLambda: s.Lambda, Centers: s.Most, Factorization: f, Iterations: 200, Tolerance: 1e-12,
			}, Lambdas: lambdas}
			solutions := must(p.Path(background, train, learners.Options{Seed: 3}))
			if len(solutions) != len(lambdas) {
				t.Fatalf("%d solutions", len(solutions))
			}
			for i, got := range solutions {
				if got.Lambda != lambdas[i] || !math.IsNaN(got.ValidationError) {
					t.Errorf("solution %d: λ = %g, validation error %g", i, got.Lambda, got.ValidationError)
				}
				want := direct(k, train.Rows(), solutionCenters(t, train, p, lambdas, i), train.Targets(), nil, 2, lambdas[i], test)
				requireNear(t, fmt.Sprintf("%s, factor %q, λ = %g", name, f, lambdas[i]), predict(t, got.Model, test), want, 1e-6)
			}
			if s.Sampler != nil && solutions[0].Centers >= solutions[4].Centers {
				t.Errorf("%s: %d centres for λ = %g, %d for %g", name, solutions[0].Centers, lambdas[0], solutions[4].Centers, lambdas[4])
			}
		}
	}
}

// solutionCenters returns the expected centres of solution i, from the sampler's own
// path.
func solutionCenters(t *testing.T, train kernel.Source, p PathParams, lambdas []float64, i int) kernel.Rows {
	t.Helper()
	last := lambdas[len(lambdas)-1]
	c := must(learners.ChooseCenters(background, p.Kernel, train, p.sampling().For(last, 1, 0, train.Len()), 3))
	for _, l := range c.Dictionary.Path {
		if l.Lambda <= c.Dictionary.Lambda/last*lambdas[i]*(1+1e-9) {
			return l.Points
		}
	}
	return c.Points
}

// Between equal centres the start costs no pass, and starts help, so that the path
// takes fewer passes than fits from 0.
func TestPathPasses(t *testing.T) {
	rng := kerneltest.Seeded(t, 2)
	train := regression(rng, 2000, 3, 1)
	k := kerneltest.Gaussian(1.5)
	lambdas := []float64{1e-2, 5e-3, 2e-3, 1e-3}
	p := PathParams{Params: Params{Kernel: k, Centers: 200, Tolerance: 1e-4, Iterations: 100}, Lambdas: lambdas}
	solutions := must(p.Path(background, train, learners.Options{}))
	iterations := 0
	for _, s := range solutions {
		iterations += s.Iterations
	}
	if passes := solutions[3].Passes; passes != 1+iterations {
		t.Errorf("%d passes for %d iterations, want one more", passes, iterations)
	}
	alone := 0
	for _, lambda := range lambdas {
		q := p.Params
		q.Lambda = lambda
		must(q.Fit(background, train, learners.Options{Progress: func(p learners.Progress) error {
			alone = alone + 1
			return nil
		}}))
	}
	if iterations >= alone {
		t.Errorf("%d iterations on the path, %d from 0", iterations, alone)
	}
}

// The best λ by validation is found, and its model returned.
func TestPathValidation(t *testing.T) {
	racetest.Alone(t)
	rng := kerneltest.Seeded(t, 3)
	train, valid := regression(rng, 200, 2, 1), regression(rng, 200, 2, 1)
	p := PathParams{Params: Params{Kernel: kerneltest.Gaussian(0.5), Centers: 100, Iterations: 30}, Lambdas: []float64{10, 1, 1e-2, 1e-4, 1e-6, 1e-9}}
	o := learners.Options{Validation: valid}
	solutions := must(p.Path(background, train, o))
	best := 0
	for i, s := range solutions {
		f := predict(t, s.Model, valid.Rows())
		if e := learners.RMSE(f, valid.Targets(), 1); math.Abs(e-s.ValidationError) > 1e-9 {
			t.Errorf("λ = %g: validation error %g, of the model %g", s.Lambda, s.ValidationError, e)
		}
		if s.ValidationError < solutions[best].ValidationError {
			best = i
		}
	}
	if best == 0 || best == len(solutions)-1 {
		t.Errorf("the best λ is %g: this problem does not tell", solutions[best].Lambda)
	}
	m := must(p.Fit(background, train, o))
	requireNear(t, "the best", predict(t, m, valid.Rows()), predict(t, solutions[best].Model, valid.Rows()), 0)
}

// A model to start from, with any centres, saves iterations and changes nothing else.
func TestStart(t *testing.T) {
	rng := kerneltest.Seeded(t, 4)
	train, test := regression(rng, 800, 3, 2), kerneltest.Points(rng, 50, 3)
	p := Params{Kernel: kerneltest.Gaussian(1.5), Lambda: 1e-3, Centers: 80, Iterations: 100, Tolerance: 1e-9}
	count := func(p Params, seed uint64) (int, learners.Model) {
		n := 0
		m := must(p.Fit(background, train, learners.Options{Seed: seed, Progress: func(learners.Progress) error { n++; return nil }}))
		return n, m
	}
	cold, want := count(p, 1)
	p.Start = want
	warm, again := count(p, 1)
	if warm > 1 {
		t.Errorf("%d iterations from the solution", warm)
	}
	requireNear(t, "from the solution", predict(t, again, test), predict(t, want, test), 1e-7)
	_, other := count(Params{Kernel: kerneltest.Gaussian(2), Lambda: 1e-2, Centers: 50}, 9)
	p.Start = other
	far, near := count(p, 1)
	requireNear(t, "from elsewhere", predict(t, near, test), predict(t, want, test), 1e-6)
	t.Logf("iterations from 0 %d, from another model %d, from the solution %d", cold, far, warm)
}
