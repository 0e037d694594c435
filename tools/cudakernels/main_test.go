package main

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestPTX makes the PTX again. Clang reads the sources, so that the test reads them too for
// the cache of results.
func TestPTX(t *testing.T) {
	t.Chdir("../../internal/gpu/cuda/kernels")
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

var spills = regexp.MustCompile(`(\d+) bytes spill stores`)

// mostSpilled is what fused products in float32 spill. A second block on a multiprocessor makes
// them a tenth faster all the same (docs/gpu.md).
const mostSpilled = 256

// TestAssemble lets NVIDIA's assembler read the PTX, where $PTXAS or the path has it. Some
// wheels of PyPI contain it, such as triton.
func TestAssemble(t *testing.T) {
	ptxas, err := exec.LookPath(cmp.Or(os.Getenv("PTXAS"), "ptxas"))
	if err != nil {
		t.Skip("there is no ptxas to assemble the PTX; name it in PTXAS")
	}
	files, err := filepath.Glob("../../internal/gpu/cuda/kernels/*.ptx")
	if err != nil || len(files) == 0 {
		t.Fatalf("no PTX: %v", err)
	}
	for _, file := range files {
		for _, arch := range []string{"sm_75", "sm_80", "sm_90"} {
			out, err := exec.Command(ptxas, "-v", "-arch="+arch, file, "-o", os.DevNull).CombinedOutput()
			if err != nil {
				t.Errorf("%s, %s: %v\n%s", file, arch, err, out)
			}
			for _, spill := range spills.FindAllSubmatch(out, -1) {
				if bytes, _ := strconv.Atoi(string(spill[1])); bytes > mostSpilled {
					t.Errorf("%s, %s: a kernel spills %d bytes of registers, more than %d", file, arch, bytes, mostSpilled)
				}
			}
		}
	}
}
