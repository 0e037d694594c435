package learners_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/sketch"
)

// points returns n×d normal numbers.
func points[T kernel.Float](n, d int, rng *rand.Rand) *kernel.Points[T] {
	x := kernel.NewPoints[T](n, d, nil)
	for i := range x.Data() {
		x.Data()[i] = T(rng.NormFloat64())
	}
	return x
}

func normals(n int, rng *rand.Rand) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

func predict(tb testing.TB, m learners.Model, x kernel.Source) []float64 {
	tb.Helper()
	out := make([]float64, x.Len()*m.Outputs())
	if err := m.Predict(context.Background(), out, x); err != nil {
		tb.Fatal(err)
	}
	return out
}

func same(tb testing.TB, what string, got, want []float64) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			tb.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func near(tb testing.TB, what string, got, want []float64, tolerance float64) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tolerance*(1+math.Abs(want[i]))) {
			tb.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// models are one of every kind, with inputs that they take.
func models(tb testing.TB, rng *rand.Rand) map[string]struct {
	m learners.Model
	x kernel.Rows
} {
	tb.Helper()
	type entry = struct {
		m learners.Model
		x kernel.Rows
	}
	must := func(m learners.Model, err error) learners.Model {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return m
	}
	k := kerneltest.Gaussian(1.3)
	scaled, err := kernel.NewScaled(2.5, k)
	if err != nil {
		tb.Fatal(err)
	}
	sparse := kernel.Sparse(points[float64](7, 3, rng))
	sparse32 := kernel.Sparse(points[float32](7, 3, rng))
	spec := func(f sketch.Family, features int) *sketch.FeatureSpec {
		return &sketch.FeatureSpec{Family: f, Kernel: k.Spec(), Dim: 3, Features: features, Seed: 9}
	}
	x := points[float64](50, 3, rng)
	x32 := points[float32](50, 3, rng)
	logistic, err := learners.NewExpansion(k, points[float64](4, 3, rng), normals(4, rng), 1)
	if err != nil {
		tb.Fatal(err)
	}
	average := func(weights []float64, members ...learners.Model) learners.Model {
		return must(learners.NewAverage(members, weights))
	}
	return map[string]entry{
		"average": {average([]float64{0.7, -0.1, 0.4},
			must(learners.NewExpansion(scaled, points[float64](7, 3, rng), normals(14, rng), 2)),
			must(learners.NewExpansion(k, sparse, normals(14, rng), 2)),
			must(learners.NewLinear(spec(sketch.Fourier, 16), 3, normals(32, rng), 2))), x},
		"dense":      {must(learners.NewExpansion(scaled, points[float64](7, 3, rng), normals(14, rng), 2)), x},
		"dense32":    {must(learners.NewExpansion(k, points[float32](7, 3, rng), normals(7, rng), 1)), x32},
		"sparse":     {must(learners.NewExpansion(k, sparse, normals(21, rng), 3)), kernel.Sparse(x)},
		"sparse32":   {must(learners.NewExpansion(k, sparse32, normals(7, rng), 1)), kernel.Sparse(x32)},
		"logistic":   {logistic.WithLink(learners.Logistic), x},
		"linear":     {must(learners.NewLinear(nil, 3, normals(6, rng), 2)), x},
		"fourier":    {must(learners.NewLinear(spec(sketch.Fourier, 16), 3, normals(32, rng), 2)), x},
		"fastfood":   {must(learners.NewLinear(spec(sketch.Fastfood, 10), 3, normals(10, rng), 1)), x},
		"orthogonal": {must(learners.NewLinear(spec(sketch.Orthogonal, 8), 3, normals(8, rng), 1)), kernel.Sparse(x)},
	}
}
