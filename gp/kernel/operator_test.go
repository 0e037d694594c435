package kernel_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

var background = context.Background()

func normals(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = rng.NormFloat64()
	}
	return out
}

// naive holds K and multiplies by the definition.
type naive struct {
	n, m int
	k    []float64
}

func newNaive(k kernel.Kernel, x, c kernel.Rows) naive {
	a := naive{n: x.Len(), m: c.Len()}
	for i := range a.n {
		for j := range a.m {
			a.k = append(a.k, k.Eval(x, i, c, j))
		}
	}
	return a
}

func (a naive) apply(v []float64, c int) []float64 {
	out := make([]float64, a.n*c)
	for i := range a.n {
		for j := range a.m {
			for q := range c {
				out[i*c+q] += a.k[i*a.m+j] * v[j*c+q]
			}
		}
	}
	return out
}

func (a naive) applyT(u []float64, c int) []float64 {
	out := make([]float64, a.m*c)
	for i := range a.n {
		for j := range a.m {
			for q := range c {
				out[j*c+q] += a.k[i*a.m+j] * u[i*c+q]
			}
		}
	}
	return out
}

func requireClose(t rapid.TB, what string, got, want []float64, tol float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// Every product of the operator equals that of the matrix, for every shape, type of
// rows, source and number of right-hand sides.
func TestOperatorAgainstMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(0, 9).Draw(t, "d")
		n := rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(250, 260), rapid.IntRange(0, 1100)).Draw(t, "n")
		m := rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(0, 300)).Draw(t, "m")
		c := rapid.IntRange(1, 3).Draw(t, "c")
		gens := []kerneltest.Gen{gaussianRows(d), float32Rows(gaussianRows(d)), sparseRows(gaussianRows(d))}
		genX := rapid.SampledFrom(gens).Draw(t, "x rows")
		genC := rapid.SampledFrom(gens).Draw(t, "center rows")
		k := rapid.SampledFrom([]kernel.Kernel{
			must(kernel.NewGaussian(1.5)), must(kernel.NewMatern32(2)), must(kernel.NewPolynomial(2, 1, 3)),
			must(kernel.NewScaled(0.3, must(kernel.NewScaled(5, must(kernel.NewMatern52(2)))))),
		}).Draw(t, "kernel")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		x, centers := genX(rng, n), genC(rng, m)
		src := kernel.Source(kernel.FromRows(x))
		if rapid.Bool().Draw(t, "sequential") {
			src = kerneltest.Sequential(x)
		}
		op, err := kernel.NewOperator(k, src, centers, kernel.Options{
			Workers:   rapid.IntRange(0, 4).Draw(t, "workers"),
			Precision: rapid.SampledFrom([]kernel.Precision{kernel.Float64, kernel.Float32}).Draw(t, "precision"),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer op.Close()
		checkProducts(t, op, newNaive(k, x, centers), normals(rng, m*c), normals(rng, n*c), c)
	})
}

func checkProducts(t rapid.TB, op *kernel.Operator, k naive, v, u []float64, c int) {
	n, m := k.n, k.m
	if op.Rows() != n || op.Cols() != m {
		t.Fatalf("operator of %d×%d, want %d×%d", op.Rows(), op.Cols(), n, m)
	}
	largest := 1.0
	for _, v := range k.k {
		largest = max(largest, math.Abs(v))
	}
	tol := 1e-13 * largest * float64(n+m+1)
	if op.Precision() == kernel.Float32 {
		tol *= 1e7
	}
	kv := make([]float64, n*c)
	if err := op.Apply(background, kv, v); err != nil {
		t.Fatal(err)
	}
	requireClose(t, "Kv", kv, k.apply(v, c), tol)
	dst := make([]float64, m*c)
	if err := op.ApplyT(background, dst, u); err != nil {
		t.Fatal(err)
	}
	requireClose(t, "Kᵀu", dst, k.applyT(u, c), tol)

	tol *= largest * float64(m+1) * 10
	if err := op.Gram(background, dst, v, nil); err != nil {
		t.Fatal(err)
	}
	requireClose(t, "KᵀKv", dst, k.applyT(k.apply(v, c), c), tol)
	sum := k.apply(v, c)
	for i := range sum {
		sum[i] += u[i]
	}
	if err := op.Gram(background, dst, v, u); err != nil {
		t.Fatal(err)
	}
	requireClose(t, "Kᵀ(Kv + u)", dst, k.applyT(sum, c), tol)
	for i := range sum {
		sum[i] = math.Tanh(float64(i/c) * (sum[i] - u[i]))
	}
	err := op.GramFunc(background, v, v, func(row int, t []float64) {
		for i := range t {
			t[i] = math.Tanh(float64(row+i/c) * t[i])
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	requireClose(t, "Kᵀf(Kv) into v", v, k.applyT(sum, c), tol*float64(n+1))
}

// No bit depends on the number of workers or on the kind of source.
func TestOperatorIsDeterministic(t *testing.T) {
	const n, m, d, c = 2100, 150, 4, 2
	rng := rand.New(rand.NewPCG(5, 0))
	x := gaussianRows(d)(rng, n)
	centers := x.Slice(100, 100+m)
	v, u := normals(rng, m*c), normals(rng, n*c)
	var first [][]float64
	for _, workers := range []int{1, 2, 3, 8} {
		hidden := struct{ kernel.Source }{kernel.FromRows(x)} // not Resident
		for _, src := range []kernel.Source{kernel.FromRows(x), hidden, kerneltest.Sequential(x)} {
			op, err := kernel.NewOperator(must(kernel.NewMatern52(1)), src, centers, kernel.Options{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got := [][]float64{make([]float64, n*c), make([]float64, m*c), make([]float64, m*c)}
				if err := errors.Join(op.Apply(background, got[0], v), op.ApplyT(background, got[1], u), op.Gram(background, got[2], v, u)); err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = got
				}
				if !reflect.DeepEqual(got, first) {
					t.Fatalf("%d workers on %T: results differ", workers, src)
				}
			}
		}
	}
}

// No bit of any product depends on the number of workers, nor on products that failed
// before. The kernels are in panels of every kind and others, in both precisions, and
// some rows are far from the centres.
func TestOperatorIsDeterministicForAllKernels(t *testing.T) {
	const n, d = 1100, 4
	rng := kerneltest.Seeded(t, 77)
	x := kerneltest.Points(rng, n, d)
	for i := 0; i < n; i += 5 {
		x.Row(i)[0] *= 20
	}
	gaussian := must(kernel.NewGaussian(1))
	for name, k := range map[string]kernel.Kernel{
		"Gaussian": gaussian, "ARD": must(kernel.NewGaussian(1, 2, .5, 1)), "Matérn 5/2": must(kernel.NewMatern52(1)),
		"Matérn 1/2": must(kernel.NewMatern12(1)), "Laplace": must(kernel.NewLaplace(1)),
		"rational quadratic": must(kernel.NewRationalQuadratic(1.5, 1)), "arc-cosine": must(kernel.NewArcCosine(1)),
		"scaled": must(kernel.NewScaled(3, gaussian)), "linear": must(kernel.NewLinear(1)),
	} {
		for _, m := range []int{1, 37, 150} {
			for _, precision := range []kernel.Precision{kernel.Float64, kernel.Float32} {
				for _, c := range []int{1, 3} {
					if testing.Short() && (m != 37 || c != 3) {
						continue // slow under the race detector, which sees the same goroutines
					}
					v, u := normals(rng, m*c), normals(rng, n*c)
					var first [4][]float64
					for _, workers := range []int{1, 2, 5} {
						op, err := kernel.NewOperator(k, kernel.FromRows(x), x.Slice(0, m), kernel.Options{Workers: workers, Precision: precision})
						if err != nil {
							t.Fatal(name, err)
						}
						for range 2 {
							got := allProducts(t, op, v, u)
							if first[0] == nil {
								first = got
							}
							for i, product := range []string{"Apply", "ApplyT", "Gram", "GramFunc"} {
								if !slices.Equal(got[i], first[i]) {
									t.Errorf("%s, M = %d, c = %d, %v: %s with %d workers differs", name, m, c, precision, product, workers)
								}
							}
							failProducts(t, op, v)
						}
					}
				}
			}
		}
	}
}

// allProducts returns Kv, Kᵀu, Kᵀ(Kv + u), written over v, and Kᵀtanh(Kv).
func allProducts(t *testing.T, op *kernel.Operator, v, u []float64) [4][]float64 {
	t.Helper()
	out := [4][]float64{make([]float64, len(u)), make([]float64, len(v)), slices.Clone(v), make([]float64, len(v))}
	err := errors.Join(
		op.Apply(background, out[0], v), op.ApplyT(background, out[1], u), op.Gram(background, out[2], out[2], u),
		op.GramFunc(background, out[3], v, func(_ int, t []float64) {
			for i := range t {
				t[i] = math.Tanh(t[i])
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// failProducts makes products that fail in the middle.
func failProducts(t *testing.T, op *kernel.Operator, v []float64) {
	t.Helper()
	dst := make([]float64, len(v))
	if err := op.GramFunc(background, dst, v, func(row int, t []float64) {
		if row > 400 {
			t[0] = math.NaN()
		}
	}); err == nil {
		t.Error("NaN passed through a product")
	}
	defer func() {
		if recover() == nil {
			t.Error("a panic was lost")
		}
	}()
	_ = op.GramFunc(background, dst, v, func(row int, _ []float64) {
		if row > 600 {
			panic("no")
		}
	})
}

// The operator reads a user's kernel through pairs alone.
func TestOperatorOnStrings(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 0))
	x, centers := wordRows(rng, 700), wordRows(rng, 31)
	v := normals(rng, 31)
	op, err := kernel.NewOperator(spectrum, kerneltest.Sequential(x), centers, kernel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float64, 700)
	if err := op.Apply(background, got, v); err != nil {
		t.Fatal(err)
	}
	requireClose(t, "Kv", got, newNaive(spectrum, x, centers).apply(v, 1), 1e-11)
}

// newTestOperator has 600 rows and 10 centres.
func newTestOperator(t *testing.T, src func(kernel.Rows) kernel.Source) *kernel.Operator {
	t.Helper()
	x := gaussianRows(3)(rand.New(rand.NewPCG(1, 0)), 600)
	op, err := kernel.NewOperator(must(kernel.NewGaussian(1)), src(x), x.Slice(0, 10), kernel.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func resident(x kernel.Rows) kernel.Source { return kernel.FromRows(x) }

func TestOperatorShapes(t *testing.T) {
	op := newTestOperator(t, resident)
	vec := func(n int) []float64 { return make([]float64, n) }
	for name, err := range map[string]error{
		"v too long":        op.Apply(background, vec(600), vec(11)),
		"dst too short":     op.Apply(background, vec(599), vec(10)),
		"columns differ":    op.Apply(background, vec(1200), vec(10)),
		"empty v":           op.Apply(background, vec(600), nil),
		"u too short":       op.ApplyT(background, vec(10), vec(599)),
		"dst of ApplyT":     op.ApplyT(background, vec(20), vec(600)),
		"u of Gram":         op.Gram(background, vec(10), vec(10), vec(10)),
		"empty u of Gram":   op.Gram(background, vec(10), vec(10), vec(0)),
		"dst of Gram":       op.Gram(background, vec(9), vec(10), nil),
		"v of GramFunc":     op.GramFunc(background, vec(10), vec(12), func(int, []float64) {}),
		"columns of u Gram": op.Gram(background, vec(20), vec(20), vec(600)),
	} {
		var shape *kernel.ShapeError
		if !errors.As(err, &shape) {
			t.Errorf("%s: %v, want a ShapeError", name, err)
		}
	}
}

func TestOperatorRefusesNaN(t *testing.T) {
	op := newTestOperator(t, resident)
	v, u := make([]float64, 20), make([]float64, 1200)
	v[7] = math.Inf(1)
	requireNonFinite(t, op.Gram(background, make([]float64, 20), v, u), "v", 3, 1)
	v[7], u[1001] = 0, math.NaN()
	dst := []float64{19: 42}
	requireNonFinite(t, op.Gram(background, dst, v, u), "u", 500, 1)
	requireNonFinite(t, op.ApplyT(background, dst, u), "u", 500, 1)
	u[1001] = 0
	requireNonFinite(t, op.GramFunc(background, dst, v, func(row int, t []float64) {
		for i := range t {
			if row+i/2 >= 300 {
				t[i] = math.NaN()
			}
		}
	}), "f(Kv)", 300, 0)
	if dst[19] != 42 {
		t.Error("a failed product changed dst")
	}
	for i := range u {
		u[i] = math.MaxFloat64
	}
	requireNonFinite(t, op.ApplyT(background, dst, u), "the product", 0, 0)
}

func requireNonFinite(t *testing.T, err error, what string, row, col int) {
	t.Helper()
	var e *kernel.NonFiniteError
	if !errors.As(err, &e) || e.What != what || e.Row != row || e.Col != col {
		t.Errorf("error %v, want %s not finite at row %d, column %d", err, what, row, col)
	}
}

func TestOperatorRefusesBadRows(t *testing.T) {
	k := must(kernel.NewGaussian(1, 2, 3))
	good := gaussianRows(3)(rand.New(rand.NewPCG(1, 0)), 600)
	bad := good.Select(indices(600)).(*kernel.Points[float64])
	bad.Row(555)[2] = math.NaN()
	bad.Row(590)[0] = math.Inf(-1)

	_, err := kernel.NewOperator(k, kernel.FromRows(bad), good, kernel.Options{})
	requireNonFinite(t, err, "x", 555, 2)
	_, err = kernel.NewOperator(k, kernel.FromRows(good), bad, kernel.Options{})
	requireNonFinite(t, err, "centers", 555, 2)
	for _, workers := range []int{1, 2, 8} {
		op, err := kernel.NewOperator(k, kerneltest.Sequential(bad), good, kernel.Options{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		requireNonFinite(t, op.Apply(background, make([]float64, 600), make([]float64, 600)), "x", 555, 2)
	}

	narrow := gaussianRows(2)(rand.New(rand.NewPCG(1, 0)), 5)
	var dim *kernel.DimensionError
	if _, err := kernel.NewOperator(k, kernel.FromRows(good), narrow, kernel.Options{}); !errors.As(err, &dim) {
		t.Errorf("centres of another dimension than ARD: %v", err)
	}
	if _, err := kernel.NewOperator(must(kernel.NewGaussian(1)), kernel.FromRows(good), narrow, kernel.Options{}); !errors.As(err, &dim) {
		t.Errorf("centres of another dimension than x: %v", err)
	}
	var typ *kernel.TypeError
	if _, err := kernel.NewOperator(k, kernel.FromRows(good), kernel.List[string]{"a"}, kernel.Options{}); !errors.As(err, &typ) {
		t.Errorf("centres of another type: %v", err)
	}
	if _, err := kernel.NewOperator(spectrum, kernel.FromRows(good), kernel.List[string]{"a"}, kernel.Options{}); err == nil {
		t.Error("rows of another type than the centres were accepted")
	}
}

func indices(n int) []int {
	idx := make([]int, n)
	for i := range idx {
		idx[i] = i
	}
	return idx
}

func TestOperatorReportsSourceFaults(t *testing.T) {
	disk := errors.New("disk on fire")
	for name, c := range map[string]struct {
		edit func(*kerneltest.Source)
		want error
		row  int
	}{
		"read error":  {func(s *kerneltest.Source) { s.Err, s.ErrAt = disk, 300 }, disk, 288},
		"fewer rows":  {func(s *kerneltest.Source) { s.Announce = 200 }, kernel.ErrSource, 576},
		"more rows":   {func(s *kerneltest.Source) { s.Announce = -50 }, kernel.ErrSource, 550},
		"short block": {func(s *kerneltest.Source) { s.Short = true }, kernel.ErrSource, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var src *kerneltest.Source
			op := newTestOperator(t, func(x kernel.Rows) kernel.Source {
				src = kerneltest.Sequential(x)
				c.edit(src)
				return src
			})
			err := op.Apply(background, make([]float64, src.Len()), make([]float64, 10))
			var at *kernel.SourceError
			if !errors.Is(err, c.want) || !errors.As(err, &at) || at.Row != c.row {
				t.Errorf("error %v, want %v from row %d", err, c.want, c.row)
			}
			if src.Opened != 1 || src.Closed != 1 {
				t.Errorf("%d passes opened, %d closed", src.Opened, src.Closed)
			}
		})
	}
}

func TestOperatorCancel(t *testing.T) {
	for _, source := range []func(kernel.Rows) kernel.Source{
		resident, func(x kernel.Rows) kernel.Source { return kerneltest.Sequential(x) },
	} {
		op := newTestOperator(t, source)
		ctx, cancel := context.WithCancel(background)
		calls := atomic.Int32{}
		err := op.GramFunc(ctx, make([]float64, 10), make([]float64, 10), func(int, []float64) {
			calls.Add(1)
			cancel()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v after %d blocks, want context.Canceled", err, calls.Load())
		}
		if err := op.Gram(background, make([]float64, 10), make([]float64, 10), nil); err != nil {
			t.Errorf("the operator does not work after a cancelled call: %v", err)
		}
	}
}

func TestOperatorClose(t *testing.T) {
	op := newTestOperator(t, resident)
	for range 2 {
		if err := op.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := op.Apply(background, make([]float64, 600), make([]float64, 10)); !errors.Is(err, kernel.ErrClosed) {
		t.Errorf("error %v after Close, want ErrClosed", err)
	}
	if op.Rows() != 600 || op.Cols() != 10 {
		t.Error("a closed operator forgot its shape")
	}
}

func TestOperatorTakesTurns(t *testing.T) {
	op := newTestOperator(t, resident)
	rng := rand.New(rand.NewPCG(2, 0))
	var wg sync.WaitGroup
	for range 4 {
		v, want, got := normals(rng, 10), make([]float64, 600), make([]float64, 600)
		if err := op.Apply(background, want, v); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := op.Apply(background, got, v); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("a concurrent product differs (%v)", err)
			}
		})
	}
	wg.Wait()
}

// A square operator may overwrite its argument.
func TestApplyInPlace(t *testing.T) {
	x := gaussianRows(3)(rand.New(rand.NewPCG(1, 0)), 600)
	op, err := kernel.NewOperator(must(kernel.NewGaussian(1)), kernel.FromRows(x), x, kernel.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	v := normals(rand.New(rand.NewPCG(2, 0)), 600)
	want := make([]float64, 600)
	if err := errors.Join(op.Apply(background, want, v), op.Apply(background, v, v)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(v, want) {
		t.Error("K·v differs when it overwrites v")
	}
}

// Of two faults the first row's is reported, even when it is found last.
func TestFirstFaultIsReported(t *testing.T) {
	op := newTestOperator(t, resident)
	second := make(chan struct{})
	var once sync.Once
	err := op.GramFunc(background, make([]float64, 10), make([]float64, 10), func(row int, t []float64) {
		if row >= 256 {
			once.Do(func() { close(second) })
		} else {
			<-second
			time.Sleep(20 * time.Millisecond) // let the other worker fail
		}
		t[0] = math.NaN()
	})
	requireNonFinite(t, err, "f(Kv)", 0, 0)
}

// A panic of a caller's kernel reaches the caller's goroutine, and the operator still
// works.
func TestOperatorPassesPanicsOn(t *testing.T) {
	var angry atomic.Bool
	k := &kernel.Pairwise[string]{Name: "angry", Func: func(x, y string) float64 {
		if angry.Load() {
			panic("no")
		}
		return 1
	}}
	x := kernel.List[string](make([]string, 2000))
	op, err := kernel.NewOperator(k, kernel.FromRows(x), x[:3], kernel.Options{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	dst, u := make([]float64, 3), make([]float64, 2000)
	angry.Store(true)
	func() {
		defer func() {
			if r := recover(); r != "no" {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = op.ApplyT(background, dst, u)
	}()
	angry.Store(false)
	if err := op.ApplyT(background, dst, u); err != nil {
		t.Error(err)
	}
}

// A function that ends its goroutine, as t.Fatal does, ends the product, and the
// operator still works. With one worker the goroutine is the caller's.
func TestOperatorPassesExitsOn(t *testing.T) {
	x := gaussianRows(3)(rand.New(rand.NewPCG(1, 0)), 3000)
	for _, src := range []kernel.Source{kernel.FromRows(x), kerneltest.Sequential(x)} {
		for _, workers := range []int{1, 2, 5} {
			op, err := kernel.NewOperator(must(kernel.NewGaussian(1)), src, x.Slice(0, 10), kernel.Options{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			v := normals(rand.New(rand.NewPCG(2, 0)), 10)
			for _, bad := range []int{0, 1000, 2990} {
				var got error
				done := make(chan struct{})
				go func() {
					defer close(done)
					got = op.GramFunc(background, make([]float64, 10), v, func(row int, t []float64) {
						if row <= bad && bad < row+len(t) {
							runtime.Goexit()
						}
					})
				}()
				<-done
				if workers > 1 && !errors.Is(got, kernel.ErrExited) {
					t.Errorf("%d workers on %T, row %d: %v, want ErrExited", workers, src, bad, got)
				}
				if err := op.Gram(background, make([]float64, 10), v, nil); err != nil {
					t.Errorf("%d workers on %T: %v in the product after", workers, src, err)
				}
			}
		}
	}
}

// After the first use, a product on resident rows allocates a constant amount for any
// n.
func TestOperatorAllocations(t *testing.T) {
	for _, k := range []kernel.Kernel{must(kernel.NewGaussian(1)), must(kernel.NewHamming(1, 2, 3))} {
		for _, n := range []int{1000, 20000} {
			for workers, limit := range map[int]float64{1: 2, 2: 20} {
				rng := rand.New(rand.NewPCG(1, 0))
				x := float32Rows(gaussianRows(3))(rng, n)
				op, err := kernel.NewOperator(k, kernel.FromRows(x), x.Slice(0, 8), kernel.Options{Workers: workers})
				if err != nil {
					t.Fatal(err)
				}
				v := normals(rng, 8)
				got := testing.AllocsPerRun(3, func() { err = op.Gram(background, v, v, nil) })
				if err != nil {
					t.Fatal(err)
				}
				if got > limit {
					t.Errorf("%T, n = %d, %d workers: %v allocations a product, want at most %v", k, n, workers, got, limit)
				}
				for i := range v {
					v[i] = 1
				}
			}
		}
	}
}

// A fit sums gradients over all pairs, and they allocate nothing.
func TestGradientAllocations(t *testing.T) {
	x := gaussianRows(3)(rand.New(rand.NewPCG(1, 0)), 2)
	k := must(kernel.NewScaled(2, must(kernel.NewRationalQuadratic(1, 1, 2, 3))))
	grad := make([]float64, len(k.Parameters()))
	if got := testing.AllocsPerRun(10, func() {
		k.AddLogGrad(grad, 1, x, 0, x, 1)
		k.Eval(x, 0, x, 1)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
