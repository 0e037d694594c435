package avgsgd

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

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

// The average is compared with the mean of stored iterates, for weights and
// coefficients, c = 1 and 3, dense and sparse rows.
func TestAverageIsTheMeanOfIterates(t *testing.T) {
	rng := kerneltest.Seeded(t, 1)
	const n, m, steps = 12, 5, 300
	for _, c := range []int{1, 3} {
		x, y := kerneltest.Normals(rng, n*m), kerneltest.Normals(rng, n*c)
		for i := range x {
			if i%3 == 0 {
				x[i] = 0
			}
		}
		dense := kernel.NewPoints(n, m, x)
		for name, rows := range map[string]kernel.Rows{"dense": dense, "sparse": kernel.Sparse(dense)} {
			p := newPrimal(m, c, 0.05)
			mean, got := make([]float64, m*c), make([]float64, m*c)
			w := make([]float64, m*c) // by the formula of the paper
			for range steps {
				i := rng.IntN(n)
				if _, err := p.rows(rows.Slice(i, i+1), y[i*c:][:c]); err != nil {
					t.Fatal(err)
				}
				for o := range c {
					e := y[i*c+o]
					for j := range m {
						e -= w[j*c+o] * x[i*m+j]
					}
					for j := range m {
						w[j*c+o] += 0.05 * e * x[i*m+j]
					}
				}
				for j, v := range w {
					mean[j] += v / steps
				}
			}
			learnerstest.RequireClose(t, name+" weights", p.w, w, 1e-11)
			average(got, p.w, p.u, p.t, false)
			learnerstest.RequireClose(t, name+" average", got, mean, 1e-11)
		}

		gram := make([]float64, n*n)
		mat.NewDense(n, n, gram).Mul(mat.NewDense(n, m, x), mat.NewDense(n, m, x).T())
		d := newDual(n, c, 0.02)
		mean, got := make([]float64, n*c), make([]float64, n*c)
		for range steps {
			i := rng.IntN(n)
			d.visit(i, gram[i*n:][:n], y[i*c:][:c])
			for j, v := range d.a {
				mean[j] += v / steps
			}
		}
		average(got, d.a, d.u, d.t, false)
		learnerstest.RequireClose(t, "coefficients", got, mean, 1e-11)
	}
}

// The recursion in coefficients equals the recursion in weights.
func TestDualIsPrimal(t *testing.T) {
	rng := kerneltest.Seeded(t, 2)
	const n, m, steps = 30, 80, 500
	x, y := kerneltest.Normals(rng, n*m), kerneltest.Normals(rng, n)
	gram := make([]float64, n*n)
	mat.NewDense(n, n, gram).Mul(mat.NewDense(n, m, x), mat.NewDense(n, m, x).T())
	step := defaultStep(2 * m)
	d, p := newDual(n, 1, step), newPrimal(m, 1, step)
	z := kernel.NewPoints(n, m, x)
	for range steps {
		i := rng.IntN(n)
		a := d.visit(i, gram[i*n:][:n], y[i:i+1])
		l, err := p.rows(z.Slice(i, i+1), y[i:i+1])
		if err != nil || math.Abs(a-l) > 1e-10*(1+a) {
			t.Fatalf("losses %g and %g, %v", a, l, err)
		}
	}
	a, w := make([]float64, n), make([]float64, m)
	average(a, d.a, d.u, d.t, false)
	average(w, p.w, p.u, p.t, false)
	var xa mat.VecDense
	xa.MulVec(mat.NewDense(n, m, x).T(), mat.NewVecDense(n, a))
	learnerstest.RequireClose(t, "Xᵀa", xa.RawVector().Data, w, 1e-11)
}

// Small steps in turn, not averaged, are gradient descent. n steps of γ equal one of
// nγ, up to O(γ²).
func TestSmallStepsAreGradientDescent(t *testing.T) {
	rng := kerneltest.Seeded(t, 4)
	const n, m, gamma, passes = 25, 6, 1e-4, 40
	x, y := kerneltest.Normals(rng, n*m), kerneltest.Normals(rng, n)
	train := must(data.NewMemory(kernel.NewPoints(n, m, x), y, 1))
	p := Params{StepSize: gamma, Passes: passes, Averaging: None, Sampling: minibatch.Reshuffle}
	got := must(p.Fit(background, train, learners.Options{})).(*learners.Linear).Weights()
	w := mat.NewVecDense(m, nil)
	X, Y := mat.NewDense(n, m, x), mat.NewVecDense(n, y)
	for range passes {
		var r, g mat.VecDense
		r.MulVec(X, w)
		r.SubVec(&r, Y)
		g.MulVec(X.T(), &r)
		w.AddScaledVec(w, -gamma, &g)
	}
	learnerstest.RequireClose(t, "w", got, w.RawVector().Data, 20*gamma*m)
}

// Enough passes give least squares. Where the fit is exact, the averages give it too.
// The test checks all three forms, one after the other.
func TestInterpolates(t *testing.T) {
	racetest.Alone(t)
	rng := kerneltest.Seeded(t, 5)
	const n = 8
	k := must(kernel.NewGaussian(0.4))
	train := must(data.NewMemory(kernel.NewPoints(n, 2, kerneltest.Normals(rng, 2*n)), kerneltest.Normals(rng, n), 1))
	for _, p := range []Params{
		{Kernel: k, Passes: 3000, Averaging: None, StepSize: 0.9},
		{Kernel: k, Features: 200, Passes: 3000, Averaging: None, StepSize: 0.9},
	} {
		m := must(p.Fit(background, train, learners.Options{}))
		out := make([]float64, n)
		if err := m.Predict(background, out, train); err != nil {
			t.Fatal(err)
		}
		learnerstest.RequireClose(t, "f", out, train.Targets(), 1e-6)
	}
}

// Beyond gramRows, columns of K are computed when needed, and the numbers are the same.
func TestWithoutGram(t *testing.T) {
	rng := kerneltest.Seeded(t, 6)
	const n = 150
	p := Params{Kernel: must(kernel.NewMatern32(1)), Passes: 1}
	train := must(data.NewMemory(kernel.NewPoints(n, 2, kerneltest.Normals(rng, 2*n)), kerneltest.Normals(rng, 2*n), 2))
	var all [2][]float64
	for i := range all {
		m := must(p.newKernelised(background, train))
		if i == 1 {
			m.gram = nil
		}
		r := rand.New(rand.NewPCG(1, 1))
		if _, _, err := m.pass(background, r); err != nil {
			t.Fatal(err)
		}
		m.keep(false)
		all[i] = m.kept
	}
	learnerstest.RequireClose(t, "a", all[1], all[0], 1e-12)
}

// γ = 1/(4R²), where R² is the largest norm.
func TestDefaultStep(t *testing.T) {
	rng := kerneltest.Seeded(t, 7)
	x := kernel.NewPoints(50, 3, kerneltest.Normals(rng, 150))
	largest := 0.0
	for i := range 50 {
		s := 0.0
		for _, v := range x.Row(i) {
			s += v * v
		}
		largest = max(largest, s)
	}
	train := must(data.NewMemory(x, make([]float64, 50), 1))
	m := must(Params{}.newMachine(background, train, learners.Options{})).(*explicit)
	learnerstest.RequireClose(t, "γ", []float64{m.weights.step}, []float64{0.25 / largest}, 1e-14)
	linear := must(kernel.NewLinear(1))
	d := must(Params{Kernel: linear}.newMachine(background, train, learners.Options{})).(*kernelised)
	learnerstest.RequireClose(t, "γ of the dual", []float64{d.dual.step}, []float64{0.25 / largest}, 1e-14)
	// These features have no bound, so R² is measured on them.
	r := must(Params{Kernel: must(kernel.NewArcCosine(1)), Family: sketch.ReLU, Features: 12}.newMachine(background, train, learners.Options{Workers: 2})).(*explicit)
	phi := make([]float64, 50*12)
	if err := r.phi.Apply(phi, x); err != nil {
		t.Fatal(err)
	}
	largest = 0
	for i := range 50 {
		s := 0.0
		for _, v := range phi[i*12:][:12] {
			s += v * v
		}
		largest = max(largest, s)
	}
	learnerstest.RequireClose(t, "γ of ReLU features", []float64{r.weights.step}, []float64{0.25 / largest}, 1e-13)
	g := must(Params{Kernel: must(kernel.NewGaussian(1)), Features: 10}.newMachine(background, train, learners.Options{})).(*explicit)
	if g.weights.step != 0.25 {
		t.Errorf("γ of Fourier features is %g", g.weights.step)
	}
}

func TestConformance(t *testing.T) {
	k := must(kernel.NewGaussian(1.5))
	for name, p := range map[string]Params{
		"linear":     {Passes: 15},
		"features":   {Kernel: k, Features: 100, Passes: 15, Sampling: minibatch.Reshuffle, Chunk: 30},
		"kernelised": {Kernel: k, Passes: 15, Sampling: minibatch.Cycle},
	} {
		t.Run(name, func(t *testing.T) {
			learnerstest.Run(t, learnerstest.Case{
				New:   func() learners.Estimator { return p },
				Signs: name == "linear", // the best linear function leaves 0.81 of the rest
				Invalid: []learners.Estimator{
					Params{Passes: -1},
					Params{StepSize: math.Inf(1)},
					Params{Sampling: "random"},
					Params{Averaging: "tail"},
					Params{Features: 10},
					Params{Kernel: k, Features: 9},
					Params{Kernel: k, Family: sketch.Fourier},
					Params{Chunk: -1},
				},
			})
		})
	}
}

func TestDivergence(t *testing.T) {
	rng := kerneltest.Seeded(t, 8)
	train := must(data.NewMemory(kernel.NewPoints(60, 3, kerneltest.Normals(rng, 180)), kerneltest.Normals(rng, 60), 1))
	for _, p := range []Params{{StepSize: 5, Passes: 200}, {Kernel: must(kernel.NewGaussian(1)), StepSize: 5, Passes: 200}} {
		var d *learners.DivergenceError
		if _, err := p.Fit(background, train, learners.Options{}); !errors.As(err, &d) || d.Remedy == "" {
			t.Errorf("%v", err)
		}
	}
}

func TestNoData(t *testing.T) {
	var e *learners.DataError
	if _, err := (Params{}).Fit(background, nil, learners.Options{}); !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
}

// Rows of many coordinates get features that are cheap to draw.
func TestFamilyOfWideRows(t *testing.T) {
	racetest.Alone(t)
	for d, want := range map[int]sketch.Family{512: sketch.Orthogonal, 50_000: sketch.Fourier} {
		phi, err := Params{Kernel: must(kernel.NewGaussian(1)), Features: 4}.newFeatures(background, d, 4, 1)
		if err != nil || phi.Spec().Family != want {
			t.Errorf("d = %d: %v, %v, want %s", d, phi, err, want)
		}
	}
}

func TestWeightsAreCopies(t *testing.T) {
	learnerstest.Copies(t, Params{Kernel: kerneltest.Gaussian(1)})
}
