package gp_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// seeded returns a generator and logs how to repeat it.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// uniform returns n points of [0, 1]^d.
func uniform(rng *rand.Rand, n, d int) *kernel.Points[float64] {
	data := make([]float64, n*d)
	for i := range data {
		data[i] = rng.Float64()
	}
	return kernel.NewPoints(n, d, data)
}

// repeated returns n rows of x, drawn with replacement.
func repeated(rng *rand.Rand, x kernel.Rows, n int) kernel.Rows {
	idx := make([]int, n)
	for i := range idx {
		idx[i] = rng.IntN(x.Len())
	}
	return x.Select(idx)
}

func normals(rng *rand.Rand, n int) []float64 {
	y := make([]float64, n)
	for i := range y {
		y[i] = rng.NormFloat64()
	}
	return y
}

// kernels returns the kernels of the tests, for d inputs.
func kernels(d int) map[string]kernel.Kernel {
	ard := make([]float64, d)
	for c := range ard {
		ard[c] = 0.3 + 0.2*float64(c)
	}
	gauss := must(kernel.NewGaussian(ard...))
	return map[string]kernel.Kernel{
		"gaussian": gauss,
		"matern52": must(kernel.NewScaled(2.5, must(kernel.NewMatern52(0.4)))),
		"rational": must(kernel.NewRationalQuadratic(1.5, 0.7)),
	}
}

func eachKernel(t *testing.T, d int, f func(t *testing.T, k kernel.Kernel, rng *rand.Rand)) {
	for name, k := range kernels(d) {
		t.Run(name, func(t *testing.T) { f(t, k, seeded(t)) })
	}
}

// sample draws the values of a process at the rows of x.
func sample(rng *rand.Rand, k kernel.Kernel, x kernel.Rows) []float64 {
	var c mat.Cholesky
	for jitter := 0.0; !c.Factorize(mat.NewSymDense(x.Len(), addDiag(gram(k, x, x), jitter).RawMatrix().Data)); {
		jitter = max(10*jitter, 1e-14)
	}
	var l mat.TriDense
	c.LTo(&l)
	var f mat.VecDense
	f.MulVec(&l, mat.NewVecDense(x.Len(), normals(rng, x.Len())))
	return f.RawVector().Data
}

// gram is K(x, y), one pair at a time.
func gram(k kernel.Kernel, x, y kernel.Rows) *mat.Dense {
	out := mat.NewDense(x.Len(), y.Len(), nil)
	for i := range x.Len() {
		for j := range y.Len() {
			out.Set(i, j, k.Eval(x, i, y, j))
		}
	}
	return out
}

// model is a Gaussian model of targets. It has the prior covariance of the function at
// the queries, the cross covariance and the covariance of the targets.
type model struct {
	mean, variance []float64
	cov            *mat.Dense
	evidence       float64
}

// condition is the textbook formula with an explicit inverse.
func condition(prior, cross, a *mat.Dense, y []float64) model {
	n, q := len(y), prior.RawMatrix().Rows
	var inv, tmp mat.Dense
	if err := inv.Inverse(a); err != nil {
		panic(err)
	}
	target := mat.NewDense(n, 1, append([]float64(nil), y...))
	var mean, cov mat.Dense
	tmp.Mul(cross, &inv)
	mean.Mul(&tmp, target)
	cov.Mul(&tmp, cross.T())
	cov.Sub(prior, &cov)
	m := model{cov: &cov, evidence: logNormal(a, y)}
	for i := range q {
		m.mean, m.variance = append(m.mean, mean.At(i, 0)), append(m.variance, cov.At(i, i))
	}
	return m
}

// logNormal is log N(y | 0, a).
func logNormal(a *mat.Dense, y []float64) float64 {
	var sol mat.Dense
	target := mat.NewDense(len(y), 1, append([]float64(nil), y...))
	if err := sol.Solve(a, target); err != nil {
		panic(err)
	}
	logdet, _ := mat.LogDet(a)
	return -0.5 * (mat.Dot(target.ColView(0), sol.ColView(0)) + logdet + float64(len(y))*math.Log(2*math.Pi))
}

// addDiag returns a + diag(v), v of length 1 or n.
func addDiag(a *mat.Dense, v ...float64) *mat.Dense {
	b := mat.DenseCopyOf(a)
	for i := range b.RawMatrix().Rows {
		b.Set(i, i, b.At(i, i)+v[i%len(v)])
	}
	return b
}

// exactModel is the exact posterior at queries.
func exactModel(k kernel.Kernel, x kernel.Rows, y []float64, noise float64, queries kernel.Rows) model {
	return condition(gram(k, queries, queries), gram(k, queries, x), addDiag(gram(k, x, x), noise), y)
}

// nystrom is Q(x, y) = K_xD K_DD⁻¹K_Dy.
func nystrom(k kernel.Kernel, dict, x, y kernel.Rows) *mat.Dense {
	var sol, q mat.Dense
	if err := sol.Solve(gram(k, dict, dict), gram(k, dict, y)); err != nil {
		if _, bad := err.(mat.Condition); !bad {
			panic(err)
		}
	}
	q.Mul(gram(k, x, dict), &sol)
	return &q
}

func near(t fataler, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol*(1+math.Abs(want[i]))) {
			t.Fatalf("%s[%d] = %.15g, want %.15g (difference %.2g, allowed %.2g)",
				what, i, got[i], want[i], got[i]-want[i], tol)
		}
	}
}

func near1(t fataler, what string, got, want, tol float64) {
	t.Helper()
	near(t, what, []float64{got}, []float64{want}, tol)
}

type predictor interface {
	Predict(kernel.Rows) ([]float64, []float64, error)
}

var (
	_ predictor = (*gp.Exact)(nil)
	_ predictor = (*gp.Sparse)(nil)
)

func predict(t testing.TB, p predictor, x kernel.Rows) (mean, variance []float64) {
	t.Helper()
	mean, variance, err := p.Predict(x)
	if err != nil {
		t.Fatal(err)
	}
	return mean, variance
}

// fataler is the common part of *testing.T and *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}
