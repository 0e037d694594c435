//go:build cuda && cgo && linux

package cudatest

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/bkbtuner/bkb/internal/gpu"
)

const driverVariable = "BKB_CUDA_DRIVER"

// Real tells whether the tests run on real devices.
func Real() bool { return os.Getenv("BKB_CUDA_REAL") == "1" }

// Main runs the tests of a package with a stand-in driver, which g++ makes.
func Main(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if !Real() && os.Getenv(driverVariable) == "" {
		dir, err := os.MkdirTemp("", "cudatest")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		library, err := Build(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		os.Setenv(driverVariable, library)
		os.Setenv("FAKE_CUDA_DEVICES", "4")
	}
	os.Setenv(gpu.Variable, "cpu") // a test chooses its devices
	return m.Run()
}

// Build makes the stand-in driver in a directory and returns its path.
func Build(dir string, flags ...string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	out := filepath.Join(dir, "libcuda.so.1")
	args := append([]string{"-std=c++17", "-O2", "-ffp-contract=fast", "-fPIC", "-shared", "-Wno-unknown-pragmas", "-o", out}, flags...)
	if runtime.GOARCH == "amd64" {
		args = append(args, "-mfma")
	}
	args = append(args, filepath.Join(filepath.Dir(here), "..", "cuda", "fake", "fake.cc"))
	if text, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("the stand-in driver cannot be built, install g++: %w\n%s", err, text)
	}
	return out, nil
}

// Use chooses devices for one test. The others of the package have none.
func Use(t testing.TB, choice string) {
	t.Helper()
	if err := gpu.Use(choice); err != nil {
		if Real() {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gpu.Use("cpu"); err != nil {
			t.Error(err)
		}
	})
}

// Fault sets a fault of the stand-in for one test, see fake.cc.
func Fault(t testing.TB, name, value string) {
	t.Helper()
	if Real() {
		t.Skip("a real device has no faults to order")
	}
	t.Setenv(name, value)
}

// Left returns a function that checks that a device has the memory that it has now. The figure of a real driver changes for other
// reasons, so that it counts for the stand-in only.
func Left(t testing.TB, number int) (check func(when string)) {
	t.Helper()
	read := func() (held, free int64) {
		t.Helper()
		d, err := gpu.Registered().Open(number)
		if err != nil {
			t.Fatal(err)
		}
		info, err := d.Info()
		if err != nil {
			t.Fatal(err)
		}
		return info.Held, info.Free
	}
	held, free := read()
	return func(when string) {
		t.Helper()
		if h, f := read(); h != held || f != free && !Real() {
			t.Fatalf("%s: %d bytes are held and %d free, before there were %d and %d", when, h, f, held, free)
		}
	}
}

// Distance returns |a − b|/|b|.
func Distance(a, b []float64) float64 {
	d, s := 0.0, 0.0
	for i := range b {
		d += (a[i] - b[i]) * (a[i] - b[i])
		s += b[i] * b[i]
	}
	return math.Sqrt(d / s)
}
