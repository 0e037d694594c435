package atomicfile_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/internal/atomicfile"
)

// TestName writes a file for each of many texts, made of what leads elsewhere. Every text has a
// file of its own, in the folder.
func TestName(t *testing.T) {
	const seed = 20261127
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	pieces := []string{"/", "..", ".", "\\", "a", "-", "_", "%", "%2f", "~2", ":", " ", "\x00", "\n", "é", "e\u0301", "\u202e", "\xff", "con"}
	texts := map[string]bool{"": true, "x": true, "step-scale": true, "/../../../victim": true}
	for range 2000 {
		text := ""
		for range 1 + random.IntN(6) {
			text += pieces[random.IntN(len(pieces))]
		}
		texts[text] = true
	}
	long := make([]byte, 5000)
	for i := range long {
		long[i] = 'a'
		texts[string(long[:i+1])] = true
	}
	outer := t.TempDir()
	dir := filepath.Join(outer, "in")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for text := range texts {
		if err := os.WriteFile(filepath.Join(dir, atomicfile.Name(text)), nil, 0o600); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	within, _ := os.ReadDir(dir)
	outside, _ := os.ReadDir(outer)
	if len(within) != len(texts) || len(outside) != 1 {
		t.Errorf("%d texts made %d files and %d elsewhere", len(texts), len(within), len(outside)-1)
	}
	for _, plain := range []string{"x", "step-scale", "s-history.1", "lr_2"} {
		if name := atomicfile.Name(plain); name != plain {
			t.Errorf("%q became %q", plain, name)
		}
	}
}

// TestSweep checks that the next write removes what a killed one left, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	var left []string
	for range 3 {
		f, err := atomicfile.New(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		left = append(left, filepath.Base(f.Name()))
		if len(left) < 3 { // the last is still being written
			f.Close()
		}
	}
	for _, other := range []string{"f.tmp", "f.mine.tmp", "g" + left[0][1:], "f.ABCDEFGHIJ.tmp.bak"} {
		if err := os.WriteFile(filepath.Join(dir, other), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	atomicfile.Sweep(path)
	for k, name := range left {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != (k == 2) {
			t.Errorf("file %d: %v", k, err)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) != 5 {
		t.Errorf("there are %v", all)
	}
}
