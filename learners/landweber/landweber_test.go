package landweber

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

func TestConformance(t *testing.T) {
	k := kerneltest.Gaussian(1.5)
	learnerstest.Run(t, learnerstest.Case{
		New: func() learners.Estimator { return Params{Kernel: k, Iterations: 60} },
		Invalid: []learners.Estimator{
			Params{},
			Params{Kernel: k, StepSize: -1},
			Params{Kernel: k, StepSize: math.NaN()},
			Params{Kernel: k, StepSize: math.Inf(1)},
			Params{Kernel: k, Iterations: -1},
			Params{Kernel: k, Distances: 3},
		},
	})
}

func coefficients(t *testing.T, p Params, data *data.Memory) []float64 {
	t.Helper()
	m, err := p.Fit(context.Background(), data, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m.(*learners.Expansion).Coefficients()
}

// eigen returns K/n = Q diag(s) Qᵀ.
func eigen(t *testing.T, k kernel.Kernel, x kernel.Rows) ([]float64, *mat.Dense) {
	t.Helper()
	gram, err := kernel.Gramian(k, x)
	if err != nil {
		t.Fatal(err)
	}
	n := x.Len()
	for i := range gram {
		gram[i] /= float64(n)
	}
	var eig mat.EigenSym
	if !eig.Factorize(mat.NewSymDense(n, gram), true) {
		t.Fatal("no eigenvalues")
	}
	var q mat.Dense
	eig.VectorsTo(&q)
	return eig.Values(nil), &q
}

// filtered returns (1/n) g(K/n) y.
func filtered(s []float64, q *mat.Dense, y []float64, c int, g func(s float64) float64) []float64 {
	n := len(s)
	var a mat.Dense
	a.Mul(q.T(), mat.NewDense(n, c, y))
	for i := range n {
		for j := range c {
			a.Set(i, j, a.At(i, j)*g(s[i])/float64(n))
		}
	}
	var out mat.Dense
	out.Mul(q, &a)
	return out.RawMatrix().Data
}

// filter returns g_t without the loss of digits of (1 − (1 − γs)^t)/s at small s.
func filter(gamma float64, t int) func(float64) float64 {
	return func(s float64) float64 {
		if s < 1e-14 {
			return gamma * float64(t)
		}
		return -math.Expm1(float64(t)*math.Log1p(-gamma*s)) / s
	}
}

func distance(a, b []float64) float64 {
	num, den := 0.0, 0.0
	for i := range a {
		num += (a[i] - b[i]) * (a[i] - b[i])
		den += b[i] * b[i]
	}
	return math.Sqrt(num / den)
}

// TestDistances checks that expanded distances move the coefficients by no more than
// they move K. That is ‖E‖ ≤ n·3e-15(1 + R²), once in each step. With γ = 1 the
// relative change is 3e-15(1 + R²). Where rows are far away, the default computes
// distances directly.
func TestDistances(t *testing.T) {
	const iterations = 60
	data := learnerstest.Data(t, 80, 2, 37, false)
	for _, c := range []struct {
		scale  float64
		far    bool
		factor float64 // 1 + R²
	}{{1.5, false, 1 + 5*5}, {0.05, true, 0}} {
		p := Params{Kernel: kerneltest.Gaussian(c.scale), StepSize: 1, Iterations: iterations}
		with := func(d kernel.Distances) []float64 {
			p.Distances = d
			return coefficients(t, p, data)
		}
		auto, direct, expanded := with(kernel.AutoDistances), with(kernel.DirectDistances), with(kernel.ExpandedDistances)
		if slices.Equal(direct, expanded) || !slices.Equal(auto, map[bool][]float64{true: direct, false: expanded}[c.far]) {
			t.Errorf("length scale %v: direct is expanded, %t; automatic is direct, %t, expanded, %t",
				c.scale, slices.Equal(direct, expanded), slices.Equal(auto, direct), slices.Equal(auto, expanded))
		}
		if d := distance(auto, direct); !(d <= iterations*3e-15*c.factor) {
			t.Errorf("length scale %v: off by %g", c.scale, d)
		}
	}
}

// TestFilter checks that the coefficients after T iterations are those of the spectral
// filter, also where rows are repeated and K has no full rank. With one more term, as
// in the print of (2.36), or with K², as in (2.35), they differ.
func TestFilter(t *testing.T) {
	k := kerneltest.Gaussian(1.2)
	distinct := learnerstest.Data(t, 60, 2, 31, false)
	idx, y := []int{}, []float64{}
	for i := range 40 {
		idx, y = append(idx, i, i%10), append(y, distinct.Targets()[2*i:2*i+2]...)
		y = append(y, distinct.Targets()[2*(i+20):2*(i+20)+2]...)
	}
	for name, train := range map[string]*data.Memory{
		"full rank":     distinct,
		"repeated rows": learnerstest.Memory(t, distinct.Rows().Select(idx), y, 2),
	} {
		s, q := eigen(t, k, train.Rows())
		gamma := 1 / s[len(s)-1]
		for _, iterations := range []int{1, 2, 10, 300} {
			got := coefficients(t, Params{Kernel: k, StepSize: gamma, Iterations: iterations}, train)
			if d := distance(got, filtered(s, q, train.Targets(), 2, filter(gamma, iterations))); !(d < 1e-12) {
				t.Errorf("%s, t = %d: off by %g", name, iterations, d)
			}
			if d := distance(got, filtered(s, q, train.Targets(), 2, filter(gamma, iterations+1))); d < 1e-4 {
				t.Errorf("%s, t = %d: the sum to t is as good", name, iterations)
			}
			squared := func(s float64) float64 { return s * filter(gamma*gamma, iterations)(s*s) }
			if d := distance(got, filtered(s, q, train.Targets(), 2, squared)); d < 0.1 {
				t.Errorf("%s, t = %d: the gradient in c is as good", name, iterations)
			}
		}
	}
}

// TestShape checks that the training error never grows and that the validation error
// falls and rises again. Patience stops the fit and gives the least error.
func TestShape(t *testing.T) {
	racetest.Alone(t)
	train, validation := learnerstest.Data(t, 60, 1, 41, false), learnerstest.Data(t, 300, 1, 42, false)
	y := append([]float64(nil), train.Targets()...)
	for i := range y { // noise to overfit
		y[i] += 0.8 * float64(1-2*(i*7919%2))
	}
	train = learnerstest.Memory(t, train.Rows(), y, 1)
	k := kerneltest.Gaussian(0.8)
	var objective, errs []float64
	m, err := Params{Kernel: k, Iterations: 800}.Fit(context.Background(), train, learners.Options{Validation: validation, Progress: func(p learners.Progress) error {
		objective, errs = append(objective, p.Objective), append(errs, p.ValidationError)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	best := 0
	for i := range errs {
		if errs[i] < errs[best] {
			best = i
		}
		if i > 0 && objective[i] > objective[i-1]*(1+1e-12) {
			t.Fatalf("the training error grows from %v to %v in iteration %d", objective[i-1], objective[i], i+1)
		}
	}
	if best < 2 || best > 600 || errs[0] < 1.05*errs[best] || errs[len(errs)-1] < 1.05*errs[best] {
		t.Errorf("validation error %v, least %v in iteration %d, %v at the end: no U", errs[0], errs[best], best+1, errs[len(errs)-1])
	}
	calls := 0
	patient, err := Params{Kernel: k, Iterations: 800}.Fit(context.Background(), train, learners.Options{Validation: validation, Patience: 20, Progress: func(learners.Progress) error {
		calls++
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if calls != best+1+20 {
		t.Errorf("%d iterations with patience 20, the least error was in iteration %d", calls, best+1)
	}
	if d := distance(patient.(*learners.Expansion).Coefficients(), m.(*learners.Expansion).Coefficients()); d != 0 {
		t.Errorf("patience changes the model by %g", d)
	}
}

// TestDefaultStep checks for 1/(1.1 s_max) or a little more, where s_max is the largest
// eigenvalue of K/n.
func TestDefaultStep(t *testing.T) {
	k := kerneltest.Gaussian(1)
	data := learnerstest.Data(t, 50, 1, 51, false)
	s, _ := eigen(t, k, data.Rows())
	got := coefficients(t, Params{Kernel: k, Iterations: 1}, data) // (γ/n)y
	gamma := got[0] * 50 / data.Targets()[0]
	if want := 1 / (1.1 * s[49]); gamma < want*(1-1e-9) || gamma > want*1.15 {
		t.Errorf("γ = %v, want %v or a little more", gamma, want)
	}
}

// TestDivergence takes twice the largest step that converges, and a step just below
// that limit.
func TestDivergence(t *testing.T) {
	k := kerneltest.Gaussian(1)
	data := learnerstest.Data(t, 50, 1, 61, false)
	s, _ := eigen(t, k, data.Rows())
	var divergence *learners.DivergenceError
	m, err := Params{Kernel: k, StepSize: 4 / s[49], Iterations: 500}.Fit(context.Background(), data, learners.Options{})
	if !errors.As(err, &divergence) || divergence.Remedy == "" {
		t.Errorf("γ = 4/s: %v, %v", m, err)
	}
	if _, err := (Params{Kernel: k, StepSize: 1.95 / s[49], Iterations: 500}).Fit(context.Background(), data, learners.Options{}); err != nil {
		t.Errorf("γ = 1.95/s: %v", err)
	}
}

func TestWeightsAreRepeatedRows(t *testing.T) {
	learnerstest.Weights(t, Params{Kernel: kerneltest.Gaussian(1), StepSize: 0.5}, false, 1e-9)
}
