//go:build cuda && cgo && linux

package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/gpu/cudatest"
)

func TestMain(m *testing.M) { cudatest.Main(m) }

// deviceKernels are the kernels that run on devices.
func deviceKernels(d int) map[string]kernel.Kernel {
	scales := make([]float64, d)
	for c := range scales {
		scales[c] = 1 + float64(c)/3
	}
	return map[string]kernel.Kernel{
		"gaussian":   must(kernel.NewGaussian(math.Sqrt(float64(d)))),
		"relevance":  must(kernel.NewScaled(0.3, must(kernel.NewGaussian(scales...)))),
		"laplace":    must(kernel.NewLaplace(float64(d))),
		"matern12":   must(kernel.NewMatern12(2)),
		"matern32":   must(kernel.NewMatern32(scales...)),
		"matern52":   must(kernel.NewScaled(3, must(kernel.NewMatern52(2)))),
		"linear":     must(kernel.NewLinear(2)),
		"polynomial": must(kernel.NewPolynomial(2, 1, 3)),
	}
}

func requireOnDevice(t *testing.T, op *kernel.Operator) {
	t.Helper()
	if !op.OnDevice() {
		t.Fatal("the operator is not on a device, so that this test says nothing")
	}
}

// Products of the device agree with the definition as those of the CPU do, for inputs
// near and far from their mean, in both precisions, and for degenerate shapes.
func TestDeviceAgainstMatrix(t *testing.T) {
	cudatest.Use(t, "cuda:0")
	for _, s := range []struct {
		n, m, d, c int
		far        float64 // of some rows
	}{{1, 1, 1, 1, 0}, {300, 1, 1, 2, 0}, {1, 130, 90, 1, 0}, {270, 141, 3, 1, 40}, {200, 65, 17, 4, 0}} {
		for name, k := range deviceKernels(s.d) {
			rng := rand.New(rand.NewPCG(7, uint64(s.n)))
			x, y := gaussianRows(s.d)(rng, s.n).(*kernel.Points[float64]), gaussianRows(s.d)(rng, s.m).(*kernel.Points[float64])
			for i := 3; i < s.n; i += 50 {
				x.Row(i)[0] += s.far
			}
			for i := 2; i < s.m; i += 2 { // equal to a row, and to each other
				copy(y.Row(i), x.Row(i/4%s.n))
			}
			for _, o := range []kernel.Options{
				{}, {Precision: kernel.Float32}, {Distances: kernel.DirectDistances}, {Distances: kernel.ExpandedDistances, Precision: kernel.Float32},
			} {
				if o.Distances == kernel.ExpandedDistances && s.far != 0 {
					continue // it has no bound there
				}
				op, err := kernel.NewOperator(k, kernel.FromRows(x), y, o)
				if err != nil {
					t.Fatal(err)
				}
				requireOnDevice(t, op)
				want := newNaive(k, x, y)
				tol := 1e-12
				if o.Precision == kernel.Float32 {
					tol = 3e-6
				}
				largest := 1.0
				for _, v := range want.k {
					largest = max(largest, math.Abs(v))
				}
				v, u := normals(rng, s.m*s.c), normals(rng, s.n*s.c)
				got, back := make([]float64, s.n*s.c), make([]float64, s.m*s.c)
				if err := errors.Join(op.Apply(background, got, v), op.ApplyT(background, back, u)); err != nil {
					t.Fatal(err)
				}
				requireClose(t, name+" Kv", got, want.apply(v, s.c), tol*largest*float64(s.m))
				requireClose(t, name+" Kᵀu", back, want.applyT(u, s.c), tol*largest*float64(s.n))
				op.Close()
			}
		}
	}
}

// The Operator keeps its contract on a device: Gram, GramFunc, several columns, and the
// tests of the CPU for wrong arguments.
func TestDeviceContract(t *testing.T) {
	cudatest.Use(t, "cuda:0")
	rng := rand.New(rand.NewPCG(3, 0))
	x := gaussianRows(5)(rng, 400)
	k := must(kernel.NewGaussian(2))
	for _, c := range []int{1, 3} {
		op, err := kernel.NewOperator(k, kernel.FromRows(x), x.Slice(0, 70), kernel.Options{})
		if err != nil {
			t.Fatal(err)
		}
		requireOnDevice(t, op)
		checkProducts(t, op, newNaive(k, x, x.Slice(0, 70)), normals(rng, 70*c), normals(rng, 400*c), c)
		op.Close()
	}
	op := newTestOperator(t, resident)
	requireOnDevice(t, op)
	v, u := make([]float64, 20), make([]float64, 1200)
	v[7] = math.Inf(1)
	requireNonFinite(t, op.Gram(background, make([]float64, 20), v, u), "v", 3, 1)
	v[7] = 0
	requireNonFinite(t, op.GramFunc(background, v, v, func(row int, t []float64) {
		for i := range t {
			if row+i/2 >= 300 {
				t[i] = math.NaN()
			}
		}
	}), "f(Kv)", 300, 0)
	ctx, cancel := context.WithCancel(background)
	if err := op.GramFunc(ctx, v, v, func(int, []float64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	op.Close()
	if err := op.Apply(background, make([]float64, 600), make([]float64, 10)); !errors.Is(err, kernel.ErrClosed) {
		t.Errorf("error %v after Close, want ErrClosed", err)
	}
}

// A matrix of low rank is factored where it is, and the columns that are left over count for
// nothing.
func TestDeviceFactorOfLowRank(t *testing.T) {
	const n, d = 600, 5
	cudatest.Use(t, "cuda:0")
	gpu.OnWarning(func(m string) { t.Error(m) })
	defer gpu.OnWarning(nil)
	x := gaussianRows(d)(rand.New(rand.NewPCG(4, 0)), n)
	k := must(kernel.NewLinear(1))
	want := value(kernel.Gramian(k, x))
	g := value(kernel.NewGram(k, x))
	perm := make([]int, n)
	l, f, rank, done := g.Factor(0, 1e-10, perm)
	if !done || rank != d {
		t.Fatalf("rank %d, done %t, want %d on the device", rank, done, d)
	}
	for i := range n {
		for j := range i + 1 {
			s := -want[perm[i]*n+perm[j]]
			for c := range min(j+1, d) {
				s += l[i*n+c] * l[j*n+c]
			}
			if math.Abs(s) > 1e-10 {
				t.Fatalf("LLᵀ is %g off at %d, %d", s, i, j)
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	g.Close()
}

// K(X, X) of the device is symmetric to the bit, with the diagonal of the kernel and equal
// rows for equal inputs. It is that of the CPU up to rounding.
func TestDeviceGramian(t *testing.T) {
	gramian := func(g []float64, err error) []float64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	rng := rand.New(rand.NewPCG(3, 0))
	x := gaussianRows(4)(rng, 150).(*kernel.Points[float64])
	copy(x.Row(140), x.Row(3))
	for name, k := range deviceKernels(4) {
		want := gramian(kernel.Gramian(k, x))
		cudatest.Use(t, "cuda:0")
		got := gramian(kernel.LargeGramian(k, x))
		largest := 1.0
		for _, v := range want {
			largest = max(largest, math.Abs(v))
		}
		requireClose(t, name, got, want, 1e-14*largest)
		if slices.Equal(got, want) && name != "linear" && name != "polynomial" { // these have no exponential
			t.Errorf("%s: the bits are those of the CPU, so that no device was used", name)
		}
		for i := range 150 {
			if got[i*150+i] != k.Diag(x, i) || !slices.Equal(got[3*150:3*150+3], got[140*150:140*150+3]) {
				t.Fatalf("%s: the diagonal or equal rows differ at %d", name, i)
			}
			for j := range i {
				if got[i*150+j] != got[j*150+i] {
					t.Fatalf("%s: elements %d, %d and %d, %d differ", name, i, j, j, i)
				}
			}
		}
		cudatest.Use(t, "cpu")
	}
	// If K does not fit, the device computes it a few rows at a time, to the same bits.
	many := gaussianRows(4)(rng, 700)
	for name, k := range deviceKernels(4) {
		cudatest.Use(t, "cuda:0")
		want := gramian(kernel.LargeGramian(k, many))
		t.Run(name+" in parts", func(t *testing.T) {
			gpu.OnWarning(func(m string) { t.Error(m) })
			defer gpu.OnWarning(nil)
			cudatest.Fault(t, "FAKE_CUDA_MEMORY", "3000000")
			if !slices.Equal(gramian(kernel.LargeGramian(k, many)), want) {
				t.Error("the bits of K depend on the memory")
			}
		})
	}
	// Without memory, the CPU computes it.
	cudatest.Fault(t, "FAKE_CUDA_FAIL_ALLOC", "3")
	gpu.OnWarning(func(string) {})
	defer gpu.OnWarning(nil)
	k := must(kernel.NewGaussian(1))
	cudatest.Use(t, "cuda:0")
	if !slices.Equal(gramian(kernel.LargeGramian(k, x)), gramian(kernel.Gramian(k, x))) {
		t.Error("without memory the bits are not those of the CPU")
	}
}

func value[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// K is factored where it is. Only L is copied from the device, and nothing of its size to it.
func TestDeviceFactorsInPlace(t *testing.T) {
	const n, shift = 128, 0.5
	rng := rand.New(rand.NewPCG(3, 0))
	x := gaussianRows(4)(rng, n)
	k := must(kernel.NewGaussian(1))
	want := value(kernel.Gramian(k, x))
	cudatest.Fault(t, "FAKE_CUDA_BYTES", "")
	gpu.OnWarning(func(m string) { t.Error(m) })
	defer gpu.OnWarning(nil)
	for _, pivot := range []bool{false, true} {
		cudatest.Use(t, "cuda:0")
		left := cudatest.Left(t, 0)
		g := value(kernel.NewGram(k, x))
		perm, order := make([]int, n), make([]int, n)
		for i := range order {
			order[i] = i
		}
		if pivot {
			order = perm
		} else {
			perm = nil
		}
		os.Setenv("FAKE_CUDA_BYTES", fmt.Sprint(8*n*n*5/4))
		l, f, rank, done := g.Factor(shift, 1e-10, perm)
		if !done || rank != n {
			t.Fatalf("pivot %t: rank %d, done %t, want %d on the device", pivot, rank, done, n)
		}
		for i := range n {
			for j := range i + 1 {
				s := -want[order[i]*n+order[j]]
				if i == j {
					s -= shift
				}
				for c := range j + 1 {
					s += l[i*n+c] * l[j*n+c]
				}
				if math.Abs(s) > 1e-12 {
					t.Fatalf("pivot %t: LLᵀ is %g off at %d, %d", pivot, s, i, j)
				}
			}
		}
		os.Setenv("FAKE_CUDA_BYTES", fmt.Sprint(8*n*n*5/4))
		r, err := f.Gram(make([]float64, n*n), make([]float64, n), 1)
		if err != nil {
			t.Fatal(err)
		}
		os.Setenv("FAKE_CUDA_BYTES", "")
		if err := errors.Join(r.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		g.Close()
		left(fmt.Sprintf("pivot %t", pivot))
		// K is gone, so that the CPU computes it.
		if _, _, _, done := g.Factor(shift, 0, nil); done || !slices.Equal(value(g.Matrix()), want) {
			t.Errorf("pivot %t: K is still on the device", pivot)
		}
	}
}

// Without a factor on the device, the matrix is that of the CPU, and nothing is left there.
func TestDeviceFactorFails(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	x := gaussianRows(4)(rng, 150)
	gauss := must(kernel.NewGaussian(1))
	huge := must(kernel.NewPolynomial(64, 1e10, 1)) // overflows
	cudatest.Fault(t, "FAKE_CUDA_FAIL_ALLOC", "")
	var warnings []string
	defer gpu.OnWarning(nil)
	for name, c := range map[string]struct {
		k     kernel.Kernel
		fault string
		done  bool // there is no factor, and no reason for a warning
		err   bool
	}{
		"no memory":    {k: gauss, fault: "1"},
		"not definite": {k: gauss, done: true},
		"not finite":   {k: huge, err: true},
	} {
		warnings = nil
		gpu.OnWarning(func(m string) { warnings = append(warnings, m) })
		cudatest.Use(t, "cuda:0")
		left := cudatest.Left(t, 0)
		g := value(kernel.NewGram(c.k, x))
		os.Setenv("FAKE_CUDA_FAIL_ALLOC", c.fault)
		shift := 0.0
		if c.done {
			shift = -2
		}
		_, f, rank, done := g.Factor(shift, 0, nil)
		if f != nil || done != c.done && !c.err {
			t.Errorf("%s: factor %v of rank %d, done %t, want done %t", name, f, rank, done, c.done)
		}
		if (len(warnings) > 0) != (c.fault != "") {
			t.Errorf("%s: warnings %q", name, warnings)
		}
		os.Setenv("FAKE_CUDA_FAIL_ALLOC", "")
		got, err := g.Matrix()
		var nonFinite *kernel.NonFiniteError
		if c.err != errors.As(err, &nonFinite) {
			t.Errorf("%s: error %v", name, err)
		}
		if !c.err && !slices.Equal(got, value(kernel.Gramian(c.k, x))) {
			t.Errorf("%s: the matrix is not that of the CPU", name)
		}
		g.Close()
		left(name)
	}
}

// These stay on the CPU.
func TestDeviceLeavesToCPU(t *testing.T) {
	cudatest.Use(t, "cuda:0")
	rng := rand.New(rand.NewPCG(3, 0))
	x := gaussianRows(3)(rng, 300)
	gauss := must(kernel.NewGaussian(2))
	for name, c := range map[string]struct {
		k   kernel.Kernel
		src kernel.Source
	}{
		"streamed":             {gauss, kerneltest.Sequential(x)},
		"sparse":               {gauss, kernel.FromRows(sparseRows(gaussianRows(3))(rng, 300))},
		"rational quadratic":   {must(kernel.NewRationalQuadratic(2, 1)), kernel.FromRows(x)},
		"arc-cosine":           {must(kernel.NewArcCosine(1)), kernel.FromRows(x)},
		"differing categories": {must(kernel.NewHamming(1)), kernel.FromRows(x)},
	} {
		op, err := kernel.NewOperator(c.k, c.src, x.Slice(0, 9), kernel.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if op.OnDevice() {
			t.Errorf("%s: the operator is on a device", name)
		}
		if err := op.Apply(background, make([]float64, 300), make([]float64, 9)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		op.Close()
	}
}

// A device that is lost in any call of a product leaves the right result and one warning.
// The function of the caller still runs once for every row.
func TestDeviceLostInProduct(t *testing.T) {
	cudatest.Fault(t, "FAKE_CUDA_LOSE", "0")
	rng := rand.New(rand.NewPCG(3, 0))
	x := gaussianRows(5)(rng, 300)
	k := must(kernel.NewGaussian(2))
	want, got := make([]float64, 40), make([]float64, 40)
	v := normals(rng, 40)
	rows := 0
	count := func(_ int, t []float64) {
		rows += len(t)
		for i := range t {
			t[i] -= 1
		}
	}
	op, err := kernel.NewOperator(k, kernel.FromRows(x), x.Slice(0, 40), kernel.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := op.GramFunc(background, want, v, count); err != nil {
		t.Fatal(err)
	}
	plain, again := make([]float64, 40), make([]float64, 40)
	if err := op.Gram(background, plain, v, nil); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	gpu.OnWarning(func(m string) { warnings = append(warnings, m) })
	defer gpu.OnWarning(nil)
	cudatest.Use(t, "cuda:3")
	lost, err := kernel.NewOperator(k, kernel.FromRows(x), x.Slice(0, 40), kernel.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	requireOnDevice(t, lost)
	os.Setenv("FAKE_CUDA_LOSE", "4") // in KᵀKv, which the CPU then makes
	if err := lost.Gram(background, again, v, nil); err != nil || !slices.Equal(again, plain) || lost.OnDevice() {
		t.Errorf("KᵀKv differs from that of the CPU after the loss (%v), or is still on the device: %t", err, lost.OnDevice())
	}
	for launch, device := range map[string]string{"2": "cuda:1", "4": "cuda:2"} { // in Kv, in Kᵀu
		cudatest.Use(t, device)
		op, err := kernel.NewOperator(k, kernel.FromRows(x), x.Slice(0, 40), kernel.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		requireOnDevice(t, op)
		os.Setenv("FAKE_CUDA_LOSE", launch)
		rows = 0
		if err := op.GramFunc(background, got, v, count); err != nil {
			t.Fatal(err)
		}
		if rows != 300 || op.OnDevice() {
			t.Errorf("the function had %d rows of 300, and the operator is on the device: %t", rows, op.OnDevice())
		}
		requireClose(t, "after the loss", got, want, 1e-11)
		if err := op.GramFunc(background, got, v, count); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Error("the next product differs from that of the CPU")
		}
		op.Close()
	}
	if len(warnings) != 1 || !strings.HasSuffix(warnings[0], "; continuing on the CPU") {
		t.Errorf("warnings %q, want one", warnings)
	}
}
