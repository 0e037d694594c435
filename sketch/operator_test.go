package sketch

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

// mapsOf returns a map of every kind.
func mapsOf(d, m int, seed uint64) []FeatureMap {
	g, even := kerneltest.Gaussian(2), m+m%2
	return []FeatureMap{
		must(NewFourier(g, d, even, seed)), must(NewOrthogonal(g, d, even, seed)), must(NewFastfood(g, d, even, seed)),
		must(NewFourierCosine(g, d, m, seed)), must(NewReLU(must(kernel.NewArcCosine(1)), d, m, seed)),
		must(NewGaussianSketch(must(kernel.NewLinear(1.5)), d, m, seed)),
		opaque{must(NewFourier(g, d, even, seed))},
	}
}

// opaque hides the methods of a map other than those of FeatureMap.
type opaque struct{ FeatureMap }

// explicit has products with features that are written out, as plain sums.
type explicit struct {
	phi     []float64
	n, m, c int
}

func (e explicit) forward(w []float64) []float64 {
	t := make([]float64, e.n*e.c)
	for i := range e.n {
		for j := range e.m {
			for o := range e.c {
				t[i*e.c+o] += e.phi[i*e.m+j] * w[j*e.c+o]
			}
		}
	}
	return t
}

func (e explicit) backward(r []float64) []float64 {
	g := make([]float64, e.m*e.c)
	for i := range e.n {
		for j := range e.m {
			for o := range e.c {
				g[j*e.c+o] += e.phi[i*e.m+j] * r[i*e.c+o]
			}
		}
	}
	return g
}

func normals(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = rng.NormFloat64()
	}
	return out
}

// TestFeatureOperator compares the products with those of explicit features, for all
// maps and kinds of rows, on random shapes. They are the same to the bit with any
// number of workers.
func TestFeatureOperator(t *testing.T) {
	const seed = 61
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	shapes := [][4]int{{1, 1, 1, 1}, {1, 3, 7, 2}, {5, 1, 2, 1}, {6, 2, 16, 1}, {97, 4, 33, 3}, {301, 3, 129, 1}, {40, 5, 2100, 2}, {0, 2, 4, 1}}
	for range 6 {
		shapes = append(shapes, [4]int{1 + rng.IntN(150), 1 + rng.IntN(20), 1 + rng.IntN(150), 1 + rng.IntN(3)})
	}
	for _, s := range shapes {
		n, d, c := s[0], s[1], s[3]
		x := kerneltest.Points(rng, n, d)
		small := kernel.NewPoints[float32](n, d, nil)
		for i := range n {
			for k, v := range x.Row(i) {
				small.Row(i)[k] = float32(v)
			}
		}
		for _, phi := range mapsOf(d, s[2], rng.Uint64()) {
			m := phi.Features()
			for kind, rows := range []kernel.Rows{x, small, kernel.Sparse(x)} {
				what := fmt.Sprintf("%s %T n=%d d=%d M=%d c=%d rows %d", phi.Spec().Family, phi, n, d, m, c, kind)
				e := explicit{make([]float64, n*m), n, m, c}
				if err := phi.Apply(e.phi, rows); err != nil {
					t.Fatal(what, err)
				}
				w, r, y := normals(rng, m*c), normals(rng, n*c), normals(rng, n*c)
				bend := func(row int, t []float64) {
					for i := range t {
						t[i] = (t[i] - y[row*c+i]) * float64(1+(row+i/c)%3)
					}
				}
				forward := e.forward(w)
				bent := slices.Clone(forward)
				bend(0, bent)
				want := [3][]float64{forward, e.backward(r), e.backward(bent)}
				var first [3][]float64
				for _, workers := range []int{1, 2, 5} {
					op := NewFeatureOperator(phi, workers)
					for repeat := range 2 { // in memory that was used
						got := [3][]float64{normals(rng, n*c), normals(rng, m*c), slices.Clone(w)}
						for _, err := range []error{op.Apply(got[0], rows, w), op.ApplyT(got[1], rows, r), op.Gram(got[2], rows, got[2], bend)} {
							if err != nil {
								t.Fatal(what, err)
							}
						}
						if first[0] == nil {
							first = got
						}
						for p, name := range []string{"Apply", "ApplyT", "Gram"} {
							if !slices.Equal(got[p], first[p]) {
								t.Fatalf("%s: %s with %d workers, time %d, differs from the first", what, name, workers, repeat)
							}
							scale := 1.0
							for _, v := range want[p] {
								scale = max(scale, math.Abs(v))
							}
							for i, v := range got[p] {
								if d := math.Abs(v - want[p][i]); !(d <= 1e-12*scale*math.Sqrt(float64(n+m))) {
									t.Fatalf("%s: %s: element %d is %g, want %g", what, name, i, v, want[p][i])
								}
							}
						}
					}
				}
			}
		}
	}
}

// Errors name the row of the batch, not of a tile, and shapes are refused.
func TestFeatureOperatorErrors(t *testing.T) {
	x := kerneltest.Points(rand.New(rand.NewPCG(1, 2)), 500, 2)
	x.Row(431)[1] = math.NaN()
	for _, phi := range mapsOf(2, 600, 1) {
		m := phi.Features()
		for _, workers := range []int{1, 3} {
			op := NewFeatureOperator(phi, workers)
			for _, rows := range []kernel.Rows{x, kernel.Sparse(x)} {
				var bad *kernel.NonFiniteError
				err := op.Gram(make([]float64, m), rows, make([]float64, m), func(int, []float64) {})
				if !errors.As(err, &bad) || bad.Row != 431 {
					t.Errorf("%s: %v, want row 431", phi.Spec().Family, err)
				}
			}
			fine := x.Slice(0, 9)
			var shape *kernel.ShapeError
			for i, err := range []error{
				op.Apply(make([]float64, 9), fine, make([]float64, m+1)),
				op.Apply(make([]float64, 8), fine, make([]float64, m)),
				op.Apply(nil, fine, nil),
				op.ApplyT(make([]float64, m), fine, make([]float64, 10)),
				op.ApplyT(make([]float64, m-1), fine, make([]float64, 9)),
				op.Gram(make([]float64, m), fine, make([]float64, 2*m), nil),
			} {
				if !errors.As(err, &shape) {
					t.Errorf("case %d: %v", i, err)
				}
			}
			var dim *kernel.DimensionError
			if err := op.Apply(make([]float64, 3), kerneltest.Points(rand.New(rand.NewPCG(1, 1)), 3, 4), make([]float64, m)); !errors.As(err, &dim) {
				t.Errorf("%v for rows of another dimension", err)
			}
		}
	}
}

// angry is a user's map that panics.
type angry struct {
	FeatureMap
	outburst func()
}

func (a angry) Apply(dst []float64, x kernel.Rows) error {
	a.outburst()
	return a.FeatureMap.Apply(dst, x)
}

// A panic of the map or of the caller's function reaches the caller. If either ends its
// goroutine, the product ends. The operator works after both.
func TestFeatureOperatorPassesPanicsOn(t *testing.T) {
	const n, m = 3000, 64
	rng := rand.New(rand.NewPCG(3, 4))
	x := kerneltest.Points(rng, n, 2)
	w, want := normals(rng, m), make([]float64, m)
	phi := must(NewFourier(kerneltest.Gaussian(1), 2, m, 1))
	quiet := func() {}
	for what, end := range map[string]func(){"panic": func() { panic("no") }, "exit": runtime.Goexit} {
		for _, workers := range []int{1, 2, 5} {
			outburst := quiet
			theirs := NewFeatureOperator(angry{phi, func() { outburst() }}, workers)
			for name, op := range map[string]*FeatureOperator{"f": NewFeatureOperator(phi, workers), "map": theirs} {
				what := fmt.Sprintf("%s of %s, %d workers", what, name, workers)
				if err := op.Gram(want, x, w, nil); err != nil {
					t.Fatal(what, err)
				}
				for _, bad := range []int{0, 1500, 2999} {
					f := func(row int, t []float64) {
						if row <= bad && bad < row+len(t) {
							end()
						}
					}
					if name == "map" {
						f, outburst = nil, end
					}
					dst, err, value := make([]float64, m), error(nil), any(nil)
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { value = recover() }()
						err = op.Gram(dst, x, w, f)
					}()
					<-done
					outburst = quiet
					switch {
					case what[0] == 'p' && value != "no":
						t.Errorf("%s: recovered %v", what, value)
					case what[0] == 'e' && workers > 1 && !errors.Is(err, kernel.ErrExited):
						t.Errorf("%s: %v, want ErrExited", what, err)
					}
					if slices.Max(dst) != 0 || slices.Min(dst) != 0 {
						t.Errorf("%s: dst has changed", what)
					}
					if err := op.Gram(dst, x, w, nil); err != nil || !slices.Equal(dst, want) {
						t.Errorf("%s: another product after it (%v)", what, err)
					}
				}
			}
		}
	}
}

// ApplyT may overwrite its argument, wherever they overlap.
func TestFeatureOperatorInPlace(t *testing.T) {
	const n, m = 700, 64
	rng := rand.New(rand.NewPCG(5, 6))
	x := kerneltest.Points(rng, n, 2)
	phi := must(NewFourier(kerneltest.Gaussian(1), 2, m, 1))
	for _, workers := range []int{1, 3} {
		for _, at := range []int{0, 100, n - m} {
			op := NewFeatureOperator(phi, workers)
			r, want := normals(rng, n), make([]float64, m)
			for _, err := range []error{op.ApplyT(want, x, r), op.ApplyT(r[at:at+m], x, r)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(r[at:at+m], want) {
				t.Errorf("%d workers: differs when it overwrites r from %d", workers, at)
			}
		}
	}
}

// In the steady state, with one worker, products in panels allocate almost nothing,
// also if the number of columns alternates.
func TestFeatureOperatorAllocations(t *testing.T) {
	x := kerneltest.Points(rand.New(rand.NewPCG(1, 2)), 300, 5)
	for _, phi := range mapsOf(5, 200, 1) {
		if _, ok := phi.(*dense); !ok || phi.Spec().Family == ReLU {
			continue
		}
		op := NewFeatureOperator(phi, 1)
		m := phi.Features()
		w, dst := normals(rand.New(rand.NewPCG(1, 2)), 3*m), make([]float64, 3*m)
		products := func() {
			for _, c := range []int{3, 1} {
				if err := op.Gram(dst[:m*c], x, w[:m*c], nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		products()
		if a := testing.AllocsPerRun(10, products); a > 4 {
			t.Errorf("%s: %g allocations in two products", phi.Spec().Family, a)
		}
	}
}

// BenchmarkFeatureOperator measures a step of stochastic gradient descent, Φᵀ(Φw). It
// compares with features that are written out and multiplied by gonum, with one worker
// each, and takes the best of all rounds.
func BenchmarkFeatureOperator(b *testing.B) {
	for _, s := range [][3]int{{64, 18, 1024}, {1000, 18, 4096}, {1000, 90, 4096}} {
		n, d, m := s[0], s[1], s[2]
		rng := rand.New(rand.NewPCG(1, 2))
		x := kerneltest.Points(rng, n, d)
		for _, phi := range []FeatureMap{must(NewFourier(kerneltest.Gaussian(4), d, m, 1)), must(NewReLU(must(kernel.NewArcCosine(1)), d, m, 1))} {
			b.Run(fmt.Sprintf("%s/n=%d/d=%d/M=%d", phi.Spec().Family, n, d, m), func(b *testing.B) {
				op := NewFeatureOperator(phi, 1)
				w, dst := normals(rng, m), make([]float64, m)
				data, t := make([]float64, n*m), make([]float64, n)
				rows := min(max(1<<15/m, 8), n)
				ours, before := time.Hour, time.Hour
				for b.Loop() {
					start := time.Now()
					if err := op.Gram(dst, x, w, nil); err != nil {
						b.Fatal(err)
					}
					ours = min(ours, time.Since(start))
					start = time.Now()
					for i := 0; i < n; i += rows {
						z := min(i+rows, n)
						if err := phi.Apply(data[:(z-i)*m], x.Slice(i, z)); err != nil {
							b.Fatal(err)
						}
						a := blas64.General{Rows: z - i, Cols: m, Stride: m, Data: data}
						u, v := blas64.Vector{N: z - i, Inc: 1, Data: t}, blas64.Vector{N: m, Inc: 1, Data: w}
						blas64.Gemv(blas.NoTrans, 1, a, v, 0, u)
						blas64.Gemv(blas.Trans, 1, a, u, 1, blas64.Vector{N: m, Inc: 1, Data: dst})
					}
					before = min(before, time.Since(start))
				}
				b.ReportMetric(float64(before)/float64(ours), "written/ours")
				b.ReportMetric(float64(ours.Nanoseconds())/float64(n*m), "ns/feature")
			})
		}
	}
}

// ApplyT sets dst = Φ(X)ᵀ·r, M×c, as Gram does after a device has failed. dst may overlap r.
func (o *FeatureOperator) ApplyT(dst []float64, x kernel.Rows, r []float64) error {
	c, err := o.columns("dst (M×c)", dst)
	if err != nil {
		return err
	}
	if err := o.check("r (n×c)", r, x.Len()*c); err != nil {
		return err
	}
	return o.run(&batch{x: x, c: c, t: r, dst: dst})
}
