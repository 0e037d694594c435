package dataset

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWriteNPY reads what is written, here and with NumPy if BKB_PYTHON has it.
func TestWriteNPY(t *testing.T) {
	var b bytes.Buffer
	if err := WriteNPY(&b, []float64{1, -2.5, math.Inf(1), 1e-300, 5, 6}, 3, 2); err != nil {
		t.Fatal(err)
	}
	if start := bytes.IndexByte(b.Bytes(), '\n') + 1; start%64 != 0 {
		t.Errorf("the numbers begin at byte %d", start)
	}
	h, err := readNPYHeader(bufio.NewReader(bytes.NewReader(b.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{3, 2}, h.shape); diff != "" || h.fortran || h.cell.size != 8 {
		t.Errorf("header %+v", h)
	}
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	numbers := write("numbers.npy", b.Bytes())
	var one, texts, none bytes.Buffer
	if err := errors.Join(WriteNPY(&one, []float64{7, 8}, 2), WriteNPYTexts(&texts, []string{"ä", "", "xyz"}), WriteNPYTexts(&none, nil)); err != nil {
		t.Fatal(err)
	}
	table, err := Open(context.Background(), Options{NoTarget: true}, write("one.npy", one.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if diff := cmp.Diff([][]float64{{7}, {8}}, cells(t, table)); diff != "" {
		t.Error(diff)
	}
	python := os.Getenv("BKB_PYTHON")
	if python == "" {
		t.Skip("BKB_PYTHON names no Python with NumPy, so NumPy does not read the files")
	}
	script := `import sys, numpy as np
for path in sys.argv[1:]: print(np.load(path).tolist(), np.load(path).dtype)`
	out, err := exec.Command(python, "-c", script, numbers, write("texts.npy", texts.Bytes()), write("none.npy", none.Bytes())).CombinedOutput()
	want := "[[1.0, -2.5], [inf, 1e-300], [5.0, 6.0]] float64\n['ä', '', 'xyz'] <U3\n[] <U1\n"
	if err != nil || string(out) != want {
		t.Errorf("NumPy reads\n%s%v", out, err)
	}
}

func TestWriteNPYRefuses(t *testing.T) {
	err := WriteNPY(&bytes.Buffer{}, make([]float64, 5), 2, 3)
	if err == nil || !strings.Contains(err.Error(), "5 numbers do not have the shape [2 3]") {
		t.Error(err)
	}
	full := errors.New("disk full")
	for _, err := range []error{WriteNPY(failing{full}, []float64{1}, 1), WriteNPYTexts(failing{full}, []string{"a"})} {
		if !errors.Is(err, full) {
			t.Error(err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
