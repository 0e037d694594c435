package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if program.folder != "" {
		_ = os.RemoveAll(program.folder)
	}
	os.Exit(code)
}

// often returns how often to repeat a test. The environment can override n.
func often(t testing.TB, what string, n int) int {
	t.Helper()
	s := os.Getenv("BKB_TORTURE_" + what)
	switch {
	case s == "" && testing.Short():
		return (n + 3) / 4
	case s == "":
		return n
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("BKB_TORTURE_%s: %v", what, err)
	}
	return n
}

// heavy skips tests that start processes when -short is set.
func heavy(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes, which -short leaves out; go test ./internal/torture runs it, and make torture-ci and make torture repeat it")
	}
}

// seed returns the seed of a run. It is fixed, so that the everyday tests and CI repeat
// their verdicts. The environment can set it, and "new" draws a new one.
func seed(t testing.TB) uint64 {
	t.Helper()
	var s uint64 = 1
	switch text := os.Getenv("BKB_TORTURE_SEED"); text {
	case "":
	case "new":
		s = rand.Uint64() >> 16
	default:
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("BKB_TORTURE_SEED: %v", err)
		}
	}
	t.Logf("BKB_TORTURE_SEED=%d", s)
	return s
}

// lacking skips a test that this machine cannot run. A release run fails instead.
func lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("BKB_TORTURE_MUST") != "" {
		t.Fatalf("this run must not skip: "+format, args...)
	}
	t.Skipf(format, args...)
}

// figures logs the figures of a run, and writes them to the file that `make torture`
// shows.
func figures(t testing.TB, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	t.Log(text)
	if path := os.Getenv("BKB_TORTURE_FIGURES"); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(f, "%s: %s\n", t.Name(), text)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// program is the real binary, built once.
var program struct {
	once   sync.Once
	folder string
	path   string
	err    error
}

// tunerBinary returns the path of the real binary, built with the tags of this test.
func tunerBinary(t testing.TB) string {
	t.Helper()
	program.once.Do(func() {
		if program.folder, program.err = os.MkdirTemp("", "torture"); program.err != nil {
			return
		}
		program.path = filepath.Join(program.folder, "tuner")
		args := append([]string{"build", "-ldflags=-s -w", "-o", program.path}, overlaid()...) // a third less time
		cmd := exec.Command("go", append(args, "github.com/bkbtuner/bkb/cmd/tuner")...)
		if out, err := cmd.CombinedOutput(); err != nil {
			program.err = fmt.Errorf("building the program: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// evidence returns a folder that is kept if the test fails.
func evidence(t testing.TB, seed uint64) string {
	t.Helper()
	root := os.Getenv("BKB_TORTURE_EVIDENCE")
	if root == "" {
		root = filepath.Join(os.TempDir(), "bkb-torture")
	}
	name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	folder := filepath.Join(root, fmt.Sprintf("%s-%d-%d", name, seed, os.Getpid()))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "seed"), fmt.Appendf(nil, "%d\n", seed), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(folder)
			_ = os.Remove(root) // if it is empty
			return
		}
		t.Logf("the evidence is in %s; check it again with BKB_TORTURE_AGAIN=%s go test -run TestAgain ./internal/torture", folder, folder)
	})
	return folder
}

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// syncBuffer collects a log from several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var quiet = slog.New(slog.DiscardHandler)

// copyFile copies a file.
func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		_ = dst.Close()
		return err
	}
	return dst.Close()
}

// quantile returns a quantile of values in ascending order.
func quantile[T any](sorted []T, q float64) T {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Clone(values)
	slices.Sort(s)
	return quantile(s, 0.5)
}

// overlayVariable names the overlay with which this program was built, if it has the bugs.
const overlayVariable = "BKB_TORTURE_OVERLAY"

// overlaid returns the flags of go that build the product as this program was built.
func overlaid() []string {
	if path := os.Getenv(overlayVariable); path != "" {
		return []string{"-overlay", path}
	}
	return nil
}
