package nystrom

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/sketch"
)

func TestConformance(t *testing.T) {
	k := kerneltest.Gaussian(1.5)
	invalid := []learners.Estimator{
		Params{},
		Params{Kernel: k, Lambda: -1},
		Params{Kernel: k, Lambda: math.NaN()},
		Params{Kernel: k, Centers: -1},
		Params{Kernel: k, SamplerLambda: math.Inf(1)},
		Params{Kernel: k, Solver: "lu"},
		Params{Kernel: k, Coordinates: "polar"},
		Params{Kernel: k, Coordinates: Plain},
		Params{Kernel: k, Solver: Gradient, StepSize: -1},
		Params{Kernel: k, Solver: SGD, BatchSize: -1},
		Params{Kernel: k, Solver: CG, Tolerance: -1},
		Params{Kernel: k, Solver: CG, Iterations: -1},
		Params{Kernel: k, Distances: 3},
	}
	for name, c := range map[string]struct {
		p         Params
		tolerance float64
	}{
		"direct":            {Params{Lambda: 1e-4, Centers: 30}, 0},
		"direct, BLESS":     {Params{Lambda: 1e-4, Sampler: sketch.BLESS{}}, 0},
		"direct, λ = 0":     {Params{Centers: 15}, 0},
		"gradient":          {Params{Centers: 30, Solver: Gradient, Iterations: 40}, 0},
		"gradient, plain":   {Params{Lambda: 1e-4, Centers: 30, Solver: Gradient, Coordinates: Plain, Iterations: 200}, 0},
		"sgd":               {Params{Lambda: 1e-5, Centers: 30, Solver: SGD, Iterations: 20}, 0},
		"sgd, plain":        {Params{Centers: 30, Solver: SGD, Coordinates: Plain, Iterations: 20}, 0},
		"cg":                {Params{Lambda: 1e-4, Centers: 30, Solver: CG, Iterations: 25}, 1e-3},
		"cg, plain":         {Params{Lambda: 1e-2, Centers: 10, Solver: CG, Coordinates: Plain, Iterations: 25}, 1e-4},
		"cg, ExactRLS, M ≤": {Params{Lambda: 1e-3, Centers: 20, Sampler: sketch.ExactRLS{}, Solver: CG, Iterations: 15}, 1e-3},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.Kernel = k
			learnerstest.Run(t, learnerstest.Case{
				New: func() learners.Estimator { return c.p }, Invalid: invalid,
				Once: c.p.Solver == Direct, AloneTolerance: c.tolerance,
			})
		})
	}
}

func fit(t *testing.T, e learners.Estimator, data data.Source) learners.Model {
	t.Helper()
	m, err := e.Fit(context.Background(), data, learners.Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func predict(t *testing.T, m learners.Model, x kernel.Source) []float64 {
	t.Helper()
	out := make([]float64, x.Len()*m.Outputs())
	if err := m.Predict(context.Background(), out, x); err != nil {
		t.Fatal(err)
	}
	return out
}

// distance is ‖a − b‖/‖b‖.
func distance(a, b []float64) float64 {
	num, den := 0.0, 0.0
	for i := range a {
		num += (a[i] - b[i]) * (a[i] - b[i])
		den += b[i] * b[i]
	}
	return math.Sqrt(num / den)
}

// least returns the predictions for x of the least squares solution of [K_nM; √(λn)
// K_MM^½] c = [y; 0]. It uses singular values and is independent of this package.
func least(t *testing.T, k kernel.Kernel, data *data.Memory, centers, x kernel.Rows, lambda float64) []float64 {
	t.Helper()
	n, m, c := data.Len(), centers.Len(), data.Outputs()
	a := mat.NewDense(n+m, m, nil)
	for i := range n {
		for j := range m {
			a.Set(i, j, k.Eval(data.Rows(), i, centers, j))
		}
	}
	gram := mat.NewSymDense(m, nil)
	for i := range m {
		for j := range i + 1 {
			gram.SetSym(i, j, k.Eval(centers, i, centers, j))
		}
	}
	var eig mat.EigenSym
	eig.Factorize(gram, true)
	var q mat.Dense
	eig.VectorsTo(&q)
	for i, s := range eig.Values(nil) {
		for j := range m {
			a.Set(n+i, j, math.Sqrt(max(s, 0)*lambda*float64(n))*q.At(j, i))
		}
	}
	b := mat.NewDense(n+m, c, nil)
	b.Slice(0, n, 0, c).(*mat.Dense).Copy(mat.NewDense(n, c, data.Targets()))
	var svd mat.SVD
	if !svd.Factorize(a, mat.SVDThin) {
		t.Fatal("no singular values")
	}
	var coef mat.Dense
	svd.SolveTo(&coef, b, svd.Rank(1e-12))
	out := make([]float64, x.Len()*c)
	for i := range x.Len() {
		for j := range m {
			for o := range c {
				out[i*c+o] += k.Eval(x, i, centers, j) * coef.At(j, o)
			}
		}
	}
	return out
}

// TestDirect compares the direct solution with least squares by singular values, for
// well and badly conditioned K_MM.
func TestDirect(t *testing.T) {
	for seed := range uint64(3) {
		data, test := learnerstest.Data(t, 90, 2, seed, false), learnerstest.Data(t, 40, 2, seed+100, false)
		centers := learnerstest.Fixed{}
		for i := 0; i < 90; i += 3 {
			centers = append(centers, i)
		}
		for _, scale := range []float64{0.5, 1.5, 4} {
			for _, lambda := range []float64{1e-1, 1e-4, 1e-7} {
				k := kerneltest.Gaussian(scale)
				got := predict(t, fit(t, Params{Kernel: k, Lambda: lambda, Sampler: centers}, data), test)
				want := least(t, k, data, data.Rows().Select(centers), test.Rows(), lambda)
				if d := distance(got, want); !(d < 1e-7) {
					t.Errorf("seed %d, ℓ = %v, λ = %g: off by %g", seed, scale, lambda, d)
				}
			}
		}
	}
}

// TestExact checks that the solution with all rows as centres is that of package krr.
func TestExact(t *testing.T) {
	racetest.Alone(t)
	data, test := learnerstest.Data(t, 80, 2, 4, false), learnerstest.Data(t, 40, 2, 5, false)
	for _, lambda := range []float64{1e-2, 1e-5, 1e-8} {
		k := kerneltest.Gaussian(1.5)
		want := predict(t, fit(t, krr.Params{Kernel: k, Lambda: lambda}, data), test)
		for _, p := range []Params{
			{Kernel: k, Lambda: lambda, Centers: 80},
			{Kernel: k, Lambda: lambda, Centers: 80, Solver: CG, Iterations: 3000, Tolerance: 1e-12},
		} {
			if d := distance(predict(t, fit(t, p, data), test), want); !(d < 1e-6) {
				t.Errorf("λ = %g, solver %q: off by %g", lambda, p.Solver, d)
			}
		}
	}
}

// TestCenters checks that order and repetition of centres change nothing.
func TestCenters(t *testing.T) {
	data, test := learnerstest.Data(t, 70, 1, 6, false), learnerstest.Data(t, 40, 1, 7, false)
	k := kerneltest.Gaussian(1.5)
	for _, p := range []Params{
		{Lambda: 1e-6},
		{Lambda: 1e-3, Solver: CG, Iterations: 500},
		{Lambda: 1e-3, Solver: Gradient, Iterations: 30, StepSize: 1},
	} {
		p.Kernel = k
		var want []float64
		for name, centers := range map[string]learnerstest.Fixed{
			"once":     {1, 5, 9, 20, 33, 34, 50, 60, 61},
			"reversed": {61, 60, 50, 34, 33, 20, 9, 5, 1},
			"repeated": {1, 1, 5, 9, 5, 20, 20, 20, 33, 34, 50, 60, 61, 61},
		} {
			p.Sampler = centers
			m := fit(t, p, data)
			got := predict(t, m, test)
			if want == nil {
				want = got
			} else if d := distance(got, want); !(d < 1e-9) {
				t.Errorf("solver %q, centres %s: off by %g", p.Solver, name, d)
			}
			if r := m.(*learners.Expansion).Centers().Len(); r != 9 {
				t.Errorf("solver %q, centres %s: %d of 9 are left", p.Solver, name, r)
			}
		}
	}
}

// TestLimits checks that λ = 0 with as many different centres as rows interpolates, and
// that repeated rows with different targets get their mean. It also takes more centres
// than rows, and inputs that are all equal for the kernel.
func TestLimits(t *testing.T) {
	k := kerneltest.Gaussian(0.6)
	data := learnerstest.Data(t, 40, 1, 8, false)
	if d := distance(predict(t, fit(t, Params{Kernel: k, Centers: 1000}, data), data), data.Targets()); !(d < 1e-8) {
		t.Errorf("λ = 0: off by %g", d)
	}
	idx, y, mean := []int{}, []float64{}, []float64{}
	for i, v := range data.Targets() {
		idx, y, mean = append(idx, i, i), append(y, v-1, v+1), append(mean, v, v)
	}
	twice := learnerstest.Memory(t, data.Rows().Select(idx), y, 1)
	if d := distance(predict(t, fit(t, Params{Kernel: k, Centers: 80}, twice), twice), mean); !(d < 1e-7) {
		t.Errorf("λ = 0, every row twice: off by %g", d)
	}
	linear, err := kernel.NewLinear(1)
	if err != nil {
		t.Fatal(err)
	}
	zero := learnerstest.Memory(t, kernel.NewPoints[float64](5, 3, nil), []float64{1, 2, 3, 4, 5}, 1)
	for _, p := range []Params{{}, {Solver: Gradient}, {Solver: CG}, {Solver: SGD}, {Lambda: 1}} {
		p.Kernel = linear
		for _, v := range predict(t, fit(t, p, zero), data) {
			if v != 0 {
				t.Errorf("solver %q: f = %v where the kernel is 0", p.Solver, v)
			}
		}
	}
}

// TestNYTRO checks that gradient descent in whitened coordinates is the spectral filter
// of its number of steps, in the eigenvectors of K_nM K_MM⁺ K_Mn/n.
func TestNYTRO(t *testing.T) {
	const n = 60
	data, test := learnerstest.Data(t, n, 2, 9, false), learnerstest.Data(t, 30, 2, 10, false)
	centers := learnerstest.Fixed{0, 4, 8, 15, 16, 23, 42, 55}
	k := kerneltest.Gaussian(1)
	points := data.Rows().Select(centers)
	for _, lambda := range []float64{0, 1e-2} {
		for _, iterations := range []int{1, 2, 10, 200} {
			const gamma = 0.9
			got := predict(t, fit(t, Params{
				Kernel: k, Lambda: lambda, Sampler: centers, Solver: Gradient, StepSize: gamma, Iterations: iterations,
			}, data), test)
			want := filtered(t, k, data, points, test.Rows(), func(s float64) float64 {
				s += lambda
				return -math.Expm1(float64(iterations)*math.Log1p(-gamma*s)) / s
			})
			if d := distance(got, want); !(d < 1e-10) {
				t.Errorf("λ = %g, t = %d: off by %g", lambda, iterations, d)
			}
		}
	}
}

// filtered returns Z_x g(ZᵀZ/n) Zᵀy/n with Z = K_nM K_MM^−½, computed from
// eigenvectors.
func filtered(t *testing.T, k kernel.Kernel, data *data.Memory, centers, x kernel.Rows, g func(float64) float64) []float64 {
	t.Helper()
	n, m, c := data.Len(), centers.Len(), data.Outputs()
	dense := func(a, b kernel.Rows) *mat.Dense {
		v, err := kernel.Matrix(k, a, b)
		if err != nil {
			t.Fatal(err)
		}
		return mat.NewDense(a.Len(), b.Len(), v)
	}
	function := func(a *mat.Dense, f func(float64) float64) *mat.Dense {
		var eig mat.EigenSym
		eig.Factorize(mat.NewSymDense(m, a.RawMatrix().Data), true)
		var q, out mat.Dense
		eig.VectorsTo(&q)
		d := mat.NewDiagDense(m, nil)
		for i, s := range eig.Values(nil) {
			d.SetDiag(i, f(s))
		}
		out.Product(&q, d, q.T())
		return &out
	}
	root := function(dense(centers, centers), func(s float64) float64 { return 1 / math.Sqrt(s) })
	var z, zx, a, rhs, out mat.Dense
	z.Mul(dense(data.Rows(), centers), root)
	zx.Mul(dense(x, centers), root)
	a.Mul(z.T(), &z)
	a.Scale(1/float64(n), &a)
	rhs.Mul(z.T(), mat.NewDense(n, c, data.Targets()))
	rhs.Scale(1/float64(n), &rhs)
	out.Product(&zx, function(&a, g), &rhs)
	return out.RawMatrix().Data
}

// TestSolversAgree checks that all iterations converge to the direct solution.
func TestSolversAgree(t *testing.T) {
	racetest.Alone(t)
	const lambda = 0.05
	data, test := learnerstest.Data(t, 60, 2, 11, false), learnerstest.Data(t, 40, 2, 12, false)
	k := kerneltest.Gaussian(1)
	direct := Params{Kernel: k, Lambda: lambda, Centers: 10}
	want := predict(t, fit(t, direct, data), test)
	for _, c := range []struct {
		p         Params
		tolerance float64
	}{
		{Params{Solver: Gradient, Iterations: 800}, 1e-8},
		{Params{Solver: Gradient, Coordinates: Plain, Iterations: 8000}, 1e-2},
		{Params{Solver: CG, Iterations: 50}, 1e-8},
		{Params{Solver: CG, Coordinates: Plain, Iterations: 200, Tolerance: 1e-14}, 1e-6},
		{Params{Solver: SGD, BatchSize: 60, Iterations: 800}, 1e-8},
		{Params{Solver: SGD, BatchSize: 4, StepSize: 0.01, Iterations: 1500}, 5e-2},
	} {
		p := c.p
		p.Kernel, p.Lambda, p.Centers = k, lambda, 10
		if d := distance(predict(t, fit(t, p, data), test), want); !(d < c.tolerance) {
			t.Errorf("%s %s, b = %d: off by %g", p.Solver, p.Coordinates, p.BatchSize, d)
		}
	}
}

// TestObjective computes the objective from the model's predictions.
func TestObjective(t *testing.T) {
	const lambda = 1e-3
	data := learnerstest.Data(t, 60, 2, 13, false)
	k := kerneltest.Gaussian(1)
	for _, p := range []Params{
		{},
		{Solver: Gradient, Iterations: 5},
		{Solver: Gradient, Coordinates: Plain, Iterations: 5},
		{Solver: CG, Iterations: 5},
		{Solver: CG, Coordinates: Plain, Iterations: 5},
	} {
		p.Kernel, p.Lambda, p.Centers = k, lambda, 12
		last := math.Inf(1)
		_, err := p.Fit(context.Background(), data, learners.Options{Progress: func(pr learners.Progress) error {
			m, err := pr.Snapshot()
			if err != nil {
				return err
			}
			e := m.(*learners.Expansion)
			gram, err := kernel.Gramian(k, e.Centers())
			if err != nil {
				return err
			}
			r := e.Centers().Len()
			coef := mat.NewDense(r, 2, e.Coefficients())
			var kc, norm mat.Dense
			kc.Mul(mat.NewDense(r, r, gram), coef)
			norm.Mul(coef.T(), &kc)
			want := 2*learners.MSE(predict(t, m, data), data.Targets(), 2) + lambda*mat.Trace(&norm)
			if !(math.Abs(pr.Objective-want) < 1e-9*(1+want)) {
				return fmt.Errorf("objective %v, want %v", pr.Objective, want)
			}
			if pr.Objective > last*(1+1e-9) {
				return fmt.Errorf("objective grows from %v to %v", last, pr.Objective)
			}
			last = pr.Objective
			return nil
		}})
		if err != nil {
			t.Errorf("%q %q: %v", p.Solver, p.Coordinates, err)
		}
	}
}

// TestDistances compares expanded distances, the default for some of these rows, with
// direct ones. They change K_nM by 3e-15(1 + R²) and the function by 1/√(ελ) times
// that, where ε is the tolerance in K_MM, see falkon.Params.
func TestDistances(t *testing.T) {
	const lambda, small = 1e-3, 1e-6
	data := learnerstest.Data(t, 100, 2, 38, false)
	for _, s := range []Solver{Gradient, CG} {
		with := func(d kernel.Distances) []float64 {
			p := Params{Kernel: kerneltest.Gaussian(1), Lambda: lambda, Centers: 10, Solver: s, Iterations: 50, Tolerance: 1e-13, Distances: d}
			return predict(t, fit(t, p, data), data)
		}
		auto, direct, expanded := with(kernel.AutoDistances), with(kernel.DirectDistances), with(kernel.ExpandedDistances)
		if slices.Equal(auto, direct) || !slices.Equal(auto, expanded) {
			t.Errorf("%s: automatic is direct, %t, expanded, %t", s, slices.Equal(auto, direct), slices.Equal(auto, expanded))
		}
		if d := distance(auto, direct); !(d <= 3e-15*(1+5*5)/math.Sqrt(small*lambda)) {
			t.Errorf("%s: off by %g", s, d)
		}
	}
}

// TestDivergence checks that steps that are too large are reported. The default steps
// are within a factor of 4 of the largest that converges.
func TestDivergence(t *testing.T) {
	data := learnerstest.Data(t, 60, 1, 14, false)
	k := kerneltest.Gaussian(1)
	for _, p := range []Params{
		{Solver: Gradient, Iterations: 400},
		{Solver: Gradient, Coordinates: Plain, Iterations: 400},
		{Solver: SGD, BatchSize: 8, Iterations: 100},
		{Solver: SGD, Coordinates: Plain, BatchSize: 8, Iterations: 100},
	} {
		p.Kernel, p.Centers = k, 20
		fit(t, p, data)
		f := &run{Params: p.withDefaults(60, 60), ctx: context.Background(), train: data, n: 60, c: 1}
		b, err := newBasis(k, data.Rows().Slice(0, 20), p.Coordinates, 1)
		if err != nil {
			t.Fatal(err)
		}
		f.basis = b
		s, beta, err := f.curvature()
		if err != nil {
			t.Fatal(err)
		}
		p.StepSize = 4 / s
		if p.Solver == SGD {
			p.StepSize = 4 * 8 / (beta + 7*s)
		}
		var divergence *learners.DivergenceError
		if m, err := p.Fit(context.Background(), data, learners.Options{Seed: 3}); !errors.As(err, &divergence) {
			t.Errorf("%s %s with step %v: %v, %v", p.Solver, p.Coordinates, p.StepSize, m, err)
		}
	}
}

// TestNotes checks that notes name the centres that are left out.
func TestNotes(t *testing.T) {
	data := learnerstest.Data(t, 30, 1, 15, false)
	var notes []string
	_, err := Params{Kernel: kerneltest.Gaussian(1), Lambda: 1e-3, Sampler: learnerstest.Fixed{1, 1, 2, 3}, Solver: CG, Iterations: 3}.Fit(
		context.Background(), data, learners.Options{Progress: func(p learners.Progress) error {
			notes = append(notes, p.Notes...)
			return nil
		}})
	if err != nil || len(notes) != 2 || !strings.HasPrefix(notes[0], "the sampler chose 4 centres for λ = ") || !strings.HasPrefix(notes[1], "of 4 centres, 1 are ") {
		t.Errorf("notes %q, %v", notes, err)
	}
}

func TestWeightsAreRepeatedRows(t *testing.T) {
	const all = 10_000
	k := kerneltest.Gaussian(1.5)
	for name, p := range map[string]Params{
		"direct":   {Kernel: k, Lambda: 1e-3, Centers: all},
		"cg":       {Kernel: k, Lambda: 1e-3, Centers: all, Solver: CG},
		"gradient": {Kernel: k, Lambda: 1e-3, Centers: all, Solver: Gradient, StepSize: 1, Iterations: 50},
		"sgd":      {Kernel: k, Lambda: 1e-3, Centers: all, Solver: SGD, StepSize: 1, BatchSize: all, Iterations: 50},
	} {
		t.Run(name, func(t *testing.T) { learnerstest.Weights(t, p, false, 1e-7) })
	}
}

// Rows of large weight have small stable steps, which the estimates of the step know.
func TestWeightsKeepStepsStable(t *testing.T) {
	train := learnerstest.Data(t, 300, 1, 3, false)
	weights := slices.Repeat([]float64{1}, 300)
	for i := range 5 {
		weights[i*50] = 400
	}
	for _, solver := range []Solver{Gradient, SGD} {
		p := Params{Kernel: kerneltest.Gaussian(1.5), Centers: 50, Solver: solver, Iterations: 200}
		if _, err := p.Fit(t.Context(), train, learners.Options{Weights: weights}); err != nil {
			t.Errorf("%s: %v", solver, err)
		}
	}
}
