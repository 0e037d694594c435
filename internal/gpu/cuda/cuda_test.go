//go:build cuda && cgo && linux

package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/gpu/cuda"
	"github.com/bkbtuner/bkb/internal/gpu/cudatest"
)

func TestMain(m *testing.M) {
	if choice := os.Getenv("CUDA_TEST_CHILD"); choice != "" { // see child
		fmt.Println(gpu.Use(choice))
		if choice == "auto" { // opens the devices for the first large product
			gpu.OnWarning(func(m string) { fmt.Println("warning:", m) })
			_, _, done := gpu.NewFactor(make([]float64, 1), 1<<20, 0, nil)
			fmt.Println("on a device:", done)
		}
		os.Exit(0)
	}
	cudatest.Main(m)
}

// points returns n rows of d coordinates, of which some are equal.
func points(rng *rand.Rand, n, d int, scale float64) gpu.Rows {
	x := make([]float64, n*d)
	for i := range x {
		x[i] = scale * rng.NormFloat64()
	}
	for i := 5; i < n; i += 7 {
		copy(x[i*d:][:d], x[(i-5)*d:][:d])
	}
	return gpu.Rows{N: n, D: d, Row: func(dst []float64, i int) { copy(dst, x[i*d:][:d]) }}
}

// value is k(x, y) by its definition, and size what its rounding is relative to. That is k
// times 1 + s for functions that fall, and the value for the sum of |x·y| for powers.
func value(f gpu.Function, x, y []float64, phase float64) (k, size float64) {
	s, terms := 0.0, 0.0
	for c := range x {
		switch f.Statistic {
		case gpu.Squared:
			s += (x[c] - y[c]) * (x[c] - y[c])
		case gpu.Manhattan:
			s += math.Abs(x[c] - y[c])
		default:
			s += x[c] * y[c]
			terms += math.Abs(x[c] * y[c])
		}
	}
	a := math.Sqrt(s)
	k = f.Factor * [...]func() float64{
		gpu.Decay:    func() float64 { return math.Exp2(-s) },
		gpu.Matern12: func() float64 { return math.Exp(-a) },
		gpu.Matern32: func() float64 { return (1 + a) * math.Exp(-a) },
		gpu.Matern52: func() float64 { return (1 + a + s/3) * math.Exp(-a) },
		gpu.Power:    func() float64 { return math.Pow(f.P0*s+f.P1, float64(f.Exponent)) },
		gpu.Cosine:   func() float64 { return math.Cos(2 * math.Pi * (s + phase)) },
	}[f.Profile]()
	switch f.Profile {
	case gpu.Power:
		return k, f.Factor * float64(f.Exponent) * math.Pow(f.P0*terms+f.P1, float64(f.Exponent))
	case gpu.Cosine:
		return k, f.Factor * (1 + 2*math.Pi*(terms+phase))
	}
	return k, k * (1 + s)
}

// matrix returns K by its definition, and the sizes of rounding.
func matrix(p gpu.Problem) (k, sizes []float64) {
	k, sizes = make([]float64, p.X.N*p.Y.N), make([]float64, p.X.N*p.Y.N)
	x, y := make([]float64, p.X.D), make([]float64, p.X.D)
	for i := range p.X.N {
		for j := range p.Y.N {
			p.X.Row(x, i)
			p.Y.Row(y, j)
			phase := 0.0
			if p.Y.Phase != nil {
				phase = p.Y.Phase[j]
			}
			k[i*p.Y.N+j], sizes[i*p.Y.N+j] = value(p.Function, x, y, phase)
		}
	}
	return k, sizes
}

// check compares both products with c columns to those by the definition, relative to the
// sums of the sizes.
func check(t *testing.T, p gpu.Problem, m gpu.Matrix, c int, tolerance float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	k, sizes := matrix(p)
	n, cols := p.X.N, p.Y.N
	v, u := make([]float64, cols*c), make([]float64, n*c)
	for _, s := range [][]float64{v, u} {
		for i := range s {
			s[i] = rng.NormFloat64()
		}
	}
	kv, ku := make([]float64, n*c), make([]float64, cols*c)
	if err := errors.Join(m.Apply(kv, v, c), m.ApplyT(ku, u, c)); err != nil {
		t.Fatal(err)
	}
	compare := func(what string, got []float64, rows, inner int, element func(i, j int) int, by []float64) {
		for i := range rows {
			for q := range c {
				want, size := 0.0, 0.0
				for j := range inner {
					want += k[element(i, j)] * by[j*c+q]
					size += sizes[element(i, j)] * math.Abs(by[j*c+q])
				}
				if e := math.Abs(got[i*c+q] - want); !(e <= tolerance*size+1e-30) {
					t.Fatalf("%s, %d×%d, d = %d, c = %d, stored %t: element %d, %d is %v, want %v, off by %.3g of its size",
						what, n, cols, p.X.D, c, m.Stored(), i, q, got[i*c+q], want, e/size)
				}
			}
		}
	}
	compare("Kv", kv, n, cols, func(i, j int) int { return i*cols + j }, v)
	compare("Kᵀu", ku, cols, n, func(i, j int) int { return j*cols + i }, u)

	kkv, steps := make([]float64, cols*c), make([]float64, cols*c)
	if err := errors.Join(m.Gram(kkv, v, c), m.ApplyT(steps, kv, c)); err != nil || !slices.Equal(kkv, steps) {
		t.Errorf("KᵀKv differs in bits from Kᵀ times Kv (%v)", err)
	}
	again := make([]float64, n*c)
	if err := m.Apply(again, v, c); err != nil || !slices.Equal(again, kv) {
		t.Errorf("the second product differs in bits from the first (%v)", err)
	}
}

var functions = map[string]gpu.Function{
	"decay":     {Statistic: gpu.Squared, Profile: gpu.Decay, Factor: 1},
	"expanded":  {Statistic: gpu.Squared, Profile: gpu.Decay, Factor: 2.5, Expand: true},
	"reach":     {Statistic: gpu.Squared, Profile: gpu.Decay, Factor: 1, Expand: true, Reach: 3},
	"manhattan": {Statistic: gpu.Manhattan, Profile: gpu.Decay, Factor: 1},
	"matern12":  {Statistic: gpu.Squared, Profile: gpu.Matern12, Factor: 1},
	"matern32":  {Statistic: gpu.Squared, Profile: gpu.Matern32, Factor: 0.3, Expand: true},
	"matern52":  {Statistic: gpu.Squared, Profile: gpu.Matern52, Factor: 1},
	"power":     {Statistic: gpu.Dot, Profile: gpu.Power, P0: 0.5, P1: 1, Exponent: 3, Factor: 1},
	"linear":    {Statistic: gpu.Dot, Profile: gpu.Power, P0: 1, Exponent: 1, Factor: 1},
	"cosine":    {Statistic: gpu.Dot, Profile: gpu.Cosine, Factor: 0.7},
}

// tolerance is relative to the sizes. That of float32 is a few units in the last place,
// because ex2.approx of a device has 2.
func tolerance(single bool) float64 {
	if single {
		return 5e-7
	}
	return 3e-15
}

type shape struct{ n, m, d, c int }

func TestProducts(t *testing.T) {
	shapes := []shape{{1, 1, 1, 1}, {1, 300, 1, 1}, {130, 1, 90, 2}, {257, 129, 3, 1}, {65, 63, 17, 5}}
	for name, f := range functions {
		for _, single := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/single=%t", name, single), func(t *testing.T) {
				cudatest.Use(t, "cuda:0")
				for i, s := range shapes {
					rng := rand.New(rand.NewPCG(uint64(i), 0))
					scale := 1 / math.Sqrt(float64(s.d))
					p := gpu.Problem{Function: f, Single: single, X: points(rng, s.n, s.d, scale), Y: points(rng, s.m, s.d, scale)}
					if f.Profile == gpu.Cosine {
						p.Y.Phase = make([]float64, s.m)
						for j := range p.Y.Phase {
							p.Y.Phase[j] = rng.Float64()
						}
					}
					m, err := gpu.NewMatrix(p)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() {
						if err := m.Close(); err != nil {
							t.Error(err)
						}
					})
					check(t, p, m, s.c, tolerance(single))
				}
			})
		}
	}
}

// With less memory K is not stored. The Gaussian is computed in each product, others a few
// panels at a time.
func TestNotStored(t *testing.T) {
	for _, name := range []string{"decay", "reach", "matern52", "power"} {
		for _, single := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/single=%t", name, single), func(t *testing.T) {
				cudatest.Use(t, "cuda:0")
				cuda.Limit(t, 1_000_000)
				rng := rand.New(rand.NewPCG(1, 0))
				p := gpu.Problem{Function: functions[name], Single: single, X: points(rng, 700, 3, 0.5), Y: points(rng, 300, 3, 0.5)}
				if !single {
					p.X, p.Y = p.X.Slice(0, 400), p.Y.Slice(0, 200)
				}
				m, err := gpu.NewMatrix(p)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				if m.Stored() {
					t.Fatal("K is stored, so that this test says nothing")
				}
				check(t, p, m, 2, tolerance(single))
			})
		}
	}
}

// Devices divide the rows. Kv has the same bits as on one, and Kᵀu is a sum of parts.
func TestTwoDevices(t *testing.T) {
	cudatest.Fault(t, "FAKE_CUDA_DEVICES", "2")
	for _, s := range []shape{{300, 70, 5, 1}, {64 * 64, 64 * 20, 1, 1}} {
		rng := rand.New(rand.NewPCG(1, 0))
		p := gpu.Problem{Function: functions["reach"], X: points(rng, s.n, s.d, 0.5), Y: points(rng, s.m, s.d, 0.5)}
		v := make([]float64, s.m)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		var got [2][]float64
		for i, choice := range []string{"cuda:0", "cuda"} {
			cudatest.Use(t, choice)
			m, err := gpu.NewMatrix(p)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			got[i] = make([]float64, s.n)
			if err := m.Apply(got[i], v, 1); err != nil {
				t.Fatal(err)
			}
			check(t, p, m, 3, tolerance(false))
		}
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%d×%d: Kv on two devices differs in bits from that on one", s.n, s.m)
		}
	}
}

func problem(n, m, d int) gpu.Problem {
	rng := rand.New(rand.NewPCG(1, 0))
	return gpu.Problem{Function: functions["decay"], X: points(rng, n, d, 0.5), Y: points(rng, m, d, 0.5)}
}

// Whichever allocation fails, there is an error and no memory is left behind.
func TestOutOfMemory(t *testing.T) {
	cudatest.Fault(t, "FAKE_CUDA_FAIL_ALLOC", "0")
	cudatest.Use(t, "cuda:0")
	left := cudatest.Left(t, 0)
	p := problem(200, 50, 3)
	failures := 0
	for k := 1; k <= 20; k++ {
		os.Setenv("FAKE_CUDA_FAIL_ALLOC", fmt.Sprint(k))
		m, err := gpu.NewMatrix(p)
		if err == nil {
			err = m.Apply(make([]float64, 200*6), make([]float64, 50*6), 6) // takes more memory
			if closed := m.Close(); closed != nil {
				t.Fatal(closed)
			}
		}
		if err != nil {
			failures++
			var failed *gpu.DeviceError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), "cuMemAlloc") || errors.Is(err, gpu.ErrLost) {
				t.Errorf("allocation %d: error %v, want a DeviceError of cuMemAlloc", k, err)
			}
		}
		left(fmt.Sprintf("allocation %d", k))
	}
	if failures < 12 || failures > 14 { // 8 blocks, and twice 3 for vectors
		t.Errorf("%d of 20 allocations failed, want 12 to 14", failures)
	}
}

// A problem that cannot fit is refused before any memory is taken or any row read.
func TestTooLarge(t *testing.T) {
	cudatest.Use(t, "cuda:0")
	left := cudatest.Left(t, 0)
	_, err := gpu.NewMatrix(gpu.Problem{Function: functions["decay"], X: gpu.Rows{N: 1 << 32, D: 30}, Y: gpu.Rows{N: 500, D: 30}})
	var memory *gpu.MemoryError
	if !errors.As(err, &memory) || memory.Need <= memory.Free || memory.Free <= 0 {
		t.Fatalf("error %v, want a MemoryError", err)
	}
	if want := fmt.Sprintf("cuda:0 has %s free, and a product with 4294967296 rows, 30 coordinates and 500 centres in float64 needs ", gpu.Gigabytes(memory.Free)); !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %q, want it to begin %q", err, want)
	}
	left("a problem that is too large")
}

// A product for which the driver has no memory is an error, and the next one is right.
func TestMemoryRunsOut(t *testing.T) {
	cudatest.Use(t, "cuda:0")
	d, err := gpu.Registered().Open(0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := d.Info()
	if err != nil {
		t.Fatal(err)
	}
	p := problem(1000, 1, 3)
	m, err := gpu.NewMatrix(p)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := int(info.Memory)/(8*p.X.N) + 1 // columns of Kv that take all of it
	err = m.Apply(nil, make([]float64, c), c)
	var failed *gpu.DeviceError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "cuMemAlloc") || errors.Is(err, gpu.ErrLost) {
		t.Errorf("error %v, want a DeviceError of cuMemAlloc", err)
	}
	check(t, p, m, 1, tolerance(false))
}

// A device that fails is lost for the process.
func TestLostDevice(t *testing.T) {
	cudatest.Fault(t, "FAKE_CUDA_LOSE", "0")
	cudatest.Use(t, "cuda:3") // no other test uses it
	p := problem(200, 50, 3)
	m, err := gpu.NewMatrix(p)
	if err != nil {
		t.Fatal(err)
	}
	os.Setenv("FAKE_CUDA_LOSE", "2")
	err = m.Apply(make([]float64, 200), make([]float64, 50), 1)
	if !errors.Is(err, gpu.ErrLost) || !strings.HasPrefix(err.Error(), "cuda:3 failed in cuLaunchKernel") {
		t.Errorf("error %v, want a lost device", err)
	}
	if err := m.Apply(make([]float64, 200), make([]float64, 50), 1); !errors.Is(err, gpu.ErrLost) {
		t.Errorf("error %v of the next call, want a lost device", err)
	}
	if _, err := gpu.NewMatrix(p); !errors.Is(err, gpu.ErrLost) {
		t.Errorf("error %v of the next matrix, want a lost device", err)
	}
}

// child runs gpu.Use in a process of its own, because a process opens one driver.
func child(t *testing.T, choice string, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "CUDA_TEST_CHILD="+choice), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestDriverFaults(t *testing.T) {
	cudatest.Fault(t, "FAKE_CUDA_DEVICES", "1")
	lacking, err := cudatest.Build(t.TempDir(), "-DFAKE_WITHOUT_FUNCTIONS")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ choice, env, want string }{
		{"cuda:0", "FAKE_CUDA_DEVICES=1", "<nil>"},
		{"auto", "FAKE_CUDA_INIT=100", "<nil>\non a device: false\n"},
		{"auto", "FAKE_CUDA_DEVICES=0", "<nil>\non a device: false\n"},
		{"auto", "FAKE_CUDA_INIT=999", "warning: the CUDA driver "},
		{"auto", "BKB_CUDA_DRIVER=/nowhere/libcuda.so.1", "warning: no CUDA driver: /nowhere/libcuda.so.1"},
		{"cuda:0", "BKB_CUDA_DRIVER=libc.so.6", "the CUDA driver libc.so.6 cannot be used: the library has no function cuInit"},
		{"cuda:1", "", "device cuda:1: this machine has 1 CUDA devices, numbered from 0"},
		{"cuda:x", "", `"cuda:x" is no device, want auto, cpu, cuda or cuda:N`},
		{"cuda:0", "BKB_CUDA_DRIVER=/nowhere/libcuda.so.1", "device cuda:0: no CUDA driver: /nowhere/libcuda.so.1"},
		{"cuda:0", "FAKE_CUDA_INIT=100", "no CUDA device: the driver"},
		{"cuda:0", "FAKE_CUDA_INIT=999", "does not start: cuInit returned 999"},
		{"cuda:0", "FAKE_CUDA_VERSION=10020", "of version 10.2, and 11.0 or later is needed"},
		{"cuda:0", "FAKE_CUDA_CAPABILITY=61", "compute capability 6.1, and 7.5 or later is needed"},
		{"cuda", "FAKE_CUDA_DEVICES=0", "this machine has 0 CUDA devices"},
		{"cuda:0", "BKB_CUDA_DRIVER=" + lacking, "lacks the function cuModuleGetFunction; install a driver from 450 on"},
	} {
		if got := child(t, c.choice, c.env); !strings.Contains(got, c.want) {
			t.Errorf("%s with %s: %q, want %q", c.choice, c.env, got, c.want)
		}
	}
}
