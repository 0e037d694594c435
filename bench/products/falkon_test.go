//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// The problem is the same each time and as described, a sum of sines with noise of
// deviation 0.5.
func TestDraw(t *testing.T) {
	p := problem{n: 4000, test: 1000}
	x, y := p.draw()
	again, _ := p.draw()
	if len(x) != 5000*dim || len(y) != 5000 || !bytes.Equal(packed(t, x), packed(t, again)) {
		t.Fatalf("%d numbers and %d targets, or others the second time", len(x), len(y))
	}
	var sum, square float64
	for i, v := range y {
		for c := range dim {
			v -= math.Sin(float64(x[i*dim+c]) + float64(c))
		}
		sum, square = sum+v, square+v*v
	}
	n := float64(len(y))
	if mean, deviation := sum/n, math.Sqrt(square/n); math.Abs(mean) > 0.03 || math.Abs(deviation-0.5) > 0.02 {
		t.Errorf("the noise has mean %g and deviation %g", mean, deviation)
	}
}

func packed(t *testing.T, data any) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := binary.Write(&out, binary.LittleEndian, data); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Python reads the numbers one after the other, little-endian.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	if err := save(dir, "x", []float32{1, -2}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "x"))
	if err != nil || !bytes.Equal(got, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}) {
		t.Errorf("saved % x, %v", got, err)
	}
	if err := save(filepath.Join(dir, "none"), "x", []float32{1}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into no folder: %v", err)
	}
}

// A fit in either precision learns the targets, reports its costs in the columns of the
// table, and returns centres that are among the training rows.
func TestOurs(t *testing.T) {
	p := problem{n: 2000, test: 500, m: 150, t: 15, threads: 2, lambda: 1e-5, lengthScale: 6}
	x, y := p.draw()
	if _, err := resetPeak(); err != nil {
		t.Skipf("the peak of memory cannot be set back here: %v", err)
	}
	rows := make(map[[dim]float32]bool)
	for i := range p.n {
		rows[[dim]float32(x[i*dim:])] = true
	}
	spread := 0.0
	for _, v := range y[p.n:] {
		spread += v * v
	}
	spread = math.Sqrt(spread / float64(p.test))
	errs := make(map[kernel.Precision]float64)
	for _, precision := range []kernel.Precision{kernel.Float32, kernel.Float64} {
		var out bytes.Buffer
		centers, err := p.ours(&out, precision, x, y)
		if err != nil {
			t.Fatal(err)
		}
		if len(centers) != p.m*dim {
			t.Fatalf("%d numbers of centres, want %d", len(centers), p.m*dim)
		}
		for i := 0; i < len(centers); i += dim {
			if !rows[[dim]float32(centers[i:])] {
				t.Fatalf("centre %d is no training row", i/dim)
			}
		}
		var wall, cpu, rmse float64
		var mib int
		cells := strings.Split(out.String(), "|")
		if _, err := fmt.Sscan(strings.Join(cells[2:6], " "), &wall, &cpu, &mib, &rmse); len(cells) != 7 || err != nil || mib < -20 { // with so little data, more memory may be freed than used
			t.Fatalf("the line is %q: %v", &out, err)
		}
		if !(rmse > 0.5 && rmse < 0.6*spread) { // an error below the noise would be cheating
			t.Errorf("%v: the RMSE is %g where the targets have %g", precision, rmse, spread)
		}
		errs[precision] = rmse
	}
	if d := math.Abs(errs[kernel.Float32] - errs[kernel.Float64]); d > 1e-3 {
		t.Errorf("the precisions differ by %g in RMSE", d)
	}
}

// PyTorch, if it is installed, solves the same problem. With the same centres its error
// equals ours.
func TestFalkonPeer(t *testing.T) {
	python := os.Getenv("BKB_PYTHON")
	if python == "" || exec.Command(python, "-c", "import torch").Run() != nil {
		t.Skip("set BKB_PYTHON to a python3 with torch")
	}
	p := problem{n: 2000, test: 500, m: 150, t: 15, threads: 1, lambda: 1e-5, lengthScale: 6}
	x, y := p.draw()
	var out bytes.Buffer
	centers, err := p.ours(&out, kernel.Float32, x, y)
	dir := t.TempDir()
	if err = errors.Join(err, save(dir, "x", x), save(dir, "y", y), save(dir, "c", centers)); err != nil {
		t.Fatal(err)
	}
	args := []any{dir, dim, p.n, p.m, p.t, p.lambda, p.lengthScale, p.threads}
	cmd := exec.Command(python, "falkon.py")
	for _, a := range args {
		cmd.Args = append(cmd.Args, fmt.Sprint(a))
	}
	line, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	rmse := func(line string) (v float64) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if _, err := fmt.Sscan(cells[len(cells)-2], &v); err != nil || len(cells) != 7 {
			t.Fatalf("the line is %q: %v", line, err)
		}
		return v
	}
	if a, b := rmse(out.String()), rmse(string(line)); math.Abs(a-b) > 2e-3 {
		t.Errorf("ours has the RMSE %g, PyTorch %g", a, b)
	}
}

func TestMemory(t *testing.T) {
	if kib, err := memory("VmRSS"); err != nil || kib < 1000 {
		t.Errorf("%d KiB, %v", kib, err)
	}
	if _, err := memory("VmNone"); err == nil {
		t.Error("a field that is none has a value")
	}
}

// accuracy has a row for each problem, λ and number of iterations. Where all converge, the
// precisions differ by their rounding.
func TestAccuracy(t *testing.T) {
	var out bytes.Buffer
	accuracy(&out, []string{"-n", "300", "-m", "20", "-reference", "60"})
	rows := 0
	for line := range strings.Lines(out.String()) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| d = ") {
			continue
		}
		rows++
		var lambda, plain, f64, f32, rmse, rmse64, rmse32 float64
		var iterations int
		if _, err := fmt.Sscan(strings.Join(cells[2:10], " "), &lambda, &iterations, &plain, &f64, &f32, &rmse, &rmse64, &rmse32); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !(plain < 1 && f64 < 1 && f32 < 1 && rmse > 0 && math.Abs(rmse-rmse64) < 0.2 && math.Abs(rmse-rmse32) < 0.2) {
			t.Errorf("%s", line)
		}
		if iterations == 40 && lambda == 1e-4 && (plain > 1e-9 || f64 > 1e-9 || f32 > 1e-3 || f32 < 1e-9) {
			t.Errorf("with 40 iterations: %s", line)
		}
	}
	if rows != 30 {
		t.Errorf("%d rows, want 30:\n%s", rows, &out)
	}
}

func TestRMS(t *testing.T) {
	if got := rms([]float64{1, 2, 3, 4}, []float64{1, 4, 3, 0}); got != math.Sqrt(5) {
		t.Errorf("rms %g", got)
	}
}

// writeIDX writes a compressed file of bytes.
func writeIDX(t *testing.T, path string, content []byte) {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(content)
	if err = errors.Join(err, z.Close(), os.WriteFile(path, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// head is the header of a file with axes of such lengths.
func head(lengths ...uint32) []byte {
	out := []byte{0, 0, 8, byte(len(lengths))}
	for _, n := range lengths {
		out = binary.BigEndian.AppendUint32(out, n)
	}
	return out
}

// Digits are read as they were written. A file that contradicts its header is named.
func TestDigits(t *testing.T) {
	dir := t.TempDir()
	images, labels := filepath.Join(dir, "train-images-idx3-ubyte.gz"), filepath.Join(dir, "train-labels-idx1-ubyte.gz")
	pixels := []byte{0, 51, 102, 153, 204, 255, 1, 2, 3, 4, 5, 6}
	good, goodLabels := append(head(2, 2, 3), pixels...), append(head(2), 7, 9)
	writeIDX(t, images, good)
	writeIDX(t, labels, goodLabels)
	x, classes, err := digits(dir, "train")
	if err != nil || x.Len() != 2 || x.Dim() != 6 || !bytes.Equal(classes, []byte{7, 9}) {
		t.Fatalf("%v, %v, %v", x, classes, err)
	}
	for i, p := range pixels {
		if got := x.Row(i / 6)[i%6]; got != float32(p)/255 {
			t.Errorf("pixel %d is %g, want %d/255", i, got, p)
		}
	}
	for what, c := range map[string]struct{ images, labels []byte }{
		"a label less":           {good, append(head(1), 7)},
		"a pixel less":           {good[:len(good)-1], goodLabels},
		"a pixel more":           {append(bytes.Clone(good), 1), goodLabels},
		"no items":               {head(0, 2, 3), head(0)},
		"labels for images":      {goodLabels, goodLabels},
		"half a header":          {good[:9], goodLabels},
		"nothing":                {nil, goodLabels},
		"floats":                 {append([]byte{0, 0, 13, 3}, good[4:]...), goodLabels},
		"more than there can be": {head(math.MaxUint32, math.MaxUint32, math.MaxUint32), goodLabels},
	} {
		writeIDX(t, images, c.images)
		writeIDX(t, labels, c.labels)
		if _, _, err := digits(dir, "train"); err == nil || !strings.Contains(err.Error(), "train") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.WriteFile(images, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := digits(dir, "train"); !errors.Is(err, gzip.ErrHeader) {
		t.Errorf("what is not compressed: %v", err)
	}
	if _, _, err := digits(t.TempDir(), "train"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no files: %v", err)
	}
}

// The real files have 10,000 images of 28 × 28 pixels in ten classes.
func TestRealDigits(t *testing.T) {
	dir := dataDir()
	if os.Getenv("BKB_DATA") == "" {
		dir = filepath.Join("..", "..", "..", dir)
	}
	x, labels, err := digits(dir, "t10k")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no data: %v", err)
	}
	if err != nil || x.Len() != 10_000 || x.Dim() != 784 {
		t.Fatal(err)
	}
	var counts [10]int
	for _, c := range labels {
		counts[c]++
	}
	if counts[0] != 980 || counts[1] != 1135 {
		t.Errorf("classes %v", counts)
	}
}
