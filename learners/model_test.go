package learners_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/sketch"
)

// TestExpansion compares predictions with the sum over pairs.
func TestExpansion(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		n, m, d, c := 1+rng.IntN(400), 1+rng.IntN(40), 1+rng.IntN(6), 1+rng.IntN(4)
		k := kerneltest.Gaussian(1.5)
		x, centers, a := points[float64](n, d, rng), points[float64](m, d, rng), normals(m*c, rng)
		want := make([]float64, n*c)
		for i := range n {
			for j := range m {
				for o := range c {
					want[i*c+o] += k.Eval(x, i, centers, j) * a[j*c+o]
				}
			}
		}
		e, err := learners.NewExpansion(k, centers, a, c)
		if err != nil {
			t.Fatal(err)
		}
		if e.Dim() != d || e.Outputs() != c {
			t.Fatalf("dimension %d and %d outputs, want %d and %d", e.Dim(), e.Outputs(), d, c)
		}
		got := predict(t, e, kernel.FromRows(x))
		near(t, "f", got, want, 1e-11)
		same(t, "streamed", predict(t, e, kerneltest.Sequential(x)), got)
	}
}

// TestLinear compares predictions with the map applied to all rows at once, and with a
// sum over coordinates.
func TestLinear(t *testing.T) {
	racetest.Alone(t)
	rng := rand.New(rand.NewPCG(2, 1))
	for _, n := range []int{1, 5, 16, 1000, 2500} {
		const d, c = 4, 3
		x := points[float64](n, d, rng)
		spec := sketch.FeatureSpec{Family: sketch.Fourier, Kernel: kerneltest.Gaussian(1).Spec(), Dim: d, Features: 300, Seed: 4}
		features, err := sketch.NewFeatures(spec)
		if err != nil {
			t.Fatal(err)
		}
		phi := make([]float64, n*300)
		if err := features.Apply(phi, x); err != nil {
			t.Fatal(err)
		}
		w := normals(300*c, rng)
		l, err := learners.NewLinear(&spec, d, w, c)
		if err != nil {
			t.Fatal(err)
		}
		got := predict(t, l, kernel.FromRows(x))
		near(t, "features", got, multiply(phi, w, n, 300, c), 1e-11)
		same(t, "features streamed", predict(t, l, kerneltest.Sequential(x)), got)
		// A row's prediction does not depend on the rows beside it.
		one := predict(t, l, kernel.FromRows(x.Slice(n-1, n)))
		same(t, "last row", one, got[(n-1)*c:])

		v := normals(d*c, rng)
		plain, err := learners.NewLinear(nil, d, v, c)
		if err != nil {
			t.Fatal(err)
		}
		want := multiply(x.Data(), v, n, d, c)
		near(t, "inputs", predict(t, plain, kernel.FromRows(x)), want, 1e-12)
		near(t, "sparse inputs", predict(t, plain, kerneltest.Sequential(kernel.Sparse(x))), want, 1e-12)
		near(t, "float32 inputs", predict(t, plain, kernel.FromRows(kernel.ConvertPoints[float32](x))), want, 1e-5)
	}
}

func multiply(a, b []float64, n, m, c int) []float64 {
	out := make([]float64, n*c)
	for i := range n {
		for k := range m {
			for j := range c {
				out[i*c+j] += a[i*m+k] * b[k*c+j]
			}
		}
	}
	return out
}

func TestModelErrors(t *testing.T) {
	k := kerneltest.Gaussian(1)
	x := kernel.NewPoints[float64](2, 3, nil)
	nan := kernel.NewPoints[float64](2, 3, nil)
	nan.Row(1)[2] = math.NaN()
	var shape *kernel.ShapeError
	var value *kernel.NonFiniteError
	var dim *kernel.DimensionError
	spec := &sketch.FeatureSpec{Family: sketch.Fourier, Kernel: k.Spec(), Dim: 3, Features: 4}
	for name, test := range map[string]struct {
		make func() (learners.Model, error)
		want any
	}{
		"too few coefficients":   {func() (learners.Model, error) { return learners.NewExpansion(k, x, []float64{1}, 1) }, &shape},
		"no output":              {func() (learners.Model, error) { return learners.NewExpansion(k, x, nil, 0) }, &shape},
		"no centre":              {func() (learners.Model, error) { return learners.NewExpansion(k, x.Slice(0, 0), nil, 1) }, &shape},
		"NaN in a centre":        {func() (learners.Model, error) { return learners.NewExpansion(k, nan, []float64{1, 2}, 1) }, &value},
		"Inf in a coefficient":   {func() (learners.Model, error) { return learners.NewExpansion(k, x, []float64{1, math.Inf(1)}, 1) }, &value},
		"too few weights":        {func() (learners.Model, error) { return learners.NewLinear(nil, 3, []float64{1, 2}, 1) }, &shape},
		"too many weights":       {func() (learners.Model, error) { return learners.NewLinear(spec, 3, make([]float64, 9), 2) }, &shape},
		"no dimension":           {func() (learners.Model, error) { return learners.NewLinear(nil, 0, nil, 1) }, &shape},
		"NaN in a weight":        {func() (learners.Model, error) { return learners.NewLinear(nil, 1, []float64{math.NaN()}, 1) }, &value},
		"map of other dimension": {func() (learners.Model, error) { return learners.NewLinear(spec, 2, make([]float64, 4), 1) }, &dim},
	} {
		m, err := test.make()
		if !errors.As(err, test.want) {
			t.Errorf("%s: %v, %v, want a %T", name, m, err, test.want)
		}
	}
	list := kernel.List[string]{"a", "b"}
	if err := learners.MulRows(make([]float64, 2), list, nil, 1); err == nil {
		t.Error("MulRows of strings")
	}
}

// short is a source that ends too early or too late.
type short struct {
	kernel.Source
	n int
}

func (s short) Len() int { return s.n }

func TestEachBlock(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	x := points[float64](100, 2, rng)
	for _, workers := range []int{1, 3} {
		sums := make([]float64, 100)
		err := learners.EachBlock(context.Background(), kerneltest.Sequential(x), 7, workers, func(row int, b kernel.Rows) error {
			if row%7 != 0 || b.Len() != min(7, 100-row) {
				t.Errorf("a block of %d rows at row %d", b.Len(), row)
			}
			for i := range b.Len() {
				sums[row+i] += b.(*kernel.Points[float64]).Row(i)[0]
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range sums {
			if s != x.Row(i)[0] {
				t.Fatalf("row %d was seen as %v, want %v", i, s, x.Row(i)[0])
			}
		}
	}
	nothing := func(int, kernel.Rows) error { return nil }
	for _, n := range []int{99, 101, 140} {
		err := learners.EachBlock(context.Background(), short{kerneltest.Sequential(x), n}, 7, 2, nothing)
		if !errors.Is(err, kernel.ErrSource) {
			t.Errorf("a source of 100 rows that claims %d: %v", n, err)
		}
	}
	boom := errors.New("boom")
	if err := learners.EachBlock(context.Background(), kernel.FromRows(x), 7, 2, func(row int, _ kernel.Rows) error {
		if row >= 50 {
			return boom
		}
		return nil
	}); !errors.Is(err, boom) {
		t.Errorf("a function that fails: %v", err)
	}
	x.Row(64)[1] = math.Inf(-1)
	var bad *kernel.NonFiniteError
	if err := learners.EachBlock(context.Background(), kernel.FromRows(x), 7, 2, nothing); !errors.As(err, &bad) || bad.Row != 64 || bad.Col != 1 {
		t.Errorf("Inf in row 64: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := learners.EachBlock(ctx, kernel.FromRows(x), 7, 2, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
}

func TestProbabilities(t *testing.T) {
	near(t, "two classes", learners.Expected.Probabilities([]float64{-3, -1, 0, 0.5, 2}, 1), []float64{1, 0, 1, 0, 0.5, 0.5, 0.25, 0.75, 0, 1}, 0)
	near(t, "three classes", learners.Expected.Probabilities([]float64{1, 0, -1, -2, -2, -2}, 3), []float64{2.0 / 3, 1.0 / 3, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3}, 1e-15)
	near(t, "logistic", learners.Logistic.Probabilities([]float64{math.Log(3), -800, 800}, 1), []float64{0.25, 0.75, 1, 0, 0, 1}, 1e-15)
}
