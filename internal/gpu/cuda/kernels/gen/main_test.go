//go:build cuda

package main

import (
	"errors"
	"os"
	"testing"
)

// TestPTX makes the PTX again. Clang reads the sources, so that the test reads them too for
// the cache of results.
func TestPTX(t *testing.T) {
	t.Chdir("..")
	for _, name := range []string{"product.cu", "algebra.cu", "dev.h"} {
		if _, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	switch err := run(true); {
	case errors.Is(err, errOther):
		t.Skip(err)
	case err != nil:
		t.Error(err)
	}
}
