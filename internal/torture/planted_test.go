//go:build linux

package torture

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/torture/planted"
)

// A hunt looks for a planted bug. It returns the number of runs until a promise was
// broken, and the promise.
type hunt func(t *testing.T, most int) (runs int, found string)

type hunted struct {
	bug  string
	with string
	hunt hunt
}

// hunts are the planted bugs and the harnesses that must find them.
var hunts = []hunted{
	{"ack-before-commit", "simulation", bySimulation},
	{"read-uncommitted", "simulation", bySimulation},
	{"stale-after-refusal", "simulation", bySimulation},
	{"two-commit-tell", "simulation", bySimulation},
	{"lease-by-wall-clock", "simulation", bySimulation},
	{"heartbeat-lost", "simulation", bySimulation},
	{"clock-back", "simulation", bySimulation},
	{"stale-desk", "simulation", bySimulation},
	{"epoch-of-next", "simulation", bySimulation},
	{"request-ignored", "simulation", bySimulation},
	{"epoch-unchecked", "simulation", bySimulation},
	{"report-unchecked", "simulation", bySimulation},
	{"nan-stored", "simulation", bySimulation},
	{"queue-not-popped", "simulation", bySimulation},
	{"worker-index-stale", "simulation", bySimulation},
	{"retry-too-often", "simulation", bySimulation},
	{"budget-too-large", "simulation", bySimulation},
	{"second-tell-eaten", "simulation", bySimulation},
	{"pause-ignored", "simulation", bySimulation},
	{"fence-missing", "simulation of servers", bySimulationOfServers},
	{"claim-by-read", "simulation of servers", bySimulationOfServers},
	{"lease-by-monotonic", "simulation of servers", bySimulationOfServers},
	{"answer-after-lease", "simulation of servers", bySimulationOfServers},
	{"stale-place", "simulation of servers", bySimulationOfServers},
	{"answer-early", "kills", byKills},
	{"no-sync", "power cuts", byPower},
	{"create-no-sync", "power cuts", byPower},
	{"sync-error-full", "faults", byFaults},
	{"pg-lost-is-refused", "broken connections", byTest("./store/postgres", "TestChaos")},
	{"pg-no-compare", "broken connections", byTest("./store/postgres", "TestChaos")},
	{"checksum-skipped", "bit flips", byTest("./store", "TestEverySingleBitFlipIsRefused")},
	{"no-file-preflight", "truncations", byTest("./store/bolt", "TestStructuralDamageNamesTheStudy|TestTruncation$")},
	{"engine-reentered", "files cut in use", within(10, byTest("./store/bolt", "TestCutInUse"))},
	{"move-unnoticed", "files moved in use", byTest("./store/bolt", "TestGoneInUse")},
	{"permission-forgotten", "permission table", byTest("./tuner/server", "TestPermissions$")},
	{"token-logged", "canary", byTest("./tuner/server", "TestCanary")},
	{"token-stored", "canary", byTest("./tuner/server", "TestCanary")},
	{"name-unchecked", "worker names", byTest("./tuner/server", "TestWorkerNames$")},
	{"audit-forgotten", "audit lines", byTest("./tuner/server", "TestAudit$")},
	{"caller-forgotten", "callers in the log", byTest("./tuner/engine", "TestCallersAreStored")},
	{"reports-carried", "largest trial", byTest("./internal/torture", "TestLargestTrial")},
	{"health-counted", "health watches", byTest("./internal/torture", "TestHealthWatchFlood/plain")},
	{"health-uncapped", "health watches", byTest("./internal/torture", "TestHealthWatchFlood/plain")},
	{"strangers-uncapped", "idle connections", byTest("./internal/torture", "TestIdleConnections/plain")},
	{"memory-unchecked", "memory limit", byTest("./internal/torture", "TestMemoryLimit")},
}

// mostRuns is the number of runs within which a bug must be found. A run of a simulation
// takes milliseconds, so a bug may need seedsPerRun times as many seeds.
const (
	mostRuns    = 200
	seedsPerRun = 10
)

// sources returns the files of the product that have bugs, with the bugs in them.
func sources(t *testing.T) map[string]string {
	t.Helper()
	bugs, err := planted.Bugs()
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, b := range bugs {
		for _, p := range b.Places {
			text, known := files[p.File]
			if !known {
				read, err := os.ReadFile(filepath.Join("../..", p.File))
				if err != nil {
					t.Fatal(err)
				}
				text = string(read)
			}
			if n := strings.Count(text, "\n"+p.Old); n != 1 {
				t.Errorf("bug %s: %s has these lines %d times:\n%s", b.Name, p.File, n, p.Old)
			}
			files[p.File] = strings.Replace(text, "\n"+p.Old, "\n"+p.New, 1)
		}
	}
	for name, text := range files {
		before, after, _ := strings.Cut("\n"+text, "\npackage ")
		after, rest, _ := strings.Cut(after, "\n")
		files[name] = before + "\npackage " + after + "; import \"github.com/bkbtuner/bkb/internal/torture/planted\"\n" + rest
	}
	return files
}

// Every bug has its places in the product, and a harness that hunts it.
func TestBugsHavePlaces(t *testing.T) {
	for name, text := range sources(t) {
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	bugs, _ := planted.Bugs()
	for _, b := range bugs {
		if !slices.ContainsFunc(hunts, func(h hunted) bool { return h.bug == b.Name }) {
			t.Errorf("no harness hunts %s", b.Name)
		}
	}
	if len(bugs) != len(hunts) {
		t.Errorf("%d bugs and %d hunts", len(bugs), len(hunts))
	}
}

// TestPlanted plants each bug and expects the harness to notice. It builds this test again
// with the bugs.
func TestPlanted(t *testing.T) {
	if os.Getenv(overlayVariable) == "" {
		rebuilt(t)
		return
	}
	only := os.Getenv("BKB_TORTURE_BUG")
	for _, h := range hunts {
		if only != "" && !strings.HasPrefix(h.bug, only) {
			continue
		}
		t.Run(h.bug, func(t *testing.T) {
			planted.Set(h.bug)
			t.Setenv("BKB_PLANTED", h.bug) // for the processes to start
			defer planted.Set("")
			runs, found := h.hunt(t, mostRuns)
			if found == "" {
				t.Fatalf("not noticed in %d runs", runs)
			}
			if len(found) > 160 {
				found = found[:160] + "…"
			}
			figures(t, "found by %s in run %d: %s", h.with, runs, found)
		})
	}
}

// rebuilt runs TestPlanted and TestNothingPlanted in a build with the bugs.
func rebuilt(t *testing.T) {
	if os.Getenv("BKB_LONG") == "" {
		t.Skip("takes minutes: set BKB_LONG, as make planted does")
	}
	folder := t.TempDir()
	replace := make(map[string]string)
	for name, text := range sources(t) {
		at, err := filepath.Abs(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		replace[at] = filepath.Join(folder, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(replace[at], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-timeout=120m", "-vet=off", "-overlay", path, "-v", "-run", "^(TestPlanted|TestNothingPlanted)$", ".")
	cmd.Env = append(os.Environ(), overlayVariable+"="+path)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

// TestNothingPlanted checks that no harness finds a bug where there is none.
func TestNothingPlanted(t *testing.T) {
	if os.Getenv(overlayVariable) == "" {
		t.Skip("TestPlanted runs it")
	}
	planted.Set("")
	t.Setenv("BKB_PLANTED", "")
	tried := make(map[string]bool)
	for _, h := range hunts {
		if tried[h.with] {
			continue
		}
		tried[h.with] = true
		t.Run(h.with, func(t *testing.T) {
			if runs, found := h.hunt(t, 10); found != "" {
				t.Errorf("run %d: %s", runs, found)
			}
		})
	}
}

func bySimulation(t *testing.T, most int) (int, string) {
	return bySeeds(t, most, 0)
}

func bySimulationOfServers(t *testing.T, most int) (int, string) {
	return bySeeds(t, most, simServers)
}

func bySeeds(t *testing.T, most, servers int) (int, string) {
	first := seed(t)
	for i := range most * seedsPerRun {
		if s := simulateFleet(t, first+uint64(i), servers); s.fault != "" {
			return i + 1, s.fault
		}
	}
	return most * seedsPerRun, ""
}

func byKills(t *testing.T, most int) (int, string) {
	k := &killing{folder: t.TempDir(), random: rand.New(rand.NewPCG(seed(t), 1))}
	for i := range most {
		if i%cyclesPerFile == 0 {
			k.fresh(t, i)
		}
		if k.cycle(t, i); len(k.faults) > 0 {
			return i + 1, k.faults[0]
		}
	}
	return most, ""
}

func byPower(t *testing.T, most int) (int, string) {
	p := &power{random: rand.New(rand.NewPCG(seed(t), 2)), folder: t.TempDir()}
	for p.cuts < most {
		if p.run(t, cutsPerRun); len(p.faults) > 0 {
			return p.cuts, p.faults[0]
		}
	}
	return most, ""
}

func byFaults(t *testing.T, most int) (int, string) {
	f := &faulting{folder: t.TempDir(), random: rand.New(rand.NewPCG(seed(t), 5))}
	for f.runs < most {
		if f.run(t, faults[0], 1+f.runs%12); len(f.faults) > 0 {
			return f.runs, f.faults[0]
		}
	}
	return most, ""
}

// within repeats a hunt that depends on which of several goroutines meets a fault.
func within(runs int, h hunt) hunt {
	return func(t *testing.T, most int) (int, string) {
		for i := range min(runs, most) {
			if _, found := h(t, 1); found != "" {
				return i + 1, found
			}
		}
		return runs, ""
	}
}

// byTest runs tests of another package. They must fail, and not because the build does.
func byTest(pkg, tests string) hunt {
	return func(t *testing.T, _ int) (int, string) {
		root, err := filepath.Abs("../..")
		if err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(t.TempDir(), "p.test")
		build := exec.CommandContext(t.Context(), "go", append(append([]string{"test", "-vet=off"}, overlaid()...), "-c", "-o", program, pkg)...)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cmd := exec.CommandContext(t.Context(), program, "-test.run", tests, "-test.timeout", "5m")
		cmd.Dir = filepath.Join(root, pkg)
		cmd.Env = append(os.Environ(), "BKB_TORTURE_EVIDENCE="+t.TempDir(), "BKB_TORTURE_FIGURES=")
		if err := cmd.Run(); err == nil {
			return 1, ""
		}
		return 1, fmt.Sprintf("%s fails in %s", tests, pkg)
	}
}
