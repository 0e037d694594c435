package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestUpToDate(t *testing.T) {
	t.Chdir("..") // to the folder of the module
	dir := t.TempDir()
	if err := generate(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"include/cuda.h", "forward.h"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../internal/gpu/cuda/driver", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what cudadriver makes; run go generate ./internal/gpu/cuda/driver", name)
		}
	}
}

func TestConstants(t *testing.T) {
	got, err := constants("A, B = 0x10, C, D = 1<<30")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []constant{{"A", 0}, {"B", 16}, {"C", 17}, {"D", 1 << 30}} {
		if got[i] != want {
			t.Errorf("constant %d is %v, want %v", i, got[i], want)
		}
	}
	if _, err := constants("A = B"); err == nil {
		t.Error("an enumeration with a name for a value was accepted")
	}
}
