package sketch

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

func embed(t *testing.T, e *Embedding, x kernel.Rows) (z, residual []float64) {
	t.Helper()
	z, residual = make([]float64, x.Len()*e.Rank()), make([]float64, x.Len())
	if err := e.Apply(background, z, residual, kernel.FromRows(x), 1); err != nil {
		t.Fatal(err)
	}
	return z, residual
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

// z reproduces the kernel exactly among the centres. Elsewhere it is smaller by the
// residual, 0 ≤ k(x, x) − ‖z(x)‖².
func TestEmbeddingIsTheKernelOnItsSpan(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 70), 60, 2)
	k := must(kernel.NewScaled(3, kerneltest.Gaussian(0.8)))
	e := must(NewEmbedding(k, x.Slice(0, 25), 0, 0))
	z, residual := embed(t, e, x)
	r := e.Rank()
	for i := range 60 {
		for j := range 25 { // one of the two is a centre
			if got, want := dot(z[i*r:][:r], z[j*r:][:r]), k.Eval(x, i, x, j); math.Abs(got-want) > 1e-4 {
				t.Fatalf("z_%dᵀz_%d = %g, k = %g", i, j, got, want)
			}
		}
		if want := 3 - dot(z[i*r:][:r], z[i*r:][:r]); math.Abs(residual[i]-max(want, 0)) > 1e-12 || residual[i] < 0 {
			t.Fatalf("residual %d is %g, want %g", i, residual[i], want)
		}
		if i < 25 && residual[i] > 3*2*DefaultTolerance {
			t.Fatalf("residual of centre %d is %g", i, residual[i])
		}
	}
}

// L is the factor of K_PP, and z = L⁻¹k_P.
func TestEmbeddingFactor(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 71), 20, 2)
	k := kerneltest.Gaussian(0.5)
	e := must(NewEmbedding(k, x, 0, 0))
	r := e.Rank()
	l := e.Factor()
	for i := range r {
		for j := range r {
			if got, want := dot(l[i*r:][:r], l[j*r:][:r]), k.Eval(e.Points(), i, e.Points(), j); math.Abs(got-want) > 1e-12 {
				t.Fatalf("(LLᵀ)_%d,%d = %g, want %g", i, j, got, want)
			}
			if j > i && l[i*r+j] != 0 {
				t.Fatalf("L_%d,%d = %g", i, j, l[i*r+j])
			}
		}
		if k.Eval(e.Points(), i, x, e.pivots[i]) != 1 {
			t.Fatalf("point %d is not centre %d", i, e.pivots[i])
		}
	}
}

// The projection is the same if centres repeat, come in any order, or span less than
// their number.
func TestEmbeddingOfDependentCenters(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 72), 50, 3)
	for _, c := range []struct {
		k    kernel.Kernel
		rank int
	}{{must(kernel.NewLinear(1)), 3}, {must(kernel.NewPolynomial(2, 1, 1)), 10}, {kerneltest.Gaussian(1), 20}} {
		order := upTo(20)
		repeated := slices.Concat(order, order[5:15])
		slices.Reverse(repeated)
		a, b := must(NewEmbedding(c.k, x.Select(order), 0, 0)), must(NewEmbedding(c.k, x.Select(repeated), 0, 0))
		if a.Rank() != c.rank || b.Rank() != c.rank {
			t.Fatalf("%s: ranks %d and %d, want %d", c.k.Spec().Name, a.Rank(), b.Rank(), c.rank)
		}
		za, _ := embed(t, a, x)
		zb, _ := embed(t, b, x)
		for i := range 50 {
			for j := range 50 {
				va, vb := dot(za[i*c.rank:][:c.rank], za[j*c.rank:][:c.rank]), dot(zb[i*c.rank:][:c.rank], zb[j*c.rank:][:c.rank])
				if math.Abs(va-vb) > 1e-8*(1+math.Abs(va)) {
					t.Fatalf("%s: kernel of %d and %d is %g and %g", c.k.Spec().Name, i, j, va, vb)
				}
			}
		}
	}
}

func TestEmbeddingIsDeterministic(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 73), 600, 3)
	e := must(NewEmbedding(kerneltest.Gaussian(1), x.Slice(0, 90), 0, 0))
	z, residual := embed(t, e, x)
	for _, src := range []kernel.Source{kernel.FromRows(x), kerneltest.Sequential(x)} {
		z2, r2 := make([]float64, len(z)), make([]float64, len(residual))
		if err := e.Apply(background, z2, r2, src, 3); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(z, z2) || !slices.Equal(residual, r2) {
			t.Error("other bits")
		}
	}
}

func TestEmbeddingFaults(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 74), 5, 2)
	k := kerneltest.Gaussian(1)
	if _, err := NewEmbedding(k, x.Slice(0, 0), 0, 0); !errors.As(err, new(*EmptyError)) {
		t.Error(err)
	}
	for _, tolerance := range []float64{-1, 1, math.NaN()} {
		if _, err := NewEmbedding(k, x, tolerance, 0); !errors.As(err, new(*ParameterError)) {
			t.Error(err)
		}
	}
	if _, err := NewEmbedding(must(kernel.NewLinear(1)), kernel.NewPoints[float64](3, 2, nil), 0, 0); !errors.As(err, new(*FactorizationError)) {
		t.Error(err)
	}
	e := must(NewEmbedding(k, x, 0, 0))
	var shape *kernel.ShapeError
	if err := e.Apply(background, make([]float64, 3), nil, kernel.FromRows(x), 1); !errors.As(err, &shape) {
		t.Error(err)
	}
	if err := e.Apply(background, make([]float64, 25), make([]float64, 4), kernel.FromRows(x), 1); !errors.As(err, &shape) {
		t.Error(err)
	}
	x.Row(3)[1] = math.Inf(1)
	var nan *kernel.NonFiniteError
	if err := e.Apply(background, make([]float64, 25), nil, kernel.FromRows(x), 1); !errors.As(err, &nan) || nan.Row != 3 {
		t.Error(err)
	}
}
