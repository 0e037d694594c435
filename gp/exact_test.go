package gp_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/sketch"
)

func TestExactEqualsDenseInverse(t *testing.T) {
	racetest.Alone(t)
	eachKernel(t, 3, func(t *testing.T, k kernel.Kernel, rng *rand.Rand) {
		const noise = 0.05
		x, y, q := uniform(rng, 100, 3), normals(rng, 100), uniform(rng, 40, 3)
		g := must(gp.NewExact(k, gp.Data{X: x, Y: y}, gp.Options{NoiseVariance: noise}))
		want := exactModel(k, x, y, noise, q)
		mean, variance := predict(t, g, q)
		near(t, "mean", mean, want.mean, 1e-10)
		near(t, "variance", variance, want.variance, 1e-10)
		near1(t, "evidence", g.LogEvidence(), want.evidence, 1e-10)
		logdet, _ := mat.LogDet(addDiag(gram(k, x, x), noise))
		near1(t, "log det", g.LogDet(), logdet-100*math.Log(noise), 1e-10)
	})
}

func TestExactWithoutDataIsThePrior(t *testing.T) {
	rng := seeded(t)
	q := uniform(rng, 5, 2)
	g := must(gp.NewExact(kernels(2)["matern52"], gp.Data{}, gp.Options{NoiseVariance: 1, Mean: 3}))
	mean, variance := predict(t, g, q)
	near(t, "mean", mean, []float64{3, 3, 3, 3, 3}, 0)
	near(t, "variance", variance, []float64{2.5, 2.5, 2.5, 2.5, 2.5}, 0)
	if e := g.Evidence(); e.Value != 0 || len(e.Kernel) != 2 || e.Noise != 0 {
		t.Errorf("evidence of nothing: %v", e)
	}
}

func TestExactVarianceOnlyShrinks(t *testing.T) {
	rng := seeded(t)
	k, q := kernels(2)["matern52"], uniform(rng, 30, 2)
	for _, noise := range []float64{1, 1e-3, 1e-12} {
		g := must(gp.NewExact(k, gp.Data{}, gp.Options{NoiseVariance: noise}))
		_, before := predict(t, g, q)
		pool := uniform(rng, 20, 2)
		x, y := repeated(rng, pool, 60), normals(rng, 60)
		for n := range 60 {
			g = must(gp.NewExact(k, gp.Data{X: x.Slice(0, n+1), Y: y[:n+1]}, gp.Options{NoiseVariance: noise}))
			_, after := predict(t, g, q)
			for i := range after {
				if after[i] > before[i]+1e-9 || after[i] < 0 {
					t.Fatalf("noise %g, variance %d went from %g to %g", noise, i, before[i], after[i])
				}
			}
			before = after
		}
	}
}

func TestExactOrderDoesNotMatter(t *testing.T) {
	rng := seeded(t)
	k, x, y, q := kernels(2)["rational"], uniform(rng, 50, 2), normals(rng, 50), uniform(rng, 20, 2)
	perm := rng.Perm(50)
	py := make([]float64, 50)
	for i, p := range perm {
		py[i] = y[p]
	}
	o := gp.Options{NoiseVariance: 0.1, Mean: 0.5}
	a := must(gp.NewExact(k, gp.Data{X: x, Y: y}, o))
	b := must(gp.NewExact(k, gp.Data{X: x.Select(perm), Y: py}, o))
	m1, v1 := predict(t, a, q)
	m2, v2 := predict(t, b, q)
	near(t, "mean", m2, m1, 1e-10)
	near(t, "variance", v2, v1, 1e-10)
}

func TestExactOwnNoise(t *testing.T) {
	rng := seeded(t)
	k, x, y, q := kernels(2)["gaussian"], repeated(rng, uniform(rng, 10, 2), 25), normals(rng, 25), uniform(rng, 9, 2)
	own := make([]float64, 25)
	for i := range own {
		own[i] = float64(rng.IntN(3)) * rng.Float64()
	}
	diag := make([]float64, 25)
	for i := range diag {
		diag[i] = own[i] + 0.1
	}
	want := condition(gram(k, q, q), gram(k, q, x), addDiag(gram(k, x, x), diag...), y)
	g := must(gp.NewExact(k, gp.Data{X: x, Y: y, Noise: own}, gp.Options{NoiseVariance: 0.1}))
	mean, variance := predict(t, g, q)
	near(t, "mean", mean, want.mean, 1e-10)
	near(t, "variance", variance, want.variance, 1e-10)
	near1(t, "evidence", g.LogEvidence(), want.evidence, 1e-10)
}

// withParameters returns k and noise at log parameters v.
func withParameters(k kernel.Kernel, v []float64) (kernel.Kernel, float64) {
	t, _ := kernel.AsTunable(k)
	p := len(t.Parameters())
	return must(t.WithLogParameters(v[:p])), math.Exp(v[p])
}

func logParameters(k kernel.Kernel, noise float64) []float64 {
	var v []float64
	t, _ := kernel.AsTunable(k)
	for _, p := range t.Parameters() {
		v = append(v, math.Log(p.Value))
	}
	return append(v, math.Log(noise))
}

// differences returns central differences of f at v.
func differences(f func(v []float64) float64, v []float64, h float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		a, b := append([]float64(nil), v...), append([]float64(nil), v...)
		a[i] -= h
		b[i] += h
		out[i] = (f(b) - f(a)) / (2 * h)
	}
	return out
}

func TestExactEvidenceGradient(t *testing.T) {
	eachKernel(t, 2, func(t *testing.T, k kernel.Kernel, rng *rand.Rand) {
		x, y := repeated(rng, uniform(rng, 25, 2), 40), normals(rng, 40)
		for _, m := range []float64{0, 0.4} {
			f := func(v []float64) gp.Evidence {
				k2, noise := withParameters(k, v)
				return must(gp.NewExact(k2, gp.Data{X: x, Y: y}, gp.Options{NoiseVariance: noise, Mean: m})).Evidence()
			}
			v := logParameters(k, 0.2)
			e := f(v)
			want := differences(func(v []float64) float64 { return f(v).Value }, v, 1e-4)
			near(t, "gradient", append(e.Kernel, e.Noise), want, 1e-5)
		}
	})
}

// pairs is a kernel whose gradient is summed by pairs.
type pairs struct{ kernel.Tunable }

// The gradient by blocks is that by pairs, for any number of workers, and where a distance
// overflows.
func TestEvidenceGradientByBlocks(t *testing.T) {
	const n, d, seed = 300, 3, 11
	rng := rand.New(rand.NewPCG(seed, 0))
	x, y := uniform(rng, n, d), normals(rng, n)
	far := kernel.NewPoints(n, d, slices.Clone(x.Data()))
	far.Row(7)[1], far.Row(200)[1] = 1.2e308, -1.2e308
	for name, k := range map[string]kernel.Kernel{
		"gaussian": must(kernel.NewGaussian(0.3)), "matern12": must(kernel.NewMatern12(0.3, 1, 4)),
		"matern32": must(kernel.NewMatern32(0.3, 1, 4)), "matern52": must(kernel.NewScaled(2, must(kernel.NewMatern52(0.3, 1, 4)))),
	} {
		tunable, _ := kernel.AsTunable(k)
		for rows, x := range map[string]kernel.Rows{"near": x, "far": far} {
			evidence := func(k kernel.Kernel, workers int) gp.Evidence {
				return must(gp.NewExact(k, gp.Data{X: x, Y: y}, gp.Options{NoiseVariance: 0.1, Workers: workers})).Evidence()
			}
			want, got := evidence(pairs{tunable}, 1), evidence(k, 1)
			near(t, fmt.Sprintf("seed %d, %s, %s rows, gradient", seed, name, rows), got.Kernel, want.Kernel, 1e-9)
			if three := evidence(k, 3); !slices.Equal(three.Kernel, got.Kernel) {
				t.Errorf("%s, %s rows: the gradient is %v with 3 workers and %v with 1", name, rows, three.Kernel, got.Kernel)
			}
		}
	}
}

func TestLeaveOneOutEqualsRefits(t *testing.T) {
	eachKernel(t, 2, func(t *testing.T, k kernel.Kernel, rng *rand.Rand) {
		const n, noise = 25, 0.1
		x, y := uniform(rng, n, 2), normals(rng, n)
		o := gp.Options{NoiseVariance: noise, Mean: 0.3}
		loo := must(gp.NewExact(k, gp.Data{X: x, Y: y}, o)).LeaveOneOut()
		for i := range n {
			var rest []int
			var yr []float64
			for j := range n {
				if j != i {
					rest, yr = append(rest, j), append(yr, y[j])
				}
			}
			m, v := predict(t, must(gp.NewExact(k, gp.Data{X: x.Select(rest), Y: yr}, o)), x.Slice(i, i+1))
			near1(t, "mean", loo.Mean[i], m[0], 1e-9)
			near1(t, "variance", loo.Variance[i], v[0]+noise, 1e-9)
		}
	})
}

// Kernel ridge regression has a per-sample λ (K + λnI), (2.30) of Carratino (2020), and
// the process a total one (K + ξ²I), (6.3). The test fixes the functions that convert
// between them.
func TestNoiseVarianceOfRidgeRegression(t *testing.T) {
	rng := seeded(t)
	const n, lambda = 30, 1e-3
	k, x, y, q := kernels(2)["gaussian"], uniform(rng, n, 2), normals(rng, n), uniform(rng, 10, 2)
	var c, want mat.Dense
	if err := c.Solve(addDiag(gram(k, x, x), lambda*n), mat.NewDense(n, 1, append([]float64(nil), y...))); err != nil {
		t.Fatal(err)
	}
	want.Mul(gram(k, q, x), &c)
	g := must(gp.NewExact(k, gp.Data{X: x, Y: y}, gp.Options{NoiseVariance: sketch.Ridge(lambda, n)}))
	mean, _ := predict(t, g, q)
	near(t, "mean", mean, want.RawMatrix().Data, 1e-10)
	if l := sketch.LambdaOfNoise(sketch.Ridge(lambda, n), n); l != lambda {
		t.Errorf("λ came back as %v", l)
	}
	// Leverage scores are the diagonal of K(K + λnI)⁻¹, which is σ²/ξ² by (7.1), and
	// (5.3) with all rows as the dictionary.
	var lev mat.Dense
	if err := lev.Solve(addDiag(gram(k, x, x), lambda*n), gram(k, x, x)); err != nil {
		t.Fatal(err)
	}
	noise := sketch.Ridge(lambda, n)
	scores := must(sketch.LeverageScores(context.Background(), k, kernel.FromRows(x), lambda))
	_, variance := predict(t, g, x)
	for i := range n {
		near1(t, "leverage (7.1)", sketch.ScoreOfVariance(variance[i], noise), lev.At(i, i), 1e-9)
		near1(t, "leverage (5.3)", scores[i], lev.At(i, i), 1e-9)
		near1(t, "variance", scores[i]*noise, variance[i], 1e-9)
	}
}

type sloper interface {
	predictor
	PredictSlope(kernel.Rows, int) (gp.Slope, error)
}

func checkSlope(t *testing.T, g sloper, q *kernel.Points[float64]) {
	t.Helper()
	s, err := g.PredictSlope(q, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := func(v []float64) (mean, sd float64) {
		m, v2 := predict(t, g, kernel.NewPoints(1, len(v), v))
		return m[0], math.Sqrt(v2[0])
	}
	m, sd := at(q.Row(0))
	near1(t, "mean", s.Mean, m, 1e-12)
	near1(t, "sd", s.SD, sd, 1e-12)
	near(t, "mean gradient", s.MeanGradient,
		differences(func(v []float64) float64 { m, _ := at(v); return m }, q.Row(0), 1e-5), 1e-6)
	near(t, "sd gradient", s.SDGradient,
		differences(func(v []float64) float64 { _, sd := at(v); return sd }, q.Row(0), 1e-5), 1e-6)
}
