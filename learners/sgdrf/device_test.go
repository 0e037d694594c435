//go:build cuda && cgo && linux

package sgdrf_test

import (
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
	"github.com/bkbtuner/bkb/learners/sgdrf"
	"github.com/bkbtuner/bkb/sketch"
)

func TestMain(m *testing.M) { cudatest.Main(m) }

func waves(n, d int) *data.Memory {
	rng := rand.New(rand.NewPCG(11, 0))
	x, y := kernel.NewPoints[float32](n, d, nil), make([]float64, n)
	for i := range n {
		for c := range d {
			x.Row(i)[c] = float32(rng.NormFloat64())
		}
		y[i] = math.Sin(float64(x.Row(i)[0]))
	}
	m, err := data.NewMemory(x, y, 1)
	if err != nil {
		panic(err)
	}
	return m
}

func fitted(t *testing.T, p sgdrf.Params, train *data.Memory) []float64 {
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

// Stochastic gradients on a device are those of the CPU up to rounding, with a last batch
// that is smaller.
func TestDeviceGradients(t *testing.T) {
	train := waves(230, 3)
	k, err := kernel.NewGaussian(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range []sketch.Family{sketch.Fourier, sketch.FourierCosine} {
		p := sgdrf.Params{Kernel: k, Features: 40, Family: family, BatchSize: 50, Passes: 2}
		want := fitted(t, p, train)
		cudatest.Use(t, "cuda:0")
		got := fitted(t, p, train)
		if e := cudatest.Distance(got, want); !(e <= 1e-12) || e == 0 {
			t.Errorf("%s: predictions are %.3g from those of the CPU, want at most 1e-12 and not 0", family, e)
		}
		cudatest.Use(t, "cpu")
	}
}

// They are so too when the device is lost.
func TestDeviceLostInGradients(t *testing.T) {
	cudatest.Fault(t, "FAKE_CUDA_LOSE", "0")
	train := waves(230, 3)
	k, err := kernel.NewGaussian(2)
	if err != nil {
		t.Fatal(err)
	}
	p := sgdrf.Params{Kernel: k, Features: 40, BatchSize: 50, Passes: 2}
	want := fitted(t, p, train)
	defer gpu.OnWarning(nil)
	for launch, device := range map[string]string{"2": "cuda:1", "4": "cuda:2"} { // in Φw, in Φᵀr
		var warnings []string
		gpu.OnWarning(func(m string) { warnings = append(warnings, m) })
		cudatest.Use(t, device)
		os.Setenv("FAKE_CUDA_LOSE", launch)
		if e := cudatest.Distance(fitted(t, p, train), want); !(e <= 1e-12) {
			t.Errorf("launch %s: predictions are %.3g from those of the CPU, want at most 1e-12", launch, e)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], device+" failed in cuLaunchKernel") {
			t.Errorf("launch %s: warnings %q, want one of the lost device", launch, warnings)
		}
		t.Log(warnings)
	}
}
