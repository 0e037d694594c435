package falkon

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

var background = context.Background()

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// regression returns n normal rows with c noisy smooth targets.
func regression(rng *rand.Rand, n, d, c int) *data.Memory {
	x := kerneltest.Points(rng, n, d)
	return withTargets(rng, x, c)
}

func withTargets(rng *rand.Rand, x *kernel.Points[float64], c int) *data.Memory {
	n, d := x.Len(), x.Dim()
	y := make([]float64, n*c)
	for i := range y {
		row := x.Row(i / c)
		y[i] = math.Sin(float64(i%c+1)*row[0]) + row[(i%c)%d]*row[d-1]/4 + 0.1*rng.NormFloat64()
	}
	return must(data.NewMemory(x, y, c))
}

// streamed has the same rows and targets as a source that is not in memory.
type streamed struct{ m *data.Memory }

func (s streamed) Len() int     { return s.m.Len() }
func (s streamed) Dim() int     { return s.m.Dim() }
func (s streamed) Outputs() int { return s.m.Outputs() }
func (s streamed) Open(ctx context.Context) (kernel.Cursor, error) {
	return s.m.Open(ctx)
}

func (s streamed) OpenPairs(ctx context.Context) (data.PairCursor, error) {
	return s.m.OpenPairs(ctx)
}

// direct returns the values of Nyström-KRR at the rows of at. It uses the
// pseudo-inverse, without eigenvalues of K_MM below 1e-12 of the largest.
func direct(k kernel.Kernel, x, centers kernel.Rows, y, rowWeights []float64, c int, lambda float64, at kernel.Rows) []float64 {
	n, m := x.Len(), centers.Len()
	kmm := mat.NewSymDense(m, nil)
	kmm.CopySym(symmetric(kerneltest.Gram(k, centers, centers)))
	var eig mat.EigenSym
	if !eig.Factorize(kmm, true) {
		panic("no convergence")
	}
	s := eig.Values(nil)
	var u mat.Dense
	eig.VectorsTo(&u)
	first := 0
	for s[first] <= 1e-12*s[m-1] {
		first++
	}
	q := m - first
	basis := mat.NewDense(m, q, nil) // U S^-1/2
	for i := range m {
		for j := range q {
			basis.Set(i, j, u.At(i, first+j)/math.Sqrt(s[first+j]))
		}
	}
	var z mat.Dense
	z.Mul(kerneltest.Gram(k, x, centers), basis)
	// This is least squares of the stacked system [√S Z; √(λn) I] w = [√S y; 0].
	stack := mat.NewDense(n+q, q, nil)
	rhs := mat.NewDense(n+q, c, nil)
	for i := range n {
		s := 1.0
		if rowWeights != nil {
			s = math.Sqrt(rowWeights[i])
		}
		for j := range q {
			stack.Set(i, j, s*z.At(i, j))
		}
		for j := range c {
			rhs.Set(i, j, s*y[i*c+j])
		}
	}
	for j := range q {
		stack.Set(n+j, j, math.Sqrt(lambda*float64(n)))
	}
	var qr mat.QR
	qr.Factorize(stack)
	var w, f, zt mat.Dense
	if err := qr.SolveTo(&w, false, rhs); err != nil {
		if _, ok := err.(mat.Condition); !ok {
			panic(err)
		}
	}
	zt.Mul(kerneltest.Gram(k, at, centers), basis)
	f.Mul(&zt, &w)
	return f.RawMatrix().Data
}

func symmetric(a *mat.Dense) *mat.SymDense {
	n, _ := a.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			s.SetSym(i, j, (a.At(i, j)+a.At(j, i))/2)
		}
	}
	return s
}

// exact returns the values of kernel ridge regression, (K + λnI)c = y, at the rows of
// at.
func exact(k kernel.Kernel, x kernel.Rows, y []float64, lambda float64, at kernel.Rows) []float64 {
	n := x.Len()
	g := symmetric(kerneltest.Gram(k, x, x))
	for i := range n {
		g.SetSym(i, i, g.At(i, i)+lambda*float64(n))
	}
	var chol mat.Cholesky
	if !chol.Factorize(g) {
		panic("not positive definite")
	}
	var c, f mat.VecDense
	if err := chol.SolveVecTo(&c, mat.NewVecDense(n, y)); err != nil {
		panic(err)
	}
	f.MulVec(kerneltest.Gram(k, at, x), &c)
	return f.RawVector().Data
}

func predict(t testing.TB, m learners.Model, x kernel.Rows) []float64 {
	t.Helper()
	out := make([]float64, x.Len()*m.Outputs())
	if err := m.Predict(background, out, kernel.FromRows(x)); err != nil {
		t.Fatal(err)
	}
	return out
}

// difference is ‖a − b‖/‖b‖.
func difference(a, b []float64) float64 {
	num, den := 0.0, 0.0
	for i, v := range a {
		num += (v - b[i]) * (v - b[i])
		den += b[i] * b[i]
	}
	return math.Sqrt(num / den)
}

func requireNear(t testing.TB, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	if d := difference(got, want); !(d <= tolerance) {
		t.Errorf("%s: relative difference %.2g above %.2g", what, d, tolerance)
	}
}

// meanOne returns weights divided by their mean, as a fit has them.
func meanOne(weights []float64) []float64 {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	out := make([]float64, len(weights))
	for i, w := range weights {
		out[i] = w / sum * float64(len(weights))
	}
	return out
}
