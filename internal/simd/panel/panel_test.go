package panel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/internal/simd"
)

func normals[T Float](rng *rand.Rand, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(rng.NormFloat64())
	}
	return x
}

// dense returns n×d random rows, with a gap after each row.
func dense[S Float](rng *rand.Rand, n, d int) Rows[S] {
	return Rows[S]{Data: normals[S](rng, n*d), N: n, D: d}
}

// example is a function with its formula.
type example struct {
	name string
	f    Function
	want func(x, y []float64, j int) float64
}

func sum(x, y []float64, term func(c int, x, y float64) float64) float64 {
	s := 0.0
	for c := range x {
		s += term(c, x[c], y[c])
	}
	return s
}

func square(_ int, x, y float64) float64   { return (x - y) * (x - y) }
func absolute(_ int, x, y float64) float64 { return math.Abs(x - y) }
func product(_ int, x, y float64) float64  { return x * y }

// examples returns all kernels for d coordinates and m columns.
func examples(rng *rand.Rand, d, m int) []example {
	ard := make([]float64, d)
	for c := range ard {
		ard[c] = (0.5 + rng.Float64()) / float64(d)
	}
	w := 1 / float64(max(1, d))
	weighted := func(term func(c int, x, y float64) float64) func(x, y []float64, _ int) float64 {
		return func(x, y []float64, _ int) float64 {
			return sum(x, y, func(c int, a, b float64) float64 { return ard[c] * term(c, a, b) })
		}
	}
	phase := make([]float64, m)
	for j := range phase {
		phase[j] = rng.Float64()
	}
	matern := func(p float64, f func(a float64) float64) func(x, y []float64, _ int) float64 {
		return func(x, y []float64, _ int) float64 { return f(math.Sqrt(p * w * sum(x, y, square))) }
	}
	return []example{
		{"gaussian", Function{Func: simd.ExpScaled, Statistic: simd.Squared, P0: -w / 2}, func(x, y []float64, _ int) float64 {
			return math.Exp(-w / 2 * sum(x, y, square))
		}},
		{"gaussian expanded", Function{Func: simd.ExpScaled, Statistic: simd.Squared, P0: -w / 2, Expand: true}, func(x, y []float64, _ int) float64 {
			return math.Exp(-w / 2 * sum(x, y, square))
		}},
		{"gaussian ARD", Function{Func: simd.ExpScaled, Statistic: simd.Squared, P0: -0.5, Weights: ard}, func(x, y []float64, j int) float64 {
			return math.Exp(-weighted(square)(x, y, j) / 2)
		}},
		{"gaussian ARD expanded", Function{Func: simd.ExpScaled, Statistic: simd.Squared, P0: -0.5, Weights: ard, Expand: true}, func(x, y []float64, j int) float64 {
			return math.Exp(-weighted(square)(x, y, j) / 2)
		}},
		{"matern32 expanded", Function{Func: simd.Matern32, Statistic: simd.Squared, P0: 3 * w, Expand: true}, matern(3, func(a float64) float64 { return (1 + a) * math.Exp(-a) })},
		{"matern52 expanded", Function{Func: simd.Matern52, Statistic: simd.Squared, P0: 5 * w, Expand: true, Reach: 1e9}, matern(5, func(a float64) float64 { return (1 + a + a*a/3) * math.Exp(-a) })},
		{"rational quadratic ARD expanded", Function{Func: simd.RationalQuadratic, Statistic: simd.Squared, P0: 1. / 3, P1: -1.5, Weights: ard, Expand: true}, func(x, y []float64, j int) float64 {
			return math.Pow(1+weighted(square)(x, y, j)/3, -1.5)
		}},
		{"gaussian of some expanded", Function{Func: simd.ExpScaled, Statistic: simd.Squared, P0: -w / 2, Expand: true, Reach: 2.2 * float64(d)}, func(x, y []float64, _ int) float64 {
			return math.Exp(-w / 2 * sum(x, y, square))
		}},
		{"laplace", Function{Func: simd.ExpScaled, Statistic: simd.Manhattan, P0: -w}, func(x, y []float64, _ int) float64 {
			return math.Exp(-w * sum(x, y, absolute))
		}},
		{"laplace ARD", Function{Func: simd.ExpScaled, Statistic: simd.Manhattan, P0: -1, Weights: ard}, func(x, y []float64, j int) float64 {
			return math.Exp(-weighted(absolute)(x, y, j))
		}},
		{"matern12", Function{Func: simd.Matern12, Statistic: simd.Squared, P0: w}, matern(1, func(a float64) float64 { return math.Exp(-a) })},
		{"matern32", Function{Func: simd.Matern32, Statistic: simd.Squared, P0: 3 * w}, matern(3, func(a float64) float64 { return (1 + a) * math.Exp(-a) })},
		{"matern52", Function{Func: simd.Matern52, Statistic: simd.Squared, P0: 5 * w}, matern(5, func(a float64) float64 { return (1 + a + a*a/3) * math.Exp(-a) })},
		{"rational quadratic", Function{Func: simd.RationalQuadratic, Statistic: simd.Squared, P0: w / 3, P1: -1.5}, func(x, y []float64, _ int) float64 {
			return math.Pow(1+w/3*sum(x, y, square), -1.5)
		}},
		{"three times laplace", Function{Func: simd.ExpScaled, Statistic: simd.Manhattan, P0: -w, Factor: 3}, func(x, y []float64, _ int) float64 {
			return 3 * math.Exp(-w*sum(x, y, absolute))
		}},
		{"linear ARD", Function{Func: simd.Affine, Statistic: simd.Dot, P0: 1, Weights: ard}, weighted(product)},
		{"polynomial", Function{Func: simd.Power, Statistic: simd.Dot, P0: w, P1: 1, Power: 3}, func(x, y []float64, _ int) float64 {
			return math.Pow(w*sum(x, y, product)+1, 3)
		}},
		{"arc-cosine", Function{Func: simd.ArcCosine, Statistic: simd.Dot, Norms: true}, func(x, y []float64, _ int) float64 {
			n := math.Sqrt(sum(x, x, product) * sum(y, y, product))
			if n == 0 {
				return 0
			}
			cos := max(-1, min(1, sum(x, y, product)/n))
			theta := math.Acos(cos)
			return n * (math.Sin(theta) + (math.Pi-theta)*cos) / math.Pi
		}},
		{"mismatches", Function{Func: simd.Affine, Statistic: simd.Mismatches, P0: -w, P1: 1}, func(x, y []float64, _ int) float64 {
			return 1 - w*sum(x, y, func(_ int, x, y float64) float64 {
				if x != y {
					return 1
				}
				return 0
			})
		}},
		{"random features", Function{Func: simd.CosTurns, Statistic: simd.Dot, Phase: phase}, func(x, y []float64, j int) float64 {
			return math.Cos(2 * math.Pi * (sum(x, y, product) + phase[j]))
		}},
	}
}

func wideRow[S Float](r Rows[S], i int) []float64 {
	out := make([]float64, r.D)
	for c, v := range r.row(i) {
		out[c] = float64(v)
	}
	return out
}

func TestProducts(t *testing.T) {
	t.Run("float64 of float64", func(t *testing.T) { testProducts[float64, float64](t, 2e-14) })
	t.Run("float64 of float32", func(t *testing.T) { testProducts[float64, float32](t, 2e-14) })
	t.Run("float32 of float64", func(t *testing.T) { testProducts[float32, float64](t, 4e-6) })
	t.Run("float32 of float32", func(t *testing.T) { testProducts[float32, float32](t, 4e-6) })
}

func testProducts[T, S Float](t *testing.T, tol float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range [][4]int{{1, 1, 1, 1}, {5, 0, 3, 1}, {0, 5, 3, 1}, {7, 9, 0, 1}, {13, 37, 2, 2}, {30, 500, 5, 1}, {301, 70, 18, 3}, {40, 300, 90, 1}} {
		if testing.Short() && s[2] > 18 {
			continue // with 90 coordinates the float64 columns take two chunks, which the usual tests cover
		}
		checkShape[T, S](t, rng, s, tol)
	}
}

// checkShape compares all examples of n, M, d and a number of columns.
func checkShape[T, S Float](t *testing.T, rng *rand.Rand, s [4]int, tol float64) {
	in := newInputs[S](rng, s)
	for _, e := range examples(rng, s[2], s[1]) {
		checkExample[T](t, e, in, tol)
	}
}

// inputs are rows of both sides, and the factors of K from the right and from the left.
type inputs[S Float] struct {
	x, y Rows[S]
	v, u []float64
	cols int
}

func newInputs[S Float](rng *rand.Rand, s [4]int) inputs[S] {
	n, m, d, cols := s[0], s[1], s[2], s[3]
	in := inputs[S]{x: dense[S](rng, n, d), y: dense[S](rng, m, d), cols: cols}
	if n > 3 && m > 3 && d > 0 {
		copy(in.x.row(1), in.y.row(2)) // equal inputs
		clear(in.x.row(2))
	}
	in.v, in.u = normals[float64](rng, m*cols), normals[float64](rng, n*cols)
	return in
}

func checkExample[T, S Float](t *testing.T, e example, in inputs[S], tol float64) {
	t.Helper()
	n, m, d := in.x.N, in.y.N, in.x.D
	name := fmt.Sprint(e.name, " ", [4]int{n, m, d, in.cols})
	k := make([]float64, n*m)
	scale := 1.0
	y := make([][]float64, m)
	for j := range y {
		y[j] = wideRow(in.y, j)
	}
	for i := range n {
		x := wideRow(in.x, i)
		for j := range m {
			k[i*m+j] = e.want(x, y[j], j)
			scale = max(scale, math.Abs(k[i*m+j]))
		}
	}
	if e.f.Func == simd.CosTurns {
		scale *= 2 * math.Pi * float64(d+1) // of the rounding of the argument
	}
	c := Pack[T](e.f, in.y)
	checkBlock(t, name, c, in.x, k, in.v, in.cols, tol*scale)
	checkGram(t, name, c, in.x, k, in.v, in.u, in.cols, tol*scale)
}

// dirtyBlock returns a block that was used for another purpose.
func dirtyBlock[T Float]() *Block[T] {
	rng := rand.New(rand.NewPCG(9, 9))
	x := dense[T](rng, 20, 11)
	b := NewBlock(Pack[T](Function{Statistic: simd.Squared, Func: simd.ExpScaled, P0: -1, Expand: true}, x), 20)
	Evaluate(b, x, 0, 20, nil, nil)
	return b
}

// checkBlock compares a block of some rows in the middle.
func checkBlock[T, S Float](t *testing.T, name string, c *Columns[T], x Rows[S], k, v []float64, cols int, tol float64) {
	t.Helper()
	m := c.m
	b := dirtyBlock[T]()
	b.Reset(c, 20)
	var vs Vectors[T]
	vs.Set(c, v, cols)
	i0 := min(x.N, 2)
	i1 := min(x.N, i0+19)
	rows := i1 - i0
	one, two := make([]float64, rows*cols), make([]float64, rows*cols)
	Evaluate(b, x, i0, i1, &vs, one)
	b.Multiply(&vs, two)
	got := make([]float64, rows*(m+2))
	b.Copy(got, m+2)
	var s Sum[T]
	s.Reset(c, cols)
	b.AddTransposed(&s, two)
	w := make([]float64, m*cols)
	s.AddTo(w)
	for i := range rows {
		for j := range m {
			if g, want := got[i*(m+2)+j], k[(i0+i)*m+j]; !(math.Abs(g-want) <= tol) {
				t.Fatalf("%s: K(%d, %d) = %g, want %g ± %g", name, i0+i, j, g, want, tol)
			}
		}
		for q := range cols {
			want, size := 0.0, 1.0
			for j := range m {
				want += got[i*(m+2)+j] * v[j*cols+q]
				size += math.Abs(got[i*(m+2)+j] * v[j*cols+q])
			}
			for _, g := range []float64{one[i*cols+q], two[i*cols+q]} {
				if !(math.Abs(g-want) <= tol*size) {
					t.Fatalf("%s: (Kv)(%d, %d) = %g, want %g", name, i, q, g, want)
				}
			}
		}
	}
	for j := range m {
		for q := range cols {
			want, size := 0.0, 1.0
			for i := range rows {
				want += got[i*(m+2)+j] * two[i*cols+q]
				size += math.Abs(got[i*(m+2)+j] * two[i*cols+q])
			}
			if g := w[j*cols+q]; !(math.Abs(g-want) <= tol*size) {
				t.Fatalf("%s: (Kᵀt)(%d, %d) = %g, want %g", name, j, q, g, want)
			}
		}
	}
}

// gram sets w = Kᵀ(Kv + u), block by block.
func gram[T, S Float](b *Block[T], v *Vectors[T], sum *Sum[T], t, w []float64, x Rows[S], u []float64) {
	sum.Reset(b.c, v.n)
	for i := 0; i < x.N; i += b.max {
		end := min(i+b.max, x.N)
		t := t[:(end-i)*v.n]
		Evaluate(b, x, i, end, v, t)
		for k := range t {
			t[k] += u[i*v.n+k]
		}
		b.AddTransposed(sum, t)
	}
	clear(w)
	sum.AddTo(w)
}

// checkGram compares w = Kᵀ(Kv + u).
func checkGram[T, S Float](t *testing.T, name string, c *Columns[T], x Rows[S], k, v, u []float64, cols int, tol float64) {
	t.Helper()
	m, n := c.m, x.N
	w := make([]float64, m*cols)
	b := NewBlock(c, c.Height())
	var vs Vectors[T]
	vs.Set(c, v, cols)
	gram(b, &vs, new(Sum[T]), make([]float64, b.max*cols), w, x, u)
	for q := range cols {
		want, size := make([]float64, m), make([]float64, m)
		for i := range n {
			s, abs := u[i*cols+q], math.Abs(u[i*cols+q])
			for j := range m {
				s += k[i*m+j] * v[j*cols+q]
				abs += math.Abs(k[i*m+j] * v[j*cols+q])
			}
			for j := range m {
				want[j] += k[i*m+j] * s
				size[j] += (math.Abs(k[i*m+j]) + tol) * (abs + float64(m)*tol)
			}
		}
		for j := range m {
			if d := math.Abs(w[j*cols+q] - want[j]); !(d <= 4*tol*(size[j]+float64(n))) {
				t.Fatalf("%s: w(%d, %d) = %g, want %g", name, j, q, w[j*cols+q], want[j])
			}
		}
	}
}

// TestEqualInputs checks that distances of equal inputs are 0 exactly, at any distance from
// the origin and for any weights.
func TestEqualInputs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	x := dense[float64](rng, 40, 7)
	for i := range x.Data {
		x.Data[i] = 1e6 + 1e-3*x.Data[i]
	}
	for _, e := range examples(rng, 7, 40) {
		if e.f.Statistic == simd.Dot || e.f.Expand || e.f.Factor != 0 {
			continue
		}
		for _, k := range [][]float64{diagonal[float32](e.f, x), diagonal[float64](e.f, x)} {
			for i, v := range k {
				if v != 1 {
					t.Errorf("%s: k(x_%d, x_%[2]d) = %g", e.name, i, v)
				}
			}
		}
	}
}

func diagonal[T Float](f Function, x Rows[float64]) []float64 {
	c := Pack[T](f, x)
	b := NewBlock(c, x.N)
	Evaluate(b, x, 0, x.N, nil, nil)
	k := make([]float64, x.N*x.N)
	b.Copy(k, x.N)
	for i := range x.N {
		k[i] = k[i*x.N+i]
	}
	return k[:x.N]
}

func TestNoAllocation(t *testing.T) {
	testNoAllocation[float32](t)
	testNoAllocation[float64](t)
}

func testNoAllocation[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	x, y := dense[float64](rng, 600, 5), dense[float64](rng, 50, 5)
	v, u, w := normals[float64](rng, 50), make([]float64, 600), make([]float64, 50)
	for _, e := range examples(rng, 5, 50) {
		c := Pack[T](e.f, y)
		b, vs, sum, t1 := NewBlock(c, c.Height()), new(Vectors[T]), new(Sum[T]), make([]float64, c.Height())
		if n := testing.AllocsPerRun(3, func() {
			vs.Set(c, v, 1)
			gram(b, vs, sum, t1, w, x, u)
		}); n > 0 {
			t.Errorf("%s: %v allocations", e.name, n)
		}
	}
}

// Multiply sets t = K·v for the block that was evaluated last, apart from the evaluation.
func (b *Block[T]) Multiply(v *Vectors[T], t []float64) {
	clear(t[:b.rows*v.n])
	for p := 0; p*simd.Rows < b.rows; p++ {
		for s0 := 0; s0 < b.c.tiles; s0 += subchunk {
			b.multiply(p, s0, min(subchunk, b.c.tiles-s0), 0, v, t)
		}
	}
	b.scaleRows(t, v.n)
}
