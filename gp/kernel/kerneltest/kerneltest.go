// Package kerneltest has the tests that every kernel.Kernel must pass. It also has a source that
// is only sequential, to prove that no code needs more. For other tests on kernels it has seeded
// random numbers, random points, and K(X, Y) by single evaluations.
package kerneltest

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Gen returns n random rows that the kernel under test can read.
type Gen func(rng *rand.Rand, n int) kernel.Rows

// tol is the relative tolerance for two ways to compute the same number.
const tol = 1e-12

// Run tests that k is a kernel and keeps the promises of the interfaces that it
// implements. It tests symmetry, diagonal and bound, positive semi-definiteness (also
// with repeated rows), and its Spec. It compares blocks with single pairs, products
// with sums written out, and gradients with central differences. resolve is needed for
// kernels that are not built in. Without one their Spec is not tested.
func Run(t *testing.T, name string, k kernel.Kernel, gen Gen, resolve ...kernel.Resolver) {
	t.Helper()
	s := suite{k: k, gen: gen}
	t.Run(name, func(t *testing.T) {
		t.Run("diagonal", rapid.MakeCheck(s.diagonal))
		t.Run("psd", rapid.MakeCheck(s.psd))
		t.Run("blocks", rapid.MakeCheck(s.blocks))
		t.Run("products", rapid.MakeCheck(s.products))
		t.Run("spec", func(t *testing.T) { s.spec(t, resolve) })
		_, dense := gen(rand.New(rand.NewPCG(1, 2)), 1).(*kernel.Points[float64])
		if r, ok := kernel.AsRadial(k); ok && dense {
			t.Run("slopes", rapid.MakeCheck(func(t *rapid.T) { s.slopes(t, r) }))
		}
		if h, ok := kernel.AsTunable(k); ok {
			t.Run("hyper-parameter gradient", rapid.MakeCheck(func(t *rapid.T) { s.logGradient(t, h) }))
		}
	})
}

type suite struct {
	k   kernel.Kernel
	gen Gen
}

// rows draws between lo and hi rows, some of them repeated.
func (s suite) rows(t *rapid.T, label string, lo, hi int) kernel.Rows {
	seed := rapid.Uint64().Draw(t, label+" seed")
	n := rapid.IntRange(lo, hi).Draw(t, label+" rows")
	rng := rand.New(rand.NewPCG(seed, 0))
	x := s.gen(rng, n)
	if err := s.k.Check(x); err != nil {
		t.Fatalf("Check refuses the generated rows: %v", err)
	}
	idx := make([]int, n)
	for i := range idx {
		idx[i] = i
		if rng.IntN(5) == 0 {
			idx[i] = rng.IntN(n)
		}
	}
	return x.Select(idx)
}

func (s suite) diagonal(t *rapid.T) {
	x := s.rows(t, "x", 1, 8)
	for i := range x.Len() {
		kii := s.k.Diag(x, i)
		if got := s.k.Eval(x, i, x, i); got != kii {
			t.Fatalf("Eval(%d, %d) = %v, Diag = %v", i, i, got, kii)
		}
		if bound := s.k.Bound(); kii > bound*(1+tol) || kii < 0 || math.IsNaN(bound) {
			t.Fatalf("Diag(%d) = %v outside [0, κ² = %v]", i, kii, bound)
		}
	}
}

func (s suite) psd(t *rapid.T) {
	if err := kernel.CheckPSD(s.k, s.rows(t, "x", 0, 24)); err != nil {
		t.Fatal(err)
	}
}

func (s suite) blocks(t *rapid.T) {
	x, y := s.rows(t, "x", 0, 80), s.rows(t, "y", 0, 80)
	k, err := kernel.Matrix(s.k, x, y)
	if err != nil {
		t.Fatal(err)
	}
	m := y.Len()
	scale := s.magnitude(x, y)
	for i := range x.Len() {
		for j := range m {
			if want := s.k.Eval(x, i, y, j); math.Abs(k[i*m+j]-want) > tol*scale {
				t.Fatalf("Matrix(%d, %d) = %v, Eval = %v", i, j, k[i*m+j], want)
			}
		}
	}
	s.gramian(t, x)
}

func (s suite) gramian(t *rapid.T, x kernel.Rows) {
	k, err := kernel.Gramian(s.k, x)
	if err != nil {
		t.Fatal(err)
	}
	diag, err := kernel.Diagonal(s.k, x)
	if err != nil {
		t.Fatal(err)
	}
	n := x.Len()
	to := make([]float64, n)
	kernel.DiagonalTo(to, s.k, x)
	if !slices.Equal(to, diag) {
		t.Fatalf("DiagonalTo %v, Diagonal %v", to, diag)
	}
	scale := s.magnitude(x, x)
	for i := range n {
		if k[i*n+i] != diag[i] || diag[i] != s.k.Diag(x, i) {
			t.Fatalf("diagonal %d: Gramian %v, Diagonal %v, Diag %v", i, k[i*n+i], diag[i], s.k.Diag(x, i))
		}
		for j := range n {
			if k[i*n+j] != k[j*n+i] {
				t.Fatalf("Gramian not symmetric at (%d, %d)", i, j)
			}
			if want := s.k.Eval(x, i, x, j); math.Abs(k[i*n+j]-want) > tol*scale {
				t.Fatalf("Gramian(%d, %d) = %v, Eval = %v", i, j, k[i*n+j], want)
			}
		}
	}
}

// magnitude bounds |k(x_i, y_j)| by Cauchy–Schwarz, at least 1.
func (s suite) magnitude(x, y kernel.Rows) float64 {
	a, b := 1.0, 1.0
	for i := range x.Len() {
		a = max(a, s.k.Diag(x, i))
	}
	for j := range y.Len() {
		b = max(b, s.k.Diag(y, j))
	}
	return math.Sqrt(a * b)
}

func (s suite) products(t *rapid.T) {
	x, c := s.rows(t, "x", 0, 300), s.rows(t, "centers", 0, 12)
	op, err := kernel.NewOperator(s.k, Sequential(x), c, kernel.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "v seed"), 0))
	n, m := x.Len(), c.Len()
	v, u := Normals(rng, m), Normals(rng, n)
	want := make([]float64, m)
	mass := 0.0
	for i := range n {
		sum := u[i]
		for j := range m {
			sum += s.k.Eval(x, i, c, j) * v[j]
		}
		mass += math.Abs(sum)
		for j := range m {
			want[j] += s.k.Eval(x, i, c, j) * sum
		}
	}
	got := make([]float64, m)
	if err := op.Gram(context.Background(), got, v, u); err != nil {
		t.Fatal(err)
	}
	scale := s.magnitude(x, c)
	for j := range m {
		if math.Abs(got[j]-want[j]) > 10*tol*scale*(mass+scale*float64(n*m)) {
			t.Fatalf("Kᵀ(Kv + u) at %d is %v, want %v", j, got[j], want[j])
		}
	}
}

// spec sends k through JSON and compares values bit by bit.
func (s suite) spec(t *testing.T, resolve []kernel.Resolver) {
	var r kernel.Resolver
	if len(resolve) > 0 {
		r = resolve[0]
	}
	data, err := json.Marshal(s.k.Spec())
	if err != nil {
		t.Fatal(err)
	}
	var spec kernel.Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		t.Fatal(err)
	}
	again, err := kernel.New(spec, r)
	if err != nil {
		if r == nil {
			t.Skipf("no resolver: %v", err)
		}
		t.Fatal(err)
	}
	second, err := json.Marshal(again.Spec())
	if err != nil || string(second) != string(data) {
		t.Fatalf("Spec %s came back as %s (%v)", data, second, err)
	}
	x := s.gen(rand.New(rand.NewPCG(1, 2)), 12)
	for i := range x.Len() {
		for j := range x.Len() {
			if a, b := s.k.Eval(x, i, x, j), again.Eval(x, i, x, j); a != b {
				t.Fatalf("k(x_%d, x_%d) = %v, after the round trip %v", i, j, a, b)
			}
		}
	}
	if again.Bound() != s.k.Bound() {
		t.Fatalf("κ² = %v, after the round trip %v", s.k.Bound(), again.Bound())
	}
}

// gradTol is the error of central differences with step 1e-4 and one Richardson step in
// double precision, with a margin.
const gradTol = 1e-6

// derivative returns f'(0) by Richardson-extrapolated central differences, and
// false at a kink, where they do not converge.
func derivative(f func(h float64) float64) (float64, bool) {
	const h = 1e-4
	wide := (f(2*h) - f(-2*h)) / (4 * h)
	narrow := (f(h) - f(-h)) / (2 * h)
	return (4*narrow - wide) / 3, math.Abs(wide-narrow) < gradTol*max(1, math.Abs(narrow))
}

// slopes compares the rows of a radial kernel with pairs, and its slopes with differences.
func (s suite) slopes(t *rapid.T, k kernel.Radial) {
	stored := s.rows(t, "x", 1, 8).(*kernel.Points[float64])
	n, d := stored.Len(), stored.Dim()
	x := stored.Select(make([]int, 1)).(*kernel.Points[float64])
	y := kernel.NewPoints[float64](n, d, nil)
	for j := range n {
		copy(y.Row(j), stored.Row(j))
	}
	values, again, slopes := make([]float64, n), make([]float64, n), make([]float64, n)
	k.FillRow(values, x.Row(0), y.Data())
	k.FillSlopes(again, slopes, x.Row(0), y.Data())
	scale := s.magnitude(x, y)
	for j := range n {
		if want := k.Eval(x, 0, y, j); math.Abs(values[j]-want) > tol*scale || math.Abs(again[j]-want) > tol*scale {
			t.Fatalf("FillRow %v, FillSlopes %v, Eval %v at %d", values[j], again[j], want, j)
		}
		for c, w := range k.SlopeWeights(d) {
			at := x.Row(0)[c]
			got := slopes[j] * w * (at - y.Row(j)[c])
			want, smooth := derivative(func(h float64) float64 {
				x.Row(0)[c] = at + h
				return k.Eval(x, 0, y, j)
			})
			x.Row(0)[c] = at
			if smooth && w != 0 && math.Abs(got-want) > gradTol*max(1, math.Abs(want), scale) {
				t.Fatalf("∂k/∂x_%d = %v at x = %v, y = %v; differences give %v", c, got, x.Row(0), y.Row(j), want)
			}
		}
	}
}

func (s suite) logGradient(t *rapid.T, k kernel.Tunable) {
	x := s.rows(t, "x", 2, 2)
	params := k.Parameters()
	theta := make([]float64, len(params))
	for p, v := range params {
		theta[p] = math.Log(v.Value)
	}
	const before, scale = 0.5, -2
	grad := make([]float64, len(params))
	for p := range grad {
		grad[p] = before
	}
	k.AddLogGrad(grad, scale, x, 0, x, 1)
	for p, param := range params {
		want, smooth := derivative(func(h float64) float64 {
			shifted := append([]float64(nil), theta...)
			shifted[p] += h
			q, err := k.WithLogParameters(shifted)
			if err != nil {
				t.Fatal(err)
			}
			return q.Eval(x, 0, x, 1)
		})
		got := (grad[p] - before) / scale
		if smooth && math.Abs(got-want) > gradTol*max(1, math.Abs(want), s.magnitude(x, x)) {
			t.Fatalf("∂k/∂log %s = %v, differences give %v", param.Name, got, want)
		}
	}
}
