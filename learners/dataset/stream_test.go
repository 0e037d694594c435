package dataset

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners/data"
)

// mixedCSV returns n rows of numbers, categories and missing cells.
func mixedCSV(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("a,b,c,y\n")
	for range n {
		a := fmt.Sprint(r.NormFloat64())
		if r.IntN(10) == 0 {
			a = ""
		}
		fmt.Fprintf(&b, "%s,%c,%d,%g\n", a, 'k'+rune(r.IntN(5)), r.IntN(7), r.Float64())
	}
	return b.String()
}

// A chunk file gives the same numbers as memory, to the bit, for blocks of any size.
func TestStreamingIsInMemory(t *testing.T) {
	path := file(t, "x.csv", mixedCSV(2500))
	chunks := filepath.Join(t.TempDir(), "x.chunks")
	for _, way := range []data.Missing{data.FillMean, data.FillMedian, data.FillMostFrequent} {
		o := data.EncodingOptions{Missing: way}
		rows, err := data.Split(2500, nil, 9, 0.7, 0.3)
		if err != nil {
			t.Fatal(err)
		}
		inMemory := opened(t, Options{Float32: true}, path)
		written := opened(t, Options{ChunkFile: chunks}, path)
		reopened := opened(t, Options{}, chunks)
		want := fitted(t, inMemory, rows[0], o)
		wantX, wantY := pairs(t, applied(t, want, inMemory))
		testX, _ := pairs(t, mustSubset(t, applied(t, want, inMemory), rows[1]))
		for _, table := range []*Table{written, reopened} {
			e := fitted(t, table, rows[0], o)
			if diff := cmp.Diff(want, e); diff != "" {
				t.Fatal(diff)
			}
			src := applied(t, e, table)
			if _, resident := src.(kernel.Resident); resident {
				t.Fatal("a chunk file is resident")
			}
			x, y := pairs(t, src)
			some, _ := pairs(t, mustSubset(t, src, rows[1]))
			if !slices.EqualFunc(wantX, x, slices.Equal) || !slices.Equal(wantY, y) || !slices.EqualFunc(testX, some, slices.Equal) {
				t.Fatal("what is streamed is not what is in memory")
			}
			for _, max := range []int{1, 7, 1000, 9999} {
				compareBlocks(t, src, wantX, wantY, max)
			}
		}
	}
}

func mustSubset(t testing.TB, src data.Source, rows []int) data.Source {
	t.Helper()
	s, err := data.Subset(src, rows)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compareBlocks reads src in blocks of max rows and reuses them, once with targets and
// once without.
func compareBlocks(t *testing.T, src data.Source, wantX [][]float64, wantY []float64, max int) {
	t.Helper()
	both, err := src.OpenPairs(background)
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	inputs, err := src.Open(background)
	if err != nil {
		t.Fatal(err)
	}
	defer inputs.Close()
	var block *data.Block
	var rows kernel.Rows
	buf := make([]float64, src.Dim())
	for at := 0; ; {
		block, err = both.Next(background, max, block)
		x, err2 := inputs.Next(background, max, rows)
		if err == io.EOF && err2 == io.EOF && at == len(wantX) {
			return
		}
		if err != nil || err2 != nil || block.X.Len() != min(max, len(wantX)-at) || x.Len() != block.X.Len() {
			t.Fatalf("at row %d: %v, %v", at, err, err2)
		}
		rows = x
		for i := range x.Len() {
			for _, r := range []kernel.Rows{x, block.X} {
				kernel.CopyRow(buf, r, i)
				if !slices.Equal(wantX[at+i], buf) {
					t.Fatalf("blocks of %d, row %d: %v, want %v", max, at+i, buf, wantX[at+i])
				}
			}
			if block.Y[i] != wantY[at+i] {
				t.Fatalf("target %d", at+i)
			}
		}
		at += x.Len()
	}
}

// Reading and encoding a chunk file takes the same memory for 4 times the rows, in one file
// and in many.
func TestMemoryBound(t *testing.T) {
	racetest.Alone(t)
	peak := func(n, parts int) uint64 {
		dir := t.TempDir()
		var paths []string
		for p := range parts {
			paths = append(paths, filepath.Join(dir, fmt.Sprintf("big-%03d.csv", p)))
			f, err := os.Create(paths[p])
			if err != nil {
				t.Fatal(err)
			}
			w := bufio.NewWriter(f)
			for i := n * p / parts; i < n*(p+1)/parts; i++ {
				fmt.Fprintf(w, "%d,%d.5,%d,%d,%d,%d,%d,%d\n", i, i%97, i%13, i%7, i%5, i%3, i%11, i%17)
			}
			w.Flush()
			f.Close()
		}
		var most uint64
		sample := func() {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
		table := opened(t, Options{ChunkFile: filepath.Join(dir, "big.chunks")}, paths...)
		sample()
		e := fitted(t, table, nil, data.EncodingOptions{Task: data.Regression})
		sample()
		src := applied(t, e, table)
		cursor, err := src.OpenPairs(background)
		if err != nil {
			t.Fatal(err)
		}
		var block *data.Block
		for blocks := 0; ; blocks++ {
			if block, err = cursor.Next(background, 1024, block); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if blocks%16 == 0 {
				sample()
			}
		}
		return most
	}
	small, large, parts := peak(50_000, 1), peak(200_000, 1), peak(200_000, 200)
	cells := uint64(200_000 * 8 * 4)
	t.Logf("live heap %d KiB for 50,000 rows, %d KiB for 200,000, %d KiB for them in 200 files; their cells %d KiB", small>>10, large>>10, parts>>10, cells>>10)
	if large > small+1<<20 || parts > small+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes, and %d for several files", small, large, parts)
	}
}

// Damage to any byte of a chunk file is reported.
func TestDamagedChunks(t *testing.T) {
	racetest.Alone(t)
	path := filepath.Join(t.TempDir(), "x.chunks")
	opened(t, Options{ChunkFile: path}, file(t, "x.csv", mixedCSV(40)))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) error {
		p := file(t, "d.chunks", string(data))
		table, err := Open(background, Options{Format: Chunks}, p)
		if err != nil {
			return err
		}
		defer table.Close()
		return table.scan(background, nil, func(int, []float64) error { return nil })
	}
	if err := read(good); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(good); i += 3 {
		bad := []byte(string(good))
		bad[i] ^= 0x10
		if read(bad) == nil {
			t.Errorf("a flipped bit in byte %d of %d was not noticed", i, len(good))
		}
		if i%30 == 0 && read(good[:i]) == nil {
			t.Errorf("a file cut at byte %d of %d was not noticed", i, len(good))
		}
	}
}

// A failed conversion leaves no file and no part of one. An older file of the same name
// stays as it was.
func TestFailedConversion(t *testing.T) {
	dir := t.TempDir()
	chunks := filepath.Join(dir, "x.chunks")
	if err := os.WriteFile(chunks, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"1,2\n3\n", "1,2\nx,3\n4,5\n", "", "1\n2\n"} {
		if _, err := Open(background, Options{ChunkFile: chunks, Target: []string{"1"}}, file(t, "x.csv", text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	entries, err := os.ReadDir(dir)
	old, err2 := os.ReadFile(chunks)
	if err != nil || err2 != nil || len(entries) != 1 || string(old) != "old" {
		t.Errorf("left: %v, %q, %v", entries, old, err2)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	cancel()
	path := file(t, "x.csv", mixedCSV(10))
	if _, err := Open(ctx, Options{}, path); err != context.Canceled {
		t.Errorf("Open: %v", err)
	}
	table := opened(t, Options{}, path)
	if _, err := table.FitEncoding(ctx, nil, data.EncodingOptions{Missing: data.FillMean}); err != context.Canceled {
		t.Errorf("FitEncoding: %v", err)
	}
	e := fitted(t, table, nil, data.EncodingOptions{Missing: data.FillMean})
	if _, err := table.Encode(ctx, e); err != context.Canceled {
		t.Errorf("Encode: %v", err)
	}
}

// Generated rows do not depend on the blocks, and a later range continues them.
func TestGenerate(t *testing.T) {
	whole, err := data.Generate[float64](data.SUSYLike{Seed: 1}, 0, 3000)
	if err != nil {
		t.Fatal(err)
	}
	x, y := pairs(t, whole)
	for _, max := range []int{1, 999, 5000} {
		compareBlocks(t, whole, x, y, max)
	}
	rest, err := data.Generate[float64](data.SUSYLike{Seed: 1}, 1000, 2000)
	if err != nil {
		t.Fatal(err)
	}
	restX, _ := pairs(t, rest)
	if !slices.EqualFunc(x[1000:], restX, slices.Equal) {
		t.Error("rows from 1000 on differ")
	}
	all, err := data.Targets(background, whole)
	if diff := cmp.Diff(y, all); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := data.Generate[float32](data.SUSYLike{}, 0, 0); err == nil {
		t.Error("0 rows: no error")
	}
}

// Kernel products on sources have the same result in memory and from files.
func TestOperatorOnSource(t *testing.T) {
	path := file(t, "x.csv", mixedCSV(700))
	inMemory := opened(t, Options{Float32: true}, path)
	chunked := opened(t, Options{ChunkFile: filepath.Join(t.TempDir(), "x.chunks")}, path)
	e := fitted(t, inMemory, nil, data.EncodingOptions{Missing: data.FillMean})
	k, err := kernel.NewGaussian(2)
	if err != nil {
		t.Fatal(err)
	}
	var results [2][]float64
	for i, table := range []*Table{inMemory, chunked} {
		src := applied(t, e, table)
		centers, err := kernel.Select(background, src, []int{1, 300, 600})
		if err != nil {
			t.Fatal(err)
		}
		op, err := kernel.NewOperator(k, src, centers, kernel.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer op.Close()
		y, err := data.Targets(background, src)
		if err != nil {
			t.Fatal(err)
		}
		results[i] = make([]float64, 3)
		if err := op.ApplyT(background, results[i], y); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(results[0], results[1]); diff != "" || results[0][0] == 0 {
		t.Error(diff, results)
	}
}

// socket returns the path of a socket, which is not a regular file.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // a short path, as sockets have
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return path
}

// A chunk file replaces only chunk files and empty files.
func TestChunkFileReplacesNothingElse(t *testing.T) {
	csv := file(t, "x.csv", "a,b\n1,2\n3,4\n")
	link := filepath.Join(t.TempDir(), "link.csv")
	if err := os.Symlink(csv, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{csv, link, file(t, "notes.txt", "mine"), t.TempDir(), socket(t)} {
		before, _ := os.Lstat(path)
		var wrong *FileError
		if _, err := Open(background, Options{ChunkFile: path}, csv); !errors.As(err, &wrong) || wrong.File != path {
			t.Errorf("%s: %v", path, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) || after.Size() != before.Size() {
			t.Errorf("%s was replaced: %v", path, err)
		}
	}
	again := file(t, "empty.chunks", "")
	for range 2 {
		opened(t, Options{ChunkFile: again}, csv)
	}
	if diff := cmp.Diff([][]float64{{1, 2}, {3, 4}}, cells(t, opened(t, Options{}, again))); diff != "" {
		t.Error(diff)
	}
}
