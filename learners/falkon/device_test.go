//go:build cuda && cgo && linux

package falkon_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/gpu/cudatest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
)

func TestMain(m *testing.M) { cudatest.Main(m) }

// waves are n rows of d coordinates, with repeated rows, and a smooth target.
func waves(n, d int) *data.Memory {
	rng := rand.New(rand.NewPCG(11, 0))
	x, y := kernel.NewPoints[float64](n, d, nil), make([]float64, n)
	for i := range n {
		for c := range d {
			x.Row(i)[c] = rng.NormFloat64()
		}
		if i%10 == 9 {
			copy(x.Row(i), x.Row(i-9))
		}
		y[i] = math.Sin(x.Row(i)[0]) + 0.1*rng.NormFloat64()
	}
	m, err := data.NewMemory(x, y, 1)
	if err != nil {
		panic(err)
	}
	return m
}

// fitted returns the predictions of a fit for its rows.
func fitted(t *testing.T, p falkon.Params, train *data.Memory) []float64 {
	t.Helper()
	model, err := p.Fit(t.Context(), train, learners.Options{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, train.Len())
	if err := model.Predict(t.Context(), out, train); err != nil {
		t.Fatal(err)
	}
	return out
}

// FALKON on a device predicts what it predicts on the CPU in float64, to 1e-5. CG converges
// in these cases.
func TestDeviceAgreesWithCPU(t *testing.T) {
	for _, c := range []struct {
		name      string
		n, d, m   int
		precision kernel.Precision
	}{{"float64", 700, 3, 70, kernel.Float64}, {"float32", 700, 3, 70, kernel.Float32}, {"float32 d=90", 300, 90, 33, kernel.Float32}, {"one coordinate", 200, 1, 20, kernel.Float64}} {
		t.Run(c.name, func(t *testing.T) {
			train := waves(c.n, c.d)
			k, err := kernel.NewGaussian(2 * math.Sqrt(float64(c.d)))
			if err != nil {
				t.Fatal(err)
			}
			p := falkon.Params{Kernel: k, Lambda: 1e-2, Centers: c.m, Iterations: 50, Tolerance: 1e-10, Epsilon: 1e-6}
			want := fitted(t, p, train)
			p.Precision = c.precision
			cpu := cudatest.Distance(fitted(t, p, train), want)
			cudatest.Use(t, "cuda:0")
			got := fitted(t, p, train)
			e := cudatest.Distance(got, want)
			t.Logf("relative distance %.3g, that of the CPU in the same precision is %.3g", e, cpu)
			if !(e <= 1e-5) {
				t.Errorf("predictions are %.3g from those of the CPU, want at most 1e-5", e)
			}
			if e == 0 {
				t.Error("the bits are those of the CPU, so that no device was used")
			}
		})
	}
}

// A fit goes on when the device is lost in a factorisation, in a product or in a solution.
func TestDeviceLostInFit(t *testing.T) {
	cudatest.Fault(t, "FAKE_CUDA_LOSE", "0")
	train := waves(300, 3)
	k, err := kernel.NewGaussian(3)
	if err != nil {
		t.Fatal(err)
	}
	p := falkon.Params{Kernel: k, Lambda: 1e-3, Centers: 40}
	want := fitted(t, p, train)
	defer gpu.OnWarning(nil)
	for _, c := range []struct{ launch, device, kernel string }{{"3", "cuda:1", "pivot"}, {"97", "cuda:2", "solve"}, {"100", "cuda:3", "collect"}} {
		launch, device := c.launch, c.device
		var warnings []string
		gpu.OnWarning(func(m string) { warnings = append(warnings, m) })
		cudatest.Use(t, device)
		os.Setenv("FAKE_CUDA_LOSE", launch)
		got := fitted(t, p, train)
		if e := cudatest.Distance(got, want); !(e <= 1e-5) {
			t.Errorf("launch %s: predictions are %.3g from those of the CPU, want at most 1e-5", launch, e)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], device+" failed in cuLaunchKernel "+c.kernel) {
			t.Errorf("launch %s: warnings %q, want one of the lost device in %s", launch, warnings, c.kernel)
		}
		t.Log(warnings)
	}
}

// All ways to factor and the path of λ give the results of the CPU, and leave no memory on
// the device.
func TestDeviceFactors(t *testing.T) {
	train := waves(300, 3)
	k, err := kernel.NewGaussian(3)
	if err != nil {
		t.Fatal(err)
	}
	cudatest.Use(t, "cuda:0")
	left := cudatest.Left(t, 0)
	for _, how := range []falkon.Factorization{falkon.FactorPivoted, falkon.FactorCholesky, falkon.FactorQR, falkon.FactorEigen} {
		p := falkon.Params{Kernel: k, Lambda: 1e-3, Centers: 40, Factorization: how, Epsilon: 1e-8, Iterations: 30, Tolerance: 1e-10}
		cudatest.Use(t, "cpu")
		want := fitted(t, p, train)
		cudatest.Use(t, "cuda:0")
		if e := cudatest.Distance(fitted(t, p, train), want); !(e <= 1e-7) {
			t.Errorf("%q: predictions are %.3g from those of the CPU, want at most 1e-7", how, e)
		}
		left(fmt.Sprintf("%q", how))
	}
}
