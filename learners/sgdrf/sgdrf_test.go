package sgdrf

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/sketch"
)

var background = context.Background()

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// sines returns n rows of d normal inputs and c noisy sines of them.
func sines(rng *rand.Rand, n, d, c int, noise float64) *data.Memory {
	x, y := make([]float64, n*d), make([]float64, n*c)
	for i := range n {
		s := 0.0
		for j := range d {
			x[i*d+j] = rng.NormFloat64()
			s += x[i*d+j] / float64(j+1)
		}
		for j := range c {
			y[i*c+j] = math.Sin(s*float64(j+1)) + noise*rng.NormFloat64()
		}
	}
	return must(data.NewMemory(kernel.NewPoints(n, d, x), y, c))
}

// fit returns the model and its features.
func fit(t testing.TB, p Params, train data.Source, o learners.Options) *learners.Linear {
	t.Helper()
	model, err := p.Fit(background, train, o)
	if err != nil {
		t.Fatal(err)
	}
	return model.(*learners.Linear)
}

// features returns Φ, n×M, of a model.
func features(l *learners.Linear, src *data.Memory) *mat.Dense {
	phi := must(sketch.NewFeatures(*l.Spec()))
	out := make([]float64, src.Len()*phi.Features())
	if err := phi.Apply(out, src.Rows()); err != nil {
		panic(err)
	}
	return mat.NewDense(src.Len(), phi.Features(), out)
}

// filter returns g(ΦᵀΦ/n)Φᵀy/n for a spectral filter g.
func filter(phi *mat.Dense, y []float64, g func(s float64) float64) []float64 {
	n, m := phi.Dims()
	var cov mat.SymDense
	cov.SymOuterK(1/float64(n), phi.T())
	var eig mat.EigenSym
	eig.Factorize(&cov, true)
	var q mat.Dense
	eig.VectorsTo(&q)
	var z, a, w mat.VecDense
	z.MulVec(phi.T(), mat.NewVecDense(n, y))
	a.MulVec(q.T(), &z)
	for j, s := range eig.Values(nil) {
		a.SetVec(j, a.AtVec(j)*g(max(s, 0))/float64(n))
	}
	w.MulVec(&q, &a)
	return w.RawVector().Data[:m]
}

// landweber is g_T(s) = (1 − (1−γ(s+λ))^T)/(s+λ), the filter of T steps of
// gradient descent.
func landweber(gamma, lambda float64, steps int) func(float64) float64 {
	return func(s float64) float64 {
		if s += lambda; s > 1e-14 {
			return -math.Expm1(float64(steps)*math.Log1p(-gamma*s)) / s
		}
		return gamma * float64(steps)
	}
}

// b = n without sampling is gradient descent, the spectral filter of Landweber on
// ΦᵀΦ/n. The cases include repeated rows and rank-deficient features, n < M, λ, n = 1,
// and several tiles and waves.
func TestFullBatchIsLandweber(t *testing.T) {
	rng := kerneltest.Seeded(t, 1)
	for _, c := range []struct {
		n, m, passes  int
		gamma, lambda float64
		repeat        bool
	}{
		{60, 40, 50, 0.5, 0, false},
		{30, 80, 200, 1, 0, false},
		{40, 40, 30, 0.7, 0.1, true},
		{1, 10, 7, 0.9, 0, false},
		{700, 12, 20, 1, 0, false}, // tiles of 256 rows
	} {
		train := sines(rng, c.n, 3, 1, 0.1)
		if c.repeat {
			idx := make([]int, c.n)
			y := slices.Clone(train.Targets())
			for i := range idx {
				idx[i] = i % 5
				y[i] = 1
			}
			train = must(data.NewMemory(train.Rows().Select(idx), y, 1))
		}
		p := Params{Kernel: kerneltest.Gaussian(1.5), Features: c.m, BatchSize: c.n, StepSize: c.gamma, Passes: c.passes, Lambda: c.lambda, Sampling: minibatch.Cycle, Averaging: None}
		l := fit(t, p, train, learners.Options{Seed: 3, Workers: 2})
		want := filter(features(l, train), train.Targets(), landweber(c.gamma, c.lambda, c.passes))
		learnerstest.RequireClose(t, "weights", l.Weights(), want, 1e-11)
	}
}

// Many passes with λ give ridge regression in the features. Without λ and with n < M
// they give the least squares solution of least norm.
func TestConvergesToRidge(t *testing.T) {
	racetest.Alone(t)
	rng := kerneltest.Seeded(t, 2)
	train := sines(rng, 50, 2, 1, 0.1)
	p := Params{Kernel: kerneltest.Gaussian(1), Features: 60, BatchSize: 50, StepSize: 1.5, Passes: 4000, Lambda: 0.01, Sampling: minibatch.Cycle, Averaging: None}
	l := fit(t, p, train, learners.Options{})
	want := filter(features(l, train), train.Targets(), func(s float64) float64 { return 1 / (s + 0.01) })
	learnerstest.RequireClose(t, "ridge", l.Weights(), want, 1e-9)

	train = sines(rng, 6, 3, 1, 0.1)
	p = Params{Kernel: kerneltest.Gaussian(1), Features: 200, BatchSize: 3, StepScale: 0.9, Passes: 3000, Sampling: minibatch.Reshuffle, Averaging: None}
	l = fit(t, p, train, learners.Options{})
	want = filter(features(l, train), train.Targets(), func(s float64) float64 {
		if s < 1e-12 {
			return 0
		}
		return 1 / s
	})
	learnerstest.RequireClose(t, "least norm", l.Weights(), want, 1e-8)
}

// For n = 1 and b = 1, w = (1 − (1−γ‖φ‖²)^T) y φ/‖φ‖², with ‖φ‖ = 1.
func TestOneRow(t *testing.T) {
	train := must(data.NewMemory(kernel.NewPoints(1, 2, []float64{1, 2}), []float64{3}, 1))
	l := fit(t, Params{Kernel: kerneltest.Gaussian(1), Features: 8, StepSize: 0.5, Passes: 4, Averaging: None}, train, learners.Options{})
	phi := features(l, train).RawMatrix().Data
	want := make([]float64, 8)
	for j := range want {
		want[j] = 3 * (1 - math.Pow(0.5, 4)) * phi[j]
	}
	learnerstest.RequireClose(t, "weights", l.Weights(), want, 1e-14)
}

// The mean of the iterate over samplings is the iterate of gradient descent.
func TestMeanOverSamplings(t *testing.T) {
	rng := kerneltest.Seeded(t, 4)
	const n, m, b, gamma, passes, runs = 20, 6, 4, 0.3, 3, 500
	train := sines(rng, n, 2, 1, 0.1)
	p := Params{Kernel: kerneltest.Gaussian(1), Features: m, BatchSize: b, StepSize: gamma, Passes: passes, Averaging: None}
	// The features depend on the seed too, so this runs the passes on one map.
	phi := must(p.newFeatures(background, 2, m, 77))
	mean, square := make([]float64, m), make([]float64, m)
	for run := range runs {
		s := must(p.newDescent(background, train, passes, learners.Options{}))
		s.phi, s.grad = phi, newGradient(phi, loss{}, 1, b, 1)
		r := rand.New(rand.NewPCG(uint64(run), 5))
		for range passes {
			must(s.pass(background, train, r))
		}
		for j, v := range s.done {
			mean[j] += v / runs
			square[j] += v * v / runs
		}
	}
	l := must(learners.LinearIn(phi, make([]float64, m), 1, 2))
	want := filter(features(l, train), train.Targets(), landweber(gamma, 0, passes*n/b))
	for j := range want {
		se := math.Sqrt((square[j] - mean[j]*mean[j]) / runs)
		if d := math.Abs(mean[j] - want[j]); d > 4.5*se {
			t.Errorf("weight %d: mean %g ± %g, gradient descent %g", j, mean[j], se, want[j])
		}
	}
}

// The fit is linear in y, and reproducible from the seed.
func TestTwiceTheTargets(t *testing.T) {
	rng := kerneltest.Seeded(t, 5)
	train := sines(rng, 100, 2, 1, 0.1)
	double := slices.Clone(train.Targets())
	for i := range double {
		double[i] *= 2
	}
	twice := must(data.NewMemory(train.Rows(), double, 1))
	p := Params{Kernel: kerneltest.Gaussian(1), Features: 32}
	a, b := fit(t, p, train, learners.Options{Seed: 9}), fit(t, p, twice, learners.Options{Seed: 9})
	c := fit(t, p, train, learners.Options{Seed: 10})
	for j, v := range a.Weights() {
		if b.Weights()[j] != 2*v {
			t.Fatalf("weight %d: %g and %g", j, v, b.Weights()[j])
		}
	}
	if slices.Equal(a.Weights(), c.Weights()) {
		t.Error("another seed gives the same weights")
	}
}

// No bit depends on the number of workers or on whether the data are in memory,
// for any sampling, also with several chunks, tiles and waves.
func TestSameBits(t *testing.T) {
	rng := kerneltest.Seeded(t, 6)
	for _, c := range []int{1, 3} {
		train := sines(rng, 611, 3, c, 0.1)
		for _, sampling := range []minibatch.Sampling{minibatch.Replacement, minibatch.Reshuffle, minibatch.Cycle} {
			p := Params{Kernel: kerneltest.Gaussian(1), Features: 40, BatchSize: 25, Passes: 2, Sampling: sampling, Chunk: 100, Averaging: Tail}
			want := fit(t, p, train, learners.Options{Workers: 1}).Weights()
			for _, workers := range []int{2, 5} {
				if got := fit(t, p, streamed{train}, learners.Options{Workers: workers}).Weights(); !slices.Equal(got, want) {
					t.Errorf("c = %d, %s: %d workers on a stream give other weights", c, sampling, workers)
				}
			}
			if testing.Short() && (c > 1 || sampling != minibatch.Replacement) {
				continue // one such batch is enough for the race detector
			}
			p.BatchSize, p.Features = 600, 8000 // tiles of 8 rows, 3 waves
			p.StepSize = 1
			p.Passes = 1
			want = fit(t, p, train, learners.Options{Workers: 1}).Weights()
			if got := fit(t, p, streamed{train}, learners.Options{Workers: 3}).Weights(); !slices.Equal(got, want) {
				t.Errorf("c = %d, %s: large batches depend on workers", c, sampling)
			}
		}
	}
}

// streamed hides that a source is in memory.
type streamed struct{ data.Source }

// Several outputs at once are the outputs one by one.
func TestOutputs(t *testing.T) {
	rng := kerneltest.Seeded(t, 7)
	train := sines(rng, 90, 2, 3, 0.1)
	p := Params{Kernel: kerneltest.Gaussian(1), Features: 20}
	all := fit(t, p, train, learners.Options{}).Weights()
	for j := range 3 {
		y := make([]float64, 90)
		for i := range y {
			y[i] = train.Targets()[i*3+j]
		}
		one := fit(t, p, must(data.NewMemory(train.Rows(), y, 1)), learners.Options{}).Weights()
		got := make([]float64, 20)
		for k := range got {
			got[k] = all[k*3+j]
		}
		learnerstest.RequireClose(t, "output", got, one, 1e-12)
	}
}

// The curvature is compared with an eigenvalue solver.
func TestCurvature(t *testing.T) {
	rng := kerneltest.Seeded(t, 9)
	for _, c := range []struct{ n, m int }{{50, 20}, {20, 50}, {1, 4}, {300, 30}} {
		data := make([]float64, c.n*c.m)
		for i := range data {
			data[i] = rng.NormFloat64() + 0.3
		}
		phi := mat.NewDense(c.n, c.m, data)
		var cov mat.SymDense
		cov.SymOuterK(1/float64(c.n), phi.T())
		var eig mat.EigenSym
		eig.Factorize(&cov, false)
		k := curvatureOf(data, c.n, c.m)
		if want := eig.Values(nil)[c.m-1]; k.Largest > want*(1+1e-12) || k.Largest < 0.97*want {
			t.Errorf("n = %d, M = %d: λ̂₁ = %g, want %g", c.n, c.m, k.Largest, want)
		}
		bound := 0.0
		for i := range c.n {
			bound = max(bound, mat.Dot(phi.RowView(i), phi.RowView(i)))
		}
		learnerstest.RequireClose(t, "β", []float64{k.Bound}, []float64{bound}, 1e-13)
	}
	if k := curvatureOf(make([]float64, 12), 3, 4); k.Step(2, 0) != 0 {
		t.Errorf("features of 0 give a step of %g", k.Step(2, 0))
	}
}

// b = ⌈√n⌉, M = 4√n between 256 and 16384 and even, c = 0.1 up to 10 rows and 1
// from √n on.
func TestDefaults(t *testing.T) {
	for n, want := range map[int]int{1: 256, 4096: 256, 10000: 400, 10005: 402, 1000000: 4000, 1 << 40: 16384} {
		if m := DefaultFeatures(n); m != want {
			t.Errorf("n = %d: M = %d, want %d", n, m, want)
		}
	}
	for n, want := range map[int]int{1: 1, 2: 2, 100: 10, 101: 11, 1000000: 1000} {
		if b := recommended(n).BatchSize; b != want {
			t.Errorf("n = %d: b = %d, want %d", n, b, want)
		}
	}
	last := 0.0
	for _, c := range []struct {
		b    int
		want float64
	}{{1, 0.1}, {10, 0.1}, {100, 0.55}, {1000, 1}, {5000, 1}} {
		got := DefaultStepScale(c.b, 1000000)
		if math.Abs(got-c.want) > 1e-12 || got < last {
			t.Errorf("b = %d: c = %g, want %g", c.b, got, c.want)
		}
		last = got
	}
	if c := DefaultStepScale(3, 9); c != 1 {
		t.Errorf("b = √n = 3: c = %g", c)
	}
}

// Averages are compared with stored iterates.
func TestAverages(t *testing.T) {
	for _, kind := range []Averaging{None, Tail, All} {
		a := newAverage(kind, 1)
		var iterates []float64
		restart := 1
		for step := 1; step <= 40; step++ {
			w := []float64{float64(step * step)}
			iterates = append(iterates, w[0])
			a.add(w)
			if step == 2*restart {
				restart = step
			}
			from := map[Averaging]int{None: step - 1, Tail: restart / 2, All: 0}[kind]
			want := 0.0
			for _, v := range iterates[from:] {
				want += v / float64(step-from)
			}
			got := make([]float64, 1)
			a.of(got, w)
			learnerstest.RequireClose(t, string(kind), got, []float64{want}, 1e-13)
		}
	}
}

// Every family of features learns a smooth function.
func TestFamilies(t *testing.T) {
	racetest.Alone(t)
	rng := kerneltest.Seeded(t, 10)
	train, test := sines(rng, 600, 2, 1, 0.1), sines(rng, 300, 2, 1, 0)
	for family, k := range map[sketch.Family]kernel.Kernel{
		sketch.Orthogonal: kerneltest.Gaussian(1), sketch.Fourier: must(kernel.NewMatern52(1)), sketch.FourierCosine: kerneltest.Gaussian(1),
		sketch.Fastfood: kerneltest.Gaussian(1), sketch.ReLU: must(kernel.NewArcCosine(1)), sketch.GaussianSketch: must(kernel.NewLinear(1)),
	} {
		l := fit(t, Params{Kernel: k, Family: family, Passes: 20}, train, learners.Options{})
		out := make([]float64, test.Len())
		if err := l.Predict(background, out, test); err != nil {
			t.Fatal(err)
		}
		limit := 0.3
		switch family {
		case sketch.GaussianSketch:
			limit = 0.7 // a linear function of x
		case sketch.ReLU:
			limit = 0.45 // linear along every ray
		}
		if e := learners.RMSE(out, test.Targets(), 1); e > limit {
			t.Errorf("%s: error %g", family, e)
		}
	}
}

// The default family suits every kernel that has features.
func TestFamilyOf(t *testing.T) {
	for _, k := range []kernel.Kernel{
		kerneltest.Gaussian(1), must(kernel.NewMatern12(1)), must(kernel.NewMatern32(1)), must(kernel.NewMatern52(1)),
		must(kernel.NewRationalQuadratic(1, 1)), must(kernel.NewLaplace(1)), must(kernel.NewLinear(1)),
		must(kernel.NewArcCosine(1)), must(kernel.NewScaled(2, must(kernel.NewLaplace(1)))),
	} {
		if err := (Params{Kernel: k}).Validate(); err != nil {
			t.Errorf("%v: %v", k.Spec().Name, err)
		}
	}
}

// The data are constant targets, constant features, or one row twice. Outputs have no
// NaN and are sensible.
func TestDegenerate(t *testing.T) {
	zero := must(data.NewMemory(kernel.NewPoints(5, 2, make([]float64, 10)), []float64{2, 2, 2, 2, 2}, 1))
	l := fit(t, Params{Kernel: kerneltest.Gaussian(1), Features: 16, Passes: 30}, zero, learners.Options{})
	out := make([]float64, 5)
	if err := l.Predict(background, out, zero); err != nil {
		t.Fatal(err)
	}
	learnerstest.RequireClose(t, "constant", out, []float64{2, 2, 2, 2, 2}, 1e-2)
	none := must(data.NewMemory(kernel.NewPoints(3, 2, make([]float64, 6)), []float64{1, 1, 1}, 1))
	l = fit(t, Params{Kernel: must(kernel.NewLinear(1)), Features: 4}, none, learners.Options{}) // φ = 0
	learnerstest.RequireClose(t, "no features", l.Weights(), make([]float64, 4), 0)
}

func TestDivergence(t *testing.T) {
	rng := kerneltest.Seeded(t, 11)
	train := sines(rng, 200, 2, 1, 0.1)
	for _, b := range []int{1, 200} {
		var d *learners.DivergenceError
		model, err := Params{Kernel: kerneltest.Gaussian(1), Features: 30, BatchSize: b, StepSize: 5, Passes: 300}.Fit(background, train, learners.Options{})
		if !errors.As(err, &d) || d.Remedy == "" {
			t.Errorf("b = %d: %v", b, err)
		}
		if b == 1 && model != nil {
			t.Error("a model of no finished pass")
		}
	}
}

// A last mini-batch of one row does no harm, although the step is right for many. Rows
// and chunks here do not divide evenly.
func TestOddRow(t *testing.T) {
	rng := kerneltest.Seeded(t, 13)
	for _, sampling := range []minibatch.Sampling{minibatch.Replacement, minibatch.Reshuffle, minibatch.Cycle} {
		for _, chunk := range []int{0, 100} {
			train := sines(rng, 101, 4, 1, 0.1) // b = 50 gives 50 + 50 + 1
			p := Params{Kernel: kerneltest.Gaussian(1), Features: 64, BatchSize: 50, StepScale: 1, Passes: 30, Sampling: sampling, Chunk: chunk, Averaging: None}
			s := must(p.newDescent(background, train, 1, learners.Options{}))
			if s.step < 5 {
				t.Fatalf("γ = %g is no step that one row could not take", s.step)
			}
			last := math.NaN()
			p.StepSize, p.StepScale = s.step, 0
			fit(t, p, train, learners.Options{Progress: func(q learners.Progress) error {
				last = q.Objective
				return nil
			}})
			if !(last < 0.6) { // targets have mean square 1/2, and 0.3 without the odd row
				t.Errorf("%s, chunks of %d: objective %g", sampling, chunk, last)
			}
		}
	}
}

func TestBadInput(t *testing.T) {
	k := kerneltest.Gaussian(1)
	for name, p := range map[string]Params{
		"kernel":      {},
		"features":    {Kernel: k, Features: 33},
		"features ":   {Kernel: k, Features: -2},
		"batch size":  {Kernel: k, BatchSize: -1},
		"passes":      {Kernel: k, Passes: -1},
		"chunk":       {Kernel: k, Chunk: -1},
		"step size":   {Kernel: k, StepSize: math.NaN()},
		"lambda":      {Kernel: k, Lambda: -1},
		"step scale":  {Kernel: k, StepScale: 2},
		"step scale ": {Kernel: k, StepScale: 1, StepSize: 1},
		"step decay":  {Kernel: k, StepDecay: 1},
		"averaging":   {Kernel: k, Averaging: "mean"},
		"sampling":    {Kernel: k, Sampling: "random"},
		"family":      {Kernel: k, Family: sketch.ReLU},
		"loss":        {Kernel: k, Loss: "absolute"},
		"delta":       {Kernel: k, Loss: learners.HuberLoss, Delta: -1},
		"quantile":    {Kernel: k, Loss: learners.QuantileLoss, Quantile: 1},
	} {
		var e *learners.ParameterError
		if err := p.Validate(); !errors.As(err, &e) || e.Parameter != trim(name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	x := kernel.NewPoints(3, 1, []float64{1, math.NaN(), 3})
	var bad *kernel.NonFiniteError
	_, err := Params{Kernel: k}.Fit(background, must(data.NewMemory(x, []float64{1, 2, 3}, 1)), learners.Options{})
	if !errors.As(err, &bad) {
		t.Errorf("NaN among inputs: %v", err)
	}
}

func TestConformance(t *testing.T) {
	k := kerneltest.Gaussian(1.5)
	for _, p := range []Params{
		{Kernel: k, Averaging: Tail}, // without averaging, equal rows give the mean of the last mini-batch
		{Kernel: k, Features: 64, BatchSize: 7, Passes: 12, Sampling: minibatch.Reshuffle, Chunk: 30},
	} {
		learnerstest.Run(t, learnerstest.Case{
			New:     func() learners.Estimator { return p },
			Invalid: []learners.Estimator{Params{}, Params{Kernel: k, Lambda: -1}, Params{Kernel: k, Features: 3}},
		})
	}
}

func trim(s string) string {
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// A fit that is cancelled in a pass returns the model of the pass before.
func TestCancel(t *testing.T) {
	rng := kerneltest.Seeded(t, 12)
	train := sines(rng, 200, 2, 1, 0.1)
	p := Params{Kernel: kerneltest.Gaussian(1), Features: 20, Passes: 2, Averaging: None}
	want := fit(t, p, train, learners.Options{}).Weights()
	p.Passes = 50
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	calls := 0
	model, err := p.Fit(ctx, &counted{train, func() {
		if calls++; calls == 3 { // the third pass over the data
			cancel()
		}
	}}, learners.Options{})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if !slices.Equal(model.(*learners.Linear).Weights(), want) {
		t.Error("not the model after two passes")
	}
}

// counted calls f at the start of a pass.
type counted struct {
	data.Source
	f func()
}

func (c *counted) OpenPairs(ctx context.Context) (data.PairCursor, error) {
	c.f()
	return c.Source.OpenPairs(ctx)
}

func TestNoData(t *testing.T) {
	var e *learners.DataError
	if _, err := (Params{Kernel: kerneltest.Gaussian(1)}).Fit(background, nil, learners.Options{}); !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
}

func TestWeightsAreRepeatedRows(t *testing.T) {
	learnerstest.Weights(t, Params{
		Kernel: kerneltest.Gaussian(1.5), Features: 64, BatchSize: 10_000, StepSize: 0.5, Lambda: 1e-3, Passes: 40,
		Sampling: minibatch.Cycle, Averaging: None,
	}, false, 1e-9)
}

// Rows of large weight have small stable steps, which the estimate of the step knows.
func TestWeightsKeepStepsStable(t *testing.T) {
	train := learnerstest.Data(t, 300, 1, 3, false)
	weights := slices.Repeat([]float64{1}, 300)
	for i := range 5 {
		weights[i*50] = 400
	}
	for _, sampling := range []minibatch.Sampling{minibatch.Replacement, minibatch.Reshuffle, minibatch.Cycle} {
		p := Params{Kernel: kerneltest.Gaussian(1.5), Features: 64, Passes: 50, Sampling: sampling, StepScale: 1, BatchSize: 10}
		if _, err := p.Fit(background, train, learners.Options{Weights: weights}); err != nil {
			t.Errorf("%s: %v", sampling, err)
		}
	}
}

// Huber and quantile losses reach nearly the minimum that FALKON finds, on all rows as
// centres, and a tenth of outliers hardly moves them.
func TestRobustLosses(t *testing.T) {
	rng := kerneltest.Seeded(t, 31)
	const n = 2000
	x, y := kerneltest.Points(rng, n, 1), make([]float64, n)
	for i := range y {
		y[i] = math.Sin(2*x.Row(i)[0]) + 0.3*rng.NormFloat64()
		if i%10 == 0 {
			y[i] += 8
		}
	}
	train, k := must(data.NewMemory(x, y, 1)), kerneltest.Gaussian(0.7)
	for _, c := range []struct {
		loss  learners.Loss
		tau   float64
		decay float64
	}{{learners.HuberLoss, 0, 0}, {learners.QuantileLoss, 0.5, 0.5}, {learners.QuantileLoss, 0.8, 0.5}} {
		p := Params{Kernel: k, Features: 256, Loss: c.loss, Delta: 0.3, Quantile: c.tau, Passes: 20, StepDecay: c.decay, Lambda: 1e-4}
		best := falkon.RobustParams{Params: falkon.Params{Kernel: k, Lambda: 1e-4, Centers: 200}, Loss: c.loss, Delta: 0.3, Quantile: c.tau}
		s := learners.Scoring{Delta: 0.3, Quantile: c.tau}
		name := map[learners.Loss]string{learners.HuberLoss: "huber", learners.QuantileLoss: "pinball"}[c.loss]
		loss := func(e learners.Estimator) float64 {
			m := must(e.Fit(background, train, learners.Options{}))
			out := make([]float64, n)
			if err := m.Predict(background, out, kernel.FromRows(x)); err != nil {
				t.Fatal(err)
			}
			return s.Measure(name)(out, y, 1)
		}
		got, want, squared := loss(p), loss(best), loss(Params{Kernel: k, Features: 256, Passes: 20, Lambda: 1e-4})
		t.Logf("%s, τ = %g: %.4f, FALKON %.4f, the squared loss %.4f", c.loss, c.tau, got, want, squared)
		if !(got < 1.03*want && got < 0.98*squared) {
			t.Errorf("%s, τ = %g: loss %.4f, FALKON %.4f, the squared loss %.4f", c.loss, c.tau, got, want, squared)
		}
	}
}
