package gpu

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// recorder is a backend with devices that record the problems they get.
type recorder struct {
	n       int
	err     error
	slower  int
	opened  int
	refused error
	parts   [][2]int // device, rows
}

// recordingDevice makes matrices of ones. Products need nothing else of a device, so its
// other methods panic.
type recordingDevice struct {
	Device
	s      *recorder
	number int
}

func (s *recorder) Count() (int, error) { return s.n, s.err }
func (s *recorder) Open(number int) (Device, error) {
	s.opened++
	return recordingDevice{s: s, number: number}, nil
}

func (d recordingDevice) Properties() Info {
	return Info{Name: fmt.Sprintf("cuda:%d", d.number), SlowerFloat64: d.s.slower}
}

func (d recordingDevice) NewMatrix(p Problem) (Matrix, error) {
	if d.s.refused != nil && d.number == 1 {
		return nil, d.s.refused
	}
	d.s.parts = append(d.s.parts, [2]int{d.number, p.X.N})
	return &ones{p.X.N, p.Y.N}, nil
}

// ones is a matrix of ones.
type ones struct{ n, m int }

func (o *ones) Apply(dst, v []float64, _ int) error  { return fillSum(dst, v) }
func (o *ones) ApplyT(dst, u []float64, _ int) error { return fillSum(dst, u) }
func (o *ones) Gram(dst, v []float64, _ int) error {
	t := make([]float64, o.n)
	return errors.Join(fillSum(t, v), fillSum(dst, t))
}
func (o *ones) Stored() bool    { return true }
func (o *ones) SetX(Rows) error { return nil }
func (o *ones) Close() error    { return nil }

func fillSum(dst, v []float64) error {
	s := 0.0
	for _, x := range v {
		s += x
	}
	for i := range dst {
		dst[i] = s
	}
	return nil
}

// with sets the state of the process for one test.
func with(t *testing.T, b Backend) (warnings *[]string) {
	t.Helper()
	old := chosen.backend
	warnings = new([]string)
	reset := func(b Backend) {
		chosen.backend = b
		set(false, false, nil, false)
	}
	reset(b)
	OnWarning(func(m string) { *warnings = append(*warnings, m) })
	t.Cleanup(func() {
		reset(old)
		OnWarning(nil)
	})
	t.Setenv(Variable, "")
	return warnings
}

func sized(n, m, d int) Problem {
	return Problem{X: Rows{N: n, D: d}, Y: Rows{N: m, D: d}}
}

func TestAuto(t *testing.T) {
	small, large := sized(1000, 100, 5), sized(100_000, 1000, 50)
	single := large
	single.Single = true
	s := &recorder{n: 1, slower: 2}
	with(t, s)
	if m, err := NewMatrix(small); m != nil || err != nil || s.opened != 0 || Wanted(small) {
		t.Errorf("a small product: %v, %v, and %d devices were opened", m, err, s.opened)
	}
	if m, err := NewMatrix(large); m == nil || err != nil || !Wanted(large) {
		t.Errorf("a large product: %v, %v, want a device", m, err)
	}
	s.slower = 64
	if m, _ := NewMatrix(large); m != nil || Wanted(large) {
		t.Error("a device that is slow in float64 got a product in float64")
	}
	if m, _ := NewMatrix(single); m == nil {
		t.Error("a device that is slow in float64 got no product in float32")
	}
	if err := Use("cuda:0"); err != nil {
		t.Fatal(err)
	}
	if m, _ := NewMatrix(small); m == nil {
		t.Error("a device that was named got no small product")
	}
	if err := Use("cpu"); err != nil {
		t.Fatal(err)
	}
	if m, _ := NewMatrix(single); m != nil {
		t.Error("a device got a product in spite of cpu")
	}
}

// A machine without a driver is no reason to warn. A driver that fails is.
func TestAutoWithoutDevice(t *testing.T) {
	large := sized(100_000, 1000, 50)
	for _, c := range []struct {
		backend  Backend
		warnings int
	}{
		{nil, 0},
		{&recorder{err: &DriverError{Reason: "no CUDA driver", Absent: true}}, 0},
		{&recorder{err: &DriverError{Reason: "too old"}}, 1},
		{&recorder{}, 0}, // a driver without devices
	} {
		warnings := with(t, c.backend)
		for range 2 {
			if m, err := NewMatrix(large); m != nil || err != nil {
				t.Errorf("%v, %v, want the CPU", m, err)
			}
		}
		if len(*warnings) != c.warnings {
			t.Errorf("warnings %q, want %d", *warnings, c.warnings)
		}
	}
}

func TestUse(t *testing.T) {
	with(t, nil)
	var unavailable *UnavailableError
	if err := Use("cuda:0"); !errors.As(err, &unavailable) || err.Error() != "device cuda:0: this program was built without CUDA, which needs the build tag cuda; use auto or cpu to compute on the CPU" {
		t.Errorf("error %v without a backend", err)
	}
	with(t, &recorder{n: 1})
	if err := Use("cuda:1"); !errors.As(err, &unavailable) {
		t.Errorf("error %v of a device that is not there", err)
	}
	var choice *ChoiceError
	for _, name := range []string{"gpu", "cuda:", "cuda:-1", "cuda:0x1", "cuda:999", "CUDA"} {
		if err := Use(name); !errors.As(err, &choice) || choice.Given != name {
			t.Errorf("Use(%q): error %v, want a ChoiceError", name, err)
		}
	}
	t.Setenv(Variable, "tpu")
	if err := Use(""); err == nil || err.Error() != `BKB_DEVICE "tpu" is no device, want auto, cpu, cuda or cuda:N such as cuda:0` {
		t.Errorf("error %v of the environment", err)
	}
	t.Setenv(Variable, "cuda:0")
	if m, err := NewMatrix(sized(1, 1, 1)); m == nil || err != nil {
		t.Errorf("%v, %v: the environment named a device", m, err)
	}
}

// Batches count together, but each must be worth its copies.
func TestBatches(t *testing.T) {
	s := &recorder{n: 2}
	with(t, s)
	for _, c := range []struct {
		n, batches int
		device     bool
	}{{100, 1_000_000, false}, {10_000, 1, false}, {10_000, 100, true}} {
		p := sized(c.n, 1000, 50)
		p.Batches = c.batches
		m, err := NewMatrix(p)
		if err != nil || (m != nil) != c.device {
			t.Errorf("%d batches of %d rows: %v, %v, want a device: %t", c.batches, c.n, m, err, c.device)
		}
	}
	if want := [][2]int{{0, 10_000}}; !slices.Equal(s.parts, want) {
		t.Errorf("rows by device %v, want %v", s.parts, want)
	}
}

func TestSplit(t *testing.T) {
	s := &recorder{n: 3}
	with(t, s)
	if err := Use("cuda"); err != nil {
		t.Fatal(err)
	}
	m, err := NewMatrix(sized(1000, 7, 2))
	if err != nil {
		t.Fatal(err)
	}
	if want := [][2]int{{0, 256}, {1, 384}, {2, 360}}; !slices.Equal(s.parts, want) {
		t.Errorf("rows by device %v, want %v", s.parts, want)
	}
	dst, u := make([]float64, 7), make([]float64, 1000)
	for i := range u {
		u[i] = 1
	}
	if err := m.ApplyT(dst, u, 1); err != nil || dst[6] != 1000 {
		t.Errorf("Kᵀu is %v (%v), want 1000", dst, err)
	}
	if err := m.Gram(dst, []float64{1, 1, 1, 1, 1, 1, 1}, 1); err != nil || dst[6] != 7000 {
		t.Errorf("KᵀKv is %v (%v), want 7000", dst, err)
	}
	if m, err := NewMatrix(sized(100, 7, 2)); err != nil || len(s.parts) != 4 || m == nil {
		t.Errorf("few rows are on %d devices (%v), want 1", len(s.parts)-3, err)
	}
	s.refused = errors.New("no")
	if m, err := NewMatrix(sized(1000, 7, 2)); m != nil || !errors.Is(err, s.refused) {
		t.Errorf("%v, %v, want the error of the second device", m, err)
	}
}

func TestWarnOnce(t *testing.T) {
	warnings := with(t, &recorder{n: 1})
	if err := Use("cuda:0"); err != nil {
		t.Fatal(err)
	}
	Warn(&MemoryError{Device: "cuda:0", What: "a product", Need: 2e9, Free: 3e6})
	Warn(errors.New("another"))
	if want := []string{"cuda:0 has 3 MB free, and a product needs 2 GB; continuing on the CPU"}; !slices.Equal(*warnings, want) {
		t.Errorf("warnings %q, want %q", *warnings, want)
	}
}

// A lost device gets no more products. Others do.
func TestLost(t *testing.T) {
	s := &recorder{n: 3}
	with(t, s)
	if err := Use("cuda"); err != nil {
		t.Fatal(err)
	}
	gone := func(number int) error {
		return &DeviceError{Device: fmt.Sprintf("cuda:%d", number), Call: "cuLaunchKernel", Err: fmt.Errorf("%w (700)", ErrLost)}
	}
	Warn(&DeviceError{Device: "cuda:0", Call: "cuMemAlloc", Err: errors.New("no memory")})
	Warn(fmt.Errorf("a product: %w", errors.Join(errors.New("another"), gone(1))))
	if _, err := NewMatrix(sized(1000, 7, 2)); err != nil {
		t.Fatal(err)
	}
	if want := [][2]int{{0, 512}, {2, 488}}; !slices.Equal(s.parts, want) {
		t.Errorf("rows by device %v after the loss of the second, want %v", s.parts, want)
	}
	Warn(errors.Join(gone(0), gone(2)))
	if m, err := NewMatrix(sized(1, 1, 1)); m != nil || err != nil {
		t.Errorf("%v, %v: a lost device got a product", m, err)
	}
}

// slow is a backend whose devices take long to open.
type slow struct {
	*recorder
	started, opened chan struct{}
}

func (s slow) Open(number int) (Device, error) {
	close(s.started)
	<-s.opened
	return s.recorder.Open(number)
}

// A small product does not wait for devices that are being opened for a large one.
func TestSmallDoesNotWait(t *testing.T) {
	s := slow{&recorder{n: 1}, make(chan struct{}), make(chan struct{})}
	with(t, s)
	large := make(chan int)
	go func() { large <- len(devices(1e12, false)) }()
	<-s.started
	small := make(chan int)
	go func() { small <- len(devices(10, false)) }()
	select {
	case n := <-small:
		if n != 0 {
			t.Errorf("a small product has %d devices, want 0", n)
		}
	case <-time.After(10 * time.Second):
		t.Error("a small product waits for a device")
	}
	close(s.opened)
	if n := <-large; n != 1 {
		t.Errorf("a large product has %d devices, want 1", n)
	}
}

// The choice auto prevails over the environment.
func TestAutoOverEnvironment(t *testing.T) {
	s := &recorder{n: 1}
	with(t, s)
	t.Setenv(Variable, "cpu")
	if err := Use("auto"); err != nil {
		t.Fatal(err)
	}
	if m, err := NewMatrix(sized(100_000, 1000, 50)); m == nil || err != nil {
		t.Errorf("%v, %v, want a device in spite of %s=cpu", m, err, Variable)
	}
}

// TestDefaultBuild lists what a program without the tag consists of.
func TestDefaultBuild(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "../../cmd/tuner")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "internal/gpu\n") {
		t.Error("package gpu is missing, so that this test says nothing")
	}
	for p := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(p, "gorgonia.org/") || strings.Contains(p, "internal/gpu/cuda") || p == "runtime/cgo" {
			t.Errorf("a build without cgo has %s", p)
		}
	}
}
