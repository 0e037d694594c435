package krr_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

func TestConformance(t *testing.T) {
	k := kerneltest.Gaussian(2)
	learnerstest.Run(t, learnerstest.Case{
		New: func() learners.Estimator { return krr.Params{Kernel: k, Lambda: 1e-4} },
		Invalid: []learners.Estimator{
			krr.Params{Lambda: 1},
			krr.Params{Kernel: k, Lambda: -1},
			krr.Params{Kernel: k, Lambda: math.NaN()},
			krr.Params{Kernel: k, Lambda: math.Inf(1)},
			krr.Params{Kernel: k, MaxRows: -1},
		},
		Once: true,
	})
}

// TestNoRegularisation runs the same suite with λ = 0, where K of repeated rows is
// singular.
func TestNoRegularisation(t *testing.T) {
	k := kerneltest.Gaussian(0.5)
	learnerstest.Run(t, learnerstest.Case{
		New:            func() learners.Estimator { return krr.Params{Kernel: k} },
		Once:           true,
		AloneTolerance: 1e-6,
	})
}

// dense returns K + ridge·I by Eval.
func dense(k kernel.Kernel, x kernel.Rows, ridge float64) *mat.SymDense {
	n := x.Len()
	a := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			a.SetSym(i, j, k.Eval(x, i, x, j))
		}
		a.SetSym(i, i, a.At(i, i)+ridge)
	}
	return a
}

// TestSolve compares the solution with that of gonum's QR, which shares no code with
// it.
func TestSolve(t *testing.T) {
	for _, n := range []int{1, 2, 7, 60, 150} {
		for _, lambda := range []float64{1e-5, 1e-2, 10} {
			data := learnerstest.Data(t, n, 2, uint64(n), false)
			k := kerneltest.Gaussian(1.5)
			s, err := krr.Solve(context.Background(), k, data.Rows(), data.Targets(), nil, 2, lambda, 2)
			if err != nil {
				t.Fatal(err)
			}
			a := dense(k, data.Rows(), lambda*float64(n))
			var want mat.Dense
			var qr mat.QR
			qr.Factorize(a)
			if err := qr.SolveTo(&want, false, mat.NewDense(n, 2, data.Targets())); err != nil {
				t.Fatal(err)
			}
			for i, v := range want.RawMatrix().Data {
				if d := math.Abs(s.Coefficients[i] - v); !(d <= 1e-8*mat.Norm(&want, 2)) {
					t.Fatalf("n = %d, λ = %g: c[%d] = %v, want %v", n, lambda, i, s.Coefficients[i], v)
				}
			}
			if s.Jitter != 0 || !(s.Residual < 1e-10) {
				t.Errorf("n = %d, λ = %g: jitter %v, residual %v", n, lambda, s.Jitter, s.Residual)
			}
			checkObjective(t, s, dense(k, data.Rows(), 0), data, lambda)
		}
	}
}

func checkObjective(t *testing.T, s *krr.Solution, k *mat.SymDense, data *data.Memory, lambda float64) {
	t.Helper()
	n, outputs := data.Len(), data.Outputs()
	c := mat.NewDense(n, outputs, s.Coefficients)
	var f, e, q mat.Dense
	f.Mul(k, c)
	e.Sub(&f, mat.NewDense(n, outputs, data.Targets()))
	q.Mul(c.T(), &f)
	want := math.Pow(mat.Norm(&e, 2), 2)/float64(n) + lambda*mat.Trace(&q)
	if d := math.Abs(s.Objective - want); !(d <= 1e-9*(1+want)) {
		t.Errorf("objective %v, want %v", s.Objective, want)
	}
}

// TestLimits checks both limits of λ, where c → y/(λn) and where f interpolates.
func TestLimits(t *testing.T) {
	data := learnerstest.Data(t, 40, 1, 3, false)
	k := kerneltest.Gaussian(0.7)
	s, err := krr.Solve(context.Background(), k, data.Rows(), data.Targets(), nil, 1, 1e9, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, y := range data.Targets() {
		if want := y / (1e9 * 40); math.Abs(s.Coefficients[i]-want) > 1e-8*math.Abs(want)+1e-18 {
			t.Fatalf("λ → ∞: c = %v, want %v", s.Coefficients[i], want)
		}
	}
	m, err := krr.Params{Kernel: k}.Fit(context.Background(), data, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := make([]float64, 40)
	if err := m.Predict(context.Background(), f, data); err != nil {
		t.Fatal(err)
	}
	for i, y := range data.Targets() {
		if math.Abs(f[i]-y) > 1e-8 {
			t.Fatalf("λ = 0: f(x_%d) = %v, y = %v", i, f[i], y)
		}
	}
}

// TestGaussianProcess compares f with the mean of the process with noise variance λn.
func TestGaussianProcess(t *testing.T) {
	const n, lambda = 70, 3e-3
	data, test := learnerstest.Data(t, n, 1, 5, false), learnerstest.Data(t, 30, 1, 6, false)
	k := kerneltest.Gaussian(1.2)
	g, err := gp.NewExact(k, gp.Data{X: data.Rows(), Y: data.Targets()}, gp.Options{NoiseVariance: lambda * n})
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := g.Predict(test.Rows())
	if err != nil {
		t.Fatal(err)
	}
	m, err := krr.Params{Kernel: k, Lambda: lambda}.Fit(context.Background(), data, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := make([]float64, 30)
	if err := m.Predict(context.Background(), f, test); err != nil {
		t.Fatal(err)
	}
	for i, v := range want {
		if math.Abs(f[i]-v) > 1e-9 {
			t.Errorf("f(x_%d) = %v, mean of the process %v", i, f[i], v)
		}
	}
}

// TestRepeatedRows takes λ = 0 and every row twice, with different targets. The
// function of least squares has the mean of the two.
func TestRepeatedRows(t *testing.T) {
	data := learnerstest.Data(t, 15, 1, 8, false)
	idx, y, want := []int{}, []float64{}, []float64{}
	for i, v := range data.Targets() {
		idx, y, want = append(idx, i, i), append(y, v-1, v+1), append(want, v, v)
	}
	twice := learnerstest.Memory(t, data.Rows().Select(idx), y, 1)
	var notes []string
	m, err := krr.Params{Kernel: kerneltest.Gaussian(0.5)}.Fit(context.Background(), twice, learners.Options{Progress: func(p learners.Progress) error {
		notes = p.Notes
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(notes) != 1 {
		t.Errorf("notes %q, want one of the jitter", notes)
	}
	f := make([]float64, 30)
	if err := m.Predict(context.Background(), f, twice); err != nil {
		t.Fatal(err)
	}
	for i, v := range want {
		if math.Abs(f[i]-v) > 1e-4 {
			t.Errorf("f(x_%d) = %v, mean of the targets %v", i, f[i], v)
		}
	}
}

func TestErrors(t *testing.T) {
	ctx := context.Background()
	data := learnerstest.Data(t, 9, 1, 2, false)
	k := kerneltest.Gaussian(1)
	var size *krr.SizeError
	if _, err := (krr.Params{Kernel: k, Lambda: 1, MaxRows: 8}).Fit(ctx, data, learners.Options{}); !errors.As(err, &size) || size.Rows != 9 || size.MaxRows != 8 {
		t.Errorf("9 rows with max rows 8: %v", err)
	}
	negative := &kernel.Pairwise[float64]{Name: "negative", Func: func(a, b float64) float64 { return -a * b }}
	var psd *krr.NotPSDError
	if _, err := krr.Solve(ctx, negative, kernel.List[float64]{3, 2, 1}, []float64{1, 2, 3}, nil, 1, 1e-9, 1); !errors.As(err, &psd) || psd.Row != 0 {
		t.Errorf("a negative kernel: %v", err)
	}
	var shape *kernel.ShapeError
	if _, err := krr.Solve(ctx, k, data.Rows(), data.Targets(), nil, 2, 1, 1); !errors.As(err, &shape) {
		t.Errorf("Solve with too few targets: %v", err)
	}
}

func TestWeightsAreRepeatedRows(t *testing.T) {
	learnerstest.Weights(t, krr.Params{Kernel: kerneltest.Gaussian(1.5), Lambda: 1e-3}, false, 1e-9)
}

// The factorisation of many rows is in pieces, between which a context can end it.
func TestFactorisationEnds(t *testing.T) {
	const n = 2500
	rng := kerneltest.Seeded(t, 5)
	x, y := kerneltest.Points(rng, n, 2), make([]float64, n)
	for i := range y {
		y[i] = rng.NormFloat64()
	}
	whole := &learnerstest.Counting{Context: t.Context(), Left: 1000}
	s, err := krr.Solve(whole, kerneltest.Gaussian(1), x, y, nil, 1, 1e-4, 1)
	if err != nil || !(s.Residual < 1e-10) || s.Jitter != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	// Two looks come before the factorisation.
	if _, err := krr.Solve(&learnerstest.Counting{Context: t.Context(), Left: 3}, kerneltest.Gaussian(1), x, y, nil, 1, 1e-4, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if asked := 1000 - whole.Left; asked < 2+n/1024 {
		t.Errorf("%d looks", asked)
	}
}
