package main

import (
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
)

// TestDataBombs reads small files of very many rows with little memory. Each is refused with the
// limit and a remedy, and not with a trace of the runtime.
func TestDataBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector needs more address space; go test ./cmd/tuner runs it")
	}
	const rows = 1 << 22
	array := func(path, fortran string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		z := zip.NewWriter(f)
		z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
		w, err := z.Create("x.npy")
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%-117s\n", fmt.Sprintf("{'descr': '<f8', 'fortran_order': %s, 'shape': (%d, 16), }", fortran, rows))
		head := append([]byte("\x93NUMPY\x01\x00"), binary.LittleEndian.AppendUint16(nil, uint16(len(text)))...)
		_, err = w.Write(append(head, text...))
		zeros := make([]byte, 1<<20)
		for i := 0; i < rows*16*8 && err == nil; i += len(zeros) {
			_, err = w.Write(zeros)
		}
		return errors.Join(err, z.Close())
	}
	lines := func(path, head, line string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
		if err != nil {
			return err
		}
		_, err = io.WriteString(z, head)
		for block := strings.Repeat(line, 1<<14); err == nil && len(head) < rows*6/(1<<14); head += "." {
			_, err = io.WriteString(z, block)
		}
		return errors.Join(err, z.Close())
	}
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, says string
		write      func(path string) error
	}{
		{"c.npz", "give --chunk-file", func(path string) error { return array(path, "False") }},
		{"t.csv.gz", "give --chunk-file", func(path string) error { return lines(path, "a,b,c,y\n", "0,0,0,1\n") }},
		{"fortran.npz", "save it in C order", func(path string) error { return array(path, "True") }},
		{"t.svm.gz", "or read fewer", func(path string) error { return lines(path, "", "1 1:1 2:1 3:1\n") }},
	}[:racetest.Size(2, 4)] {
		path := filepath.Join(dir, c.file)
		if err := c.write(path); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() > 2<<20 {
			t.Fatalf("%s: %v, %v", c.file, info, err)
		}
		script := `ulimit -v 2000000; exec "$0" train falkon --data "$1" --validation 0 --out model` // about 2 GB, most of which every Go program reserves
		cmd := exec.Command("sh", "-c", script, filepath.Join(dir, "tuner"), path)
		if err := os.Symlink(exe, filepath.Join(dir, "tuner")); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		text := string(out)
		if err == nil || strings.Contains(text, "goroutine") || !strings.Contains(text, "bytes of memory that a table may take") || !strings.Contains(text, c.says) {
			t.Errorf("%s: %v: %.400s", c.file, err, text)
		}
	}
}
