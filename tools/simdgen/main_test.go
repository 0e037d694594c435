package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGeneratedIsCurrent generates the assembly again and compares it with the committed
// files.
func TestGeneratedIsCurrent(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"avx2_amd64.s", "avx2_amd64.go", "avx512_amd64.s", "avx512_amd64.go"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../../internal/simd", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what the generator writes: run go generate ./internal/simd", name)
		}
	}
}

// TestConventions searches the assembly for mistakes that make it slow without an error.
// They are instructions without the VEX prefix, and upper halves that are not cleared.
func TestConventions(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir); err != nil {
		t.Fatal(err)
	}
	for _, machine := range []target{avx2, avx512} {
		text, err := os.ReadFile(filepath.Join(dir, machine.name+"_amd64.s"))
		if err != nil {
			t.Fatal(err)
		}
		checkConventions(t, machine, text)
	}
}

// wide matches the registers that only AVX-512 has.
var wide = regexp.MustCompile(`\b(Z[0-9]|K[0-7]|[XY](1[6-9]|[23][0-9]))`)

func checkConventions(t *testing.T, machine target, text []byte) {
	t.Helper()
	integer := strings.Fields("MOVQ ADDQ SUBQ IMULQ IMUL3Q SHRQ ANDQ DECQ INCQ CMPQ TESTQ XORQ LEAQ JMP JZ JNZ JLT JGE JLS RET PREFETCHT0 PREFETCHT1")
	last := ""
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "\t") {
			continue
		}
		op := strings.Fields(line)[0]
		if machine == avx2 && wide.MatchString(line) {
			t.Errorf("AVX-512 on the path avx2: %s", line)
		}
		if op[0] != 'V' && !slices.Contains(integer, op) {
			t.Errorf("instruction without VEX: %s", line)
		}
		if strings.Contains(line, "R14") || strings.Contains(line, "R15") {
			t.Errorf("register of the Go runtime: %s", line)
		}
		if op == "RET" && last != "VZEROUPPER" {
			t.Errorf("RET after %s", last)
		}
		last = op
	}
}

// TestAllocate checks that no value is overwritten while it is still needed, in
// registers or in memory.
func TestAllocate(t *testing.T) {
	for _, p := range []precision{f32, f64} {
		for _, machine := range []target{avx2, avx512} {
			for _, f := range functions {
				g, result := newProgram(machine, p, f.body)
				checkAllocation(t, f.name, g, result, g.allocate(result, never))
			}
		}
		for _, pair := range fused {
			phi := functions[indexOf(pair.function, len(functions), func(i int) string { return functions[i].name })]
			for _, machine := range []target{avx2, avx512} {
				if pair.least > machine.slots {
					continue
				}
				g, result := newProgram(machine, p, phi.body)
				a := g.allocate(result, machine.slots)
				if a.slots < 2 || a.slots > machine.slots {
					t.Errorf("%s: %d slots", phi.name, a.slots)
				}
				checkAllocation(t, "fused "+phi.name, g, result, a)
			}
		}
	}
}

func checkAllocation(t *testing.T, name string, g *program, result value, a allocation) {
	t.Helper()
	holder := map[int]int{} // slot → value in it
	parked := -1
	for i, n := range g.nodes {
		for v, at := range a.parked {
			if at != i {
				continue
			}
			if parked >= 0 && a.dies[parked] > i {
				t.Fatalf("%s: value %d is put where %d is parked", name, v, parked)
			}
			if v != i && holder[a.slot[v]] != v {
				t.Fatalf("%s: value %d is gone when it is to be parked", name, v)
			}
			parked = v
		}
		for _, arg := range n.args {
			if !g.nodes[arg].inMemory() && parked != int(arg) && (a.slot[arg] < 0 || holder[a.slot[arg]] != int(arg)) {
				t.Fatalf("%s: value %d is gone when %d needs it", name, arg, i)
			}
		}
		if a.slot[i] >= 0 {
			holder[a.slot[i]] = i
		}
	}
	if holder[a.slot[result]] != int(result) {
		t.Fatalf("%s: the result is gone", name)
	}
}
