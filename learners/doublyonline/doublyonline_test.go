package doublyonline

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
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

// waves returns n rows of d inputs and c noisy targets.
func waves(rng *rand.Rand, n, d, c int) *data.Memory {
	x, y := make([]float64, n*d), make([]float64, n*c)
	for i := range n {
		s := 0.0
		for j := range d {
			x[i*d+j] = rng.NormFloat64()
			s += x[i*d+j]
		}
		for j := range c {
			y[i*c+j] = math.Sin(s+float64(j)) + 0.1*rng.NormFloat64()
		}
	}
	return must(data.NewMemory(kernel.NewPoints(n, d, x), y, c))
}

// direct computes (2.6) on function values. It returns f at the training rows in the
// order of the stream, followed by f at the rows of grid, with all features from one
// map. It uses no coefficients and no scale.
func direct(p Params, seed uint64, train, grid *data.Memory, steps int) []float64 {
	n, c, b := train.Len(), train.Outputs(), p.perStep()
	all := must(train.Rows().Concat(grid.Rows()))
	phi := must(p.newFeatures(train.Dim(), steps*b, seed))
	psi := make([]float64, all.Len()*steps*b)
	if err := phi.Apply(psi, all); err != nil {
		panic(err)
	}
	root := math.Sqrt(float64(steps * b))
	f := make([]float64, all.Len()*c)
	for t := range steps {
		eta := p.stepSize(steps) * math.Pow(float64(t+1), -p.StepDecay)
		i := t % n
		e := make([]float64, c)
		for o := range e {
			e[o] = f[i*c+o] - train.Targets()[i*c+o]
		}
		at := func(row, v int) float64 { return root * psi[row*steps*b+t*b+v] }
		for row := range all.Len() {
			mean := 0.0
			for v := range b {
				mean += at(i, v) * at(row, v) / float64(b)
			}
			for o := range e {
				f[row*c+o] = (1-eta*p.Lambda)*f[row*c+o] - eta*e[o]*mean
			}
		}
	}
	return f[n*c:]
}

// This compares the coefficients with the recursion on function values. It covers
// constant and decaying steps, several features, outputs and passes, and all families.
// One λ shrinks the scale below the smallest number many times.
func TestAgainstDirectRecursion(t *testing.T) {
	racetest.Alone(t)
	rng := kerneltest.Seeded(t, 1)
	for _, c := range []struct {
		p       Params
		n, outs int
	}{
		{Params{Kernel: kerneltest.Gaussian(1)}, 70, 1},
		{Params{Kernel: kerneltest.Gaussian(1), Features: 2, StepSize: 0.3, Passes: 3}, 40, 2},
		{Params{Kernel: kerneltest.Gaussian(1), Family: sketch.FourierCosine, Features: 1, StepSize: 0.4, StepDecay: 0.5}, 90, 1},
		{Params{Kernel: kerneltest.Gaussian(1), Features: 4, StepSize: 0.5, Lambda: 1.9, Passes: 3}, 150, 3},
		{Params{Kernel: must(kernel.NewMatern32(1)), Features: 6, StepSize: 0.5, StepDecay: 0.3, Lambda: 0.1}, 200, 1},
		{Params{Kernel: must(kernel.NewArcCosine(1)), Family: sketch.ReLU, Features: 3, StepSize: 0.05}, 60, 1},
		{Params{Kernel: must(kernel.NewLinear(1)), Family: sketch.GaussianSketch, Features: 3, StepSize: 0.05, Lambda: 0.2}, 60, 2},
	} {
		train, grid := waves(rng, c.n, 2, c.outs), waves(rng, 25, 2, c.outs)
		c.p.Sampling = minibatch.Cycle
		model := must(c.p.Fit(background, train, learners.Options{Seed: 5, Workers: 2})).(*learners.Linear)
		got := make([]float64, 25*c.outs)
		if err := model.Predict(background, got, grid); err != nil {
			t.Fatal(err)
		}
		steps := c.n * max(c.p.Passes, 1)
		if m := model.Spec().Features; m != steps*c.p.perStep() {
			t.Errorf("%d features after %d steps of %d", m, steps, c.p.perStep())
		}
		learnerstest.RequireClose(t, string(c.p.family()), got, direct(c.p, model.Spec().Seed, train, grid, steps), 1e-10)
	}
}

// For T = 1 and 2 with B = 1, a_1 = ηy_1ψ_1(x_1), a_2 = −η(f_2(x_2) − y_2)ψ_2(x_2) and
// f_3 = (1−ηλ)a_1ψ_1 + a_2ψ_2.
func TestTwoSteps(t *testing.T) {
	const eta, lambda = 0.5, 0.25
	x := kernel.NewPoints(2, 1, []float64{0.3, -0.8})
	y := []float64{1.5, -2}
	p := Params{Kernel: kerneltest.Gaussian(1), Family: sketch.FourierCosine, Features: 1, StepSize: eta, Lambda: lambda, Sampling: minibatch.Cycle}
	for steps := 1; steps <= 2; steps++ {
		train := must(data.NewMemory(x.Slice(0, steps), y[:steps], 1))
		model := must(p.Fit(background, train, learners.Options{Seed: 3})).(*learners.Linear)
		spec := *model.Spec()
		psi := func(j int, row int) float64 {
			out := make([]float64, steps)
			phi := must(sketch.NewFeatures(spec))
			if err := phi.Apply(out, x.Slice(row, row+1)); err != nil {
				t.Fatal(err)
			}
			return out[j] * math.Sqrt(float64(steps))
		}
		w := model.Weights()
		a1 := eta * y[0] * psi(0, 0)
		if steps == 1 {
			learnerstest.RequireClose(t, "a", w, []float64{a1}, 1e-14)
			continue
		}
		f2 := a1 * psi(0, 1)
		a2 := -eta * (f2 - y[1]) * psi(1, 1)
		learnerstest.RequireClose(t, "a", w, []float64{math.Sqrt2 * (1 - eta*lambda) * a1, math.Sqrt2 * a2}, 1e-13)
	}
}

// A model read from a file makes its features again from the seed. Predictions are
// equal to the bit, and the file holds only the coefficients.
func TestFeaturesFromTheSeed(t *testing.T) {
	rng := kerneltest.Seeded(t, 2)
	train := waves(rng, 300, 40, 1)
	model := must(Params{Kernel: kerneltest.Gaussian(5), Features: 4}.Fit(background, train, learners.Options{Seed: 7}))
	var file bytes.Buffer
	if err := (&learners.File{Algorithm: algorithm, Model: model}).Write(&file); err != nil {
		t.Fatal(err)
	}
	if limit := 8*300*4 + 4096; file.Len() > limit {
		t.Errorf("%d bytes for 1200 coefficients of 40 inputs", file.Len())
	}
	loaded := must(learners.Read(&file, nil)).Model
	a, b := make([]float64, 300), make([]float64, 300)
	if err := errors.Join(model.Predict(background, a, train), loaded.Predict(background, b, train)); err != nil {
		t.Fatal(err)
	}
	learnerstest.RequireClose(t, "predictions", b, a, 0)
}

// If all steps have the same feature, the method is SGD with M = 1, and f_{t+1}(x) = w
// ψ(x). A kernel with a huge length scale has constant features.
func TestOneFeatureForAll(t *testing.T) {
	rng := kerneltest.Seeded(t, 3)
	train := waves(rng, 50, 1, 1)
	p := Params{Kernel: kerneltest.Gaussian(1e8), Features: 2, StepSize: 0.2, Lambda: 0.3, Sampling: minibatch.Cycle}
	model := must(p.Fit(background, train, learners.Options{}))
	w := 0.0
	for _, y := range train.Targets() {
		w = (1-0.2*0.3)*w - 0.2*(w-y)
	}
	got := make([]float64, 50)
	if err := model.Predict(background, got, train); err != nil {
		t.Fatal(err)
	}
	for _, v := range got {
		learnerstest.RequireClose(t, "f", []float64{v}, []float64{w}, 1e-12)
	}
}

// Larger maps replace the map as the function grows, without any change of the values.
func TestGrowingMap(t *testing.T) {
	rng := kerneltest.Seeded(t, 4)
	train, grid := waves(rng, 700, 2, 1), waves(rng, 20, 2, 1)
	p := Params{Kernel: kerneltest.Gaussian(1), Features: 8, Sampling: minibatch.Cycle} // 5600 features
	model := must(p.Fit(background, train, learners.Options{})).(*learners.Linear)
	got := make([]float64, 20)
	if err := model.Predict(background, got, grid); err != nil {
		t.Fatal(err)
	}
	learnerstest.RequireClose(t, "f", got, direct(p, model.Spec().Seed, train, grid, 700), 1e-10)
}

func TestConformance(t *testing.T) {
	k := kerneltest.Gaussian(1.5)
	for name, p := range map[string]Params{
		"constant": {Kernel: k, StepSize: 0.25, Passes: 4},
		"decaying": {Kernel: k, Features: 24, StepSize: 1, StepDecay: 0.7, Lambda: 1e-4, Passes: 5, Sampling: minibatch.Replacement, Chunk: 30},
	} {
		t.Run(name, func(t *testing.T) {
			learnerstest.Run(t, learnerstest.Case{
				New: func() learners.Estimator { return p },
				Invalid: []learners.Estimator{
					Params{},
					Params{Kernel: k, Features: 3},
					Params{Kernel: k, Family: sketch.Orthogonal},
					Params{Kernel: k, Family: sketch.ReLU},
					Params{Kernel: k, StepSize: 2, Lambda: 0.5},
					Params{Kernel: k, Lambda: 1},
					Params{Kernel: k, Lambda: -1},
					Params{Kernel: k, StepDecay: 1},
					Params{Kernel: k, Passes: -1},
					Params{Kernel: k, Sampling: "once"},
					Params{Kernel: k, StepSize: math.NaN()},
				},
			})
		})
	}
}

// The default family suits every kernel that has features.
func TestDefaultFamily(t *testing.T) {
	for want, k := range map[sketch.Family]kernel.Kernel{
		sketch.Fourier: must(kernel.NewLaplace(1)), sketch.ReLU: must(kernel.NewArcCosine(1)), sketch.GaussianSketch: must(kernel.NewLinear(1)),
	} {
		p := Params{Kernel: k}
		if err := p.Validate(); err != nil || p.family() != want {
			t.Errorf("%s: %s, %v", k.Spec().Name, p.family(), err)
		}
	}
}

func TestDivergence(t *testing.T) {
	rng := kerneltest.Seeded(t, 5)
	var d *learners.DivergenceError
	_, err := Params{Kernel: kerneltest.Gaussian(1), StepSize: 30}.Fit(background, waves(rng, 400, 2, 1), learners.Options{})
	if !errors.As(err, &d) || d.Remedy == "" {
		t.Errorf("%v", err)
	}
}

func TestNoData(t *testing.T) {
	var e *learners.DataError
	if _, err := (Params{Kernel: kerneltest.Gaussian(1)}).Fit(background, nil, learners.Options{}); !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
}

func TestWeightsAreCopies(t *testing.T) {
	learnerstest.Copies(t, Params{Kernel: kerneltest.Gaussian(1)})
}
