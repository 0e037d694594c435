package falkon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

// Repeated centres, in any order, do not change the function.
func TestRepeatedCenters(t *testing.T) {
	rng := kerneltest.Seeded(t, 1)
	train, test := regression(rng, 200, 2, 1), kerneltest.Points(rng, 40, 2)
	// Rows 100 to 109 repeat rows 0 to 9.
	x := train.Rows().(*kernel.Points[float64])
	for i := range 10 {
		copy(x.Row(100+i), x.Row(i))
	}
	k := must(kernel.NewMatern32(1))
	different := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 30, 40, 50, 60, 70}
	repeated := append(slices.Clone(different), 100, 101, 102, 103, 104, 105, 106, 107, 108, 109)
	shuffled := slices.Clone(repeated)
	rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	want := direct(k, x, x.Select(different), train.Targets(), nil, 1, 1e-4, test)
	for _, f := range factorizations {
		for name, idx := range map[string][]int{"different": different, "repeated": repeated, "shuffled": shuffled} {
			p := Params{Kernel: k, Lambda: 1e-4, Sampler: learnerstest.Fixed(idx), Factorization: f, Iterations: 200, Tolerance: 1e-12}
			m := must(p.Fit(background, train, learners.Options{}))
			requireNear(t, fmt.Sprintf("%s, factor %q", name, f), predict(t, m, test), want, 1e-7)
			if u := m.(*learners.Expansion).Centers().Len(); (f == FactorPivoted || f == FactorCholesky) && u != len(different) {
				t.Errorf("%s, factor %q: %d centres, %d are different", name, f, u, len(different))
			}
		}
	}
}

// Merged centres have the sum of the weights of all equal ones.
func TestMergedWeights(t *testing.T) {
	rng := kerneltest.Seeded(t, 2)
	train := regression(rng, 50, 2, 1)
	x := train.Rows().(*kernel.Points[float64])
	copy(x.Row(20), x.Row(3))
	copy(x.Row(30), x.Row(3))
	rows := slices.Repeat([]float64{2}, 50)
	rows[30] = 5
	rows = meanOne(rows)
	f := must(newFit(background, Params{Kernel: kerneltest.Gaussian(1), Factorization: FactorCholesky}, train, learners.Options{Weights: rows}))
	c := &learners.Centers{Points: x.Select([]int{3, 7, 20, 30}), Indices: []int{3, 7, 20, 30}, Weights: []float64{1, 10, 100, 1000}}
	f.centers = must(f.merged(c))
	if got, want := f.perRow(), []float64{(101*rows[3] + 1000*rows[30]) / 50, 10 * rows[7] / 50}; difference(got, want) > 1e-14 {
		t.Errorf("weights %v, want %v", got, want)
	}
}

// These kernels have low rank. They are linear and polynomial ones of few coordinates.
func TestLowRankKernels(t *testing.T) {
	rng := kerneltest.Seeded(t, 3)
	train, test := regression(rng, 300, 3, 2), kerneltest.Points(rng, 40, 3)
	for _, c := range []struct {
		k    kernel.Kernel
		rank int
	}{
		{must(kernel.NewLinear(1)), 3},
		{must(kernel.NewPolynomial(2, 1, 1)), 10},
	} {
		for _, f := range factorizations {
			p := Params{Kernel: c.k, Lambda: 1e-3, Centers: 60, Factorization: f, Iterations: 100, Tolerance: 1e-12}
			m := must(p.Fit(background, train, learners.Options{}))
			centers := must(learners.ChooseCenters(background, c.k, train, learners.Sampling{Most: 60}, 0))
			want := direct(c.k, train.Rows(), centers.Points, train.Targets(), nil, 2, 1e-3, test)
			requireNear(t, fmt.Sprintf("rank %d, factor %q", c.rank, f), predict(t, m, test), want, 1e-6)
			if u := m.(*learners.Expansion).Centers().Len(); f == FactorPivoted && u != c.rank {
				t.Errorf("%d centres for rank %d", u, c.rank)
			}
		}
	}
}

// A kernel that is 0 at all centres allows only the function 0, which is an error.
func TestKernelOfRankZero(t *testing.T) {
	zero := must(data.NewMemory(kernel.NewPoints[float64](5, 2, nil), []float64{1, 2, 3, 4, 5}, 1))
	_, err := Params{Kernel: must(kernel.NewLinear(1))}.Fit(background, zero, learners.Options{})
	var bad *learners.DataError
	if !errors.As(err, &bad) {
		t.Errorf("error %v", err)
	}
}

// n = 1 has the closed form f(x) = k(x, x_1) y/(k(x_1, x_1) + λ).
func TestOneRow(t *testing.T) {
	rng := kerneltest.Seeded(t, 4)
	train := regression(rng, 1, 2, 3)
	k := must(kernel.NewScaled(4, kerneltest.Gaussian(1)))
	for _, f := range factorizations {
		m := must(Params{Kernel: k, Lambda: 0.5, Factorization: f}.Fit(background, train, learners.Options{}))
		want := make([]float64, 3)
		for j := range want {
			want[j] = 4 * train.Targets()[j] / 4.5
		}
		requireNear(t, fmt.Sprintf("factor %q", f), predict(t, m, train.Rows()), want, 1e-12)
	}
}

// A column of zeros is 0 and does not disturb the others.
func TestZeroTargets(t *testing.T) {
	rng := kerneltest.Seeded(t, 5)
	train := regression(rng, 100, 2, 2)
	alone := make([]float64, 100)
	for i := range alone {
		alone[i] = train.Targets()[2*i]
		train.Targets()[2*i+1] = 0
	}
	for _, solver := range []Solver{ConjugateGradient, Gradient} {
		p := Params{Kernel: kerneltest.Gaussian(1), Lambda: 1e-3, Centers: 30, Solver: solver, Iterations: 50}
		both := predict(t, must(p.Fit(background, train, learners.Options{})), train.Rows())
		one := predict(t, must(p.Fit(background, must(data.NewMemory(train.Rows(), alone, 1)), learners.Options{})), train.Rows())
		for i, v := range one {
			if both[2*i+1] != 0 || math.Abs(both[2*i]-v) > 1e-6 {
				t.Fatalf("%q: row %d is %v, want %v and 0", solver, i, both[2*i:2*i+2], v)
			}
		}
	}
}

// With the smallest λ the fit ends with finite numbers, for every factorisation.
func TestTinyLambda(t *testing.T) {
	rng := kerneltest.Seeded(t, 6)
	train := regression(rng, 200, 1, 1)
	for _, lambda := range []float64{1e-12, 1e-30, 1e-300, math.SmallestNonzeroFloat64} {
		for _, f := range factorizations {
			p := Params{Kernel: kerneltest.Gaussian(1), Lambda: lambda, Centers: 60, Factorization: f}
			m, err := p.Fit(background, train, learners.Options{})
			if err != nil {
				t.Errorf("λ = %g, factor %q: %v", lambda, f, err)
				continue
			}
			got := learners.RMSE(predict(t, m, train.Rows()), train.Targets(), 1)
			if !(got < 0.5) {
				t.Errorf("λ = %g, factor %q: error %g on the training rows", lambda, f, got)
			}
		}
	}
}

// An ε below rounding is raised until Cholesky's factor exists.
func TestEpsilonIsRaised(t *testing.T) {
	rng := kerneltest.Seeded(t, 7)
	train := regression(rng, 300, 1, 1) // smooth, so of low numerical rank
	k := kerneltest.Gaussian(2)
	p := Params{Kernel: k, Lambda: 1e-4, Centers: 100, Factorization: FactorCholesky, Epsilon: 1e-22, Iterations: 50}
	f := prepared(t, p, train, nil)
	if f.epsilon <= 1e-22 {
		t.Fatal("the factor exists with ε = 1e-22: this case shows nothing")
	}
	want := exact(k, train.Rows(), train.Targets(), 1e-4, train.Rows())
	requireNear(t, "raised", solutionOf(t, f, train.Rows()), want, 1e-3)
}

// indefinite is a symmetric function that is not a kernel.
func indefinite() kernel.Kernel {
	return &kernel.Pairwise[[]float64]{Name: "indefinite", Sup: 1, Func: func(x, y []float64) float64 {
		d := 0.0
		for c := range x {
			d += (x[c] - y[c]) * (x[c] - y[c])
		}
		return 1 - 5*d
	}}
}

// A function that is not a kernel ends in a DivergenceError or in numbers, but neither
// in a panic nor in an endless loop.
func TestNoKernel(t *testing.T) {
	rng := kerneltest.Seeded(t, 8)
	train := regression(rng, 100, 2, 1)
	for _, f := range factorizations {
		_, err := Params{Kernel: indefinite(), Lambda: 1e-6, Centers: 50, Factorization: f, Iterations: 60}.Fit(background, train, learners.Options{})
		var diverged *learners.DivergenceError
		if err != nil && !errors.As(err, &diverged) {
			t.Errorf("factor %q: %v", f, err)
		}
		if f == FactorCholesky && err == nil {
			t.Error("an indefinite matrix has a Cholesky factor")
		}
	}
}

// Conjugate gradients detect an indefinite W and growing residuals.
func TestConjugateGuards(t *testing.T) {
	matrix := func(d ...float64) func(context.Context, []float64, []float64, int) error {
		return func(_ context.Context, dst, u []float64, c int) error {
			for i := range dst {
				dst[i] = d[i/c] * u[i]
			}
			return nil
		}
	}
	b := []float64{1, 1, 1}
	g := newConjugate(matrix(1, 2, -5), b, make([]float64, 3), slices.Clone(b), 1, 1e-9, 1e-6)
	if ok := must(g.iterate(background)); ok {
		t.Error("pᵀWp ≤ 0 went unnoticed")
	}
	// These products have an error of their own, so r stops describing x and grows.
	calls := 0
	noisy := func(_ context.Context, dst, u []float64, c int) error {
		calls++
		for i := range dst {
			dst[i] = float64(1+i/c) * u[i] * (1 + 0.9*math.Sin(float64(calls*i*i)))
		}
		return nil
	}
	wide := slices.Repeat([]float64{1}, 40)
	g = newConjugate(noisy, wide, make([]float64, 40), slices.Clone(wide), 1, 1e-12, 1e-6)
	stopped := false
	for range 500 {
		if stopped = !must(g.iterate(background)); stopped || g.done() {
			break
		}
	}
	if !stopped {
		t.Errorf("residual %g without complaint", g.residual())
	}
}

// A restart continues from the best iterate with a tenfold ε.
func TestRestart(t *testing.T) {
	rng := kerneltest.Seeded(t, 9)
	train := regression(rng, 300, 2, 2)
	for _, how := range factorizations {
		k := must(kernel.NewMatern32(1))
		f := prepared(t, Params{Kernel: k, Lambda: 1e-4, Centers: 40, Factorization: how, Iterations: 100, Tolerance: 1e-10}, train, nil)
		it := must(f.begin(background))
		for range 10 {
			must(it.iterate(background))
		}
		before := predict(t, must(f.model(f.points, f.sys.coefficients(it.(*conjugate).best))), train.Rows())
		epsilon := f.epsilon
		again := must(f.restart(background, it, 10))
		if f.epsilon != 10*epsilon {
			t.Errorf("ε = %g after %g", f.epsilon, epsilon)
		}
		x, _ := again.state()
		after := predict(t, must(f.model(f.points, f.sys.coefficients(x))), train.Rows())
		requireNear(t, "the start", after, before, 1e-6)
		for range 60 {
			must(again.iterate(background))
		}
		x, _ = again.state()
		got := predict(t, must(f.model(f.points, f.sys.coefficients(x))), train.Rows())
		requireNear(t, "the end", got, direct(k, train.Rows(), f.points, train.Targets(), nil, 2, 1e-4, train.Rows()), 1e-6)
	}
}

// Errors name the fault in arguments that depend on the data.
func TestErrors(t *testing.T) {
	rng := kerneltest.Seeded(t, 10)
	train := regression(rng, 20, 2, 1)
	_, err := Params{Kernel: kerneltest.Gaussian(1, 2, 3)}.Fit(background, train, learners.Options{})
	var dim *kernel.DimensionError
	if !errors.As(err, &dim) {
		t.Errorf("3 length scales for 2 coordinates: %v", err)
	}
}

// Every tenth iteration corrects a residual that is not b − Wx any more.
func TestRefresh(t *testing.T) {
	rng := kerneltest.Seeded(t, 11)
	train := regression(rng, 300, 3, 2)
	s := prepared(t, Params{Kernel: must(kernel.NewMatern32(1)), Lambda: 1e-6, Centers: 60, Tolerance: 1e-12}, train, nil)
	it := must(s.begin(background)).(*conjugate)
	for range refreshEvery - 1 {
		must(it.iterate(background))
	}
	for i := range it.r {
		it.r[i] += 1e-3 * rng.NormFloat64()
	}
	must(it.iterate(background))
	wx := make([]float64, len(it.x))
	if err := s.sys.apply(background, wx, it.x, 2); err != nil {
		t.Fatal(err)
	}
	for i, v := range wx {
		wx[i] = it.b[i] - v
	}
	requireNear(t, "r and b − Wx", it.r, wx, 1e-8)
}
