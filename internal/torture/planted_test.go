//go:build planted && linux

package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/internal/planted"
)

// buildTags are the tags of the real binary.
var buildTags = []string{"-tags", "planted"}

// A hunt looks for a planted bug. It returns the number of runs until a promise was
// broken, and the promise.
type hunt func(t *testing.T, most int) (runs int, found string)

// hunts are the planted bugs and the harnesses that must find them.
var hunts = []struct {
	bug  planted.Bug
	with string
	hunt hunt
}{
	{planted.AckBeforeCommit, "simulation", bySimulation},
	{planted.ReadUncommitted, "simulation", bySimulation},
	{planted.StaleAfterRefusal, "simulation", bySimulation},
	{planted.TwoCommitTell, "simulation", bySimulation},
	{planted.LeaseByWallClock, "simulation", bySimulation},
	{planted.HeartbeatLost, "simulation", bySimulation},
	{planted.ClockBack, "simulation", bySimulation},
	{planted.StaleDesk, "simulation", bySimulation},
	{planted.EpochOfNext, "simulation", bySimulation},
	{planted.RequestIgnored, "simulation", bySimulation},
	{planted.EpochUnchecked, "simulation", bySimulation},
	{planted.ReportUnchecked, "simulation", bySimulation},
	{planted.NaNStored, "simulation", bySimulation},
	{planted.QueueNotPopped, "simulation", bySimulation},
	{planted.WorkerIndexStale, "simulation", bySimulation},
	{planted.RetryTooOften, "simulation", bySimulation},
	{planted.BudgetTooLarge, "simulation", bySimulation},
	{planted.SecondTellEaten, "simulation", bySimulation},
	{planted.PauseIgnored, "simulation", bySimulation},
	{planted.FenceMissing, "simulation of servers", bySimulationOfServers},
	{planted.ClaimByRead, "simulation of servers", bySimulationOfServers},
	{planted.LeaseByMonotonic, "simulation of servers", bySimulationOfServers},
	{planted.AnswerAfterLease, "simulation of servers", bySimulationOfServers},
	{planted.StalePlace, "simulation of servers", bySimulationOfServers},
	{planted.AnswerEarly, "kills", byKills},
	{planted.NoSync, "power cuts", byPower},
	{planted.CreateNoSync, "power cuts", byPower},
	{planted.SyncErrorFull, "faults", byFaults},
	{planted.PgLostIsRefused, "broken connections", byTest("./store/postgres", "TestChaos")},
	{planted.PgNoCompare, "broken connections", byTest("./store/postgres", "TestChaos")},
	{planted.ChecksumSkipped, "bit flips", byTest("./store", "TestEverySingleBitFlipIsRefused")},
	{planted.NoFilePreflight, "truncations", byTest("./store/bolt", "TestStructuralDamageNamesTheStudy|TestTruncation$")},
	{planted.EngineReentered, "files cut in use", within(10, byTest("./store/bolt", "TestCutInUse"))},
	{planted.MoveUnnoticed, "files moved in use", byTest("./store/bolt", "TestGoneInUse")},
	{planted.PermissionForgotten, "permission table", byTest("./tuner/server", "TestPermissions$")},
	{planted.TokenLogged, "canary", byTest("./tuner/server", "TestCanary")},
	{planted.TokenStored, "canary", byTest("./tuner/server", "TestCanary")},
	{planted.NameUnchecked, "worker names", byTest("./tuner/server", "TestWorkerNames$")},
	{planted.AuditForgotten, "audit lines", byTest("./tuner/server", "TestAudit$")},
	{planted.CallerForgotten, "callers in the log", byTest("./tuner/engine", "TestCallersAreStored")},
	{planted.ReportsCarried, "largest trial", byTest("./internal/torture", "TestLargestTrial")},
	{planted.HealthCounted, "health watches", byTest("./internal/torture", "TestHealthWatchFlood/plain")},
	{planted.HealthUncapped, "health watches", byTest("./internal/torture", "TestHealthWatchFlood/plain")},
	{planted.StrangersUncapped, "idle connections", byTest("./internal/torture", "TestIdleConnections/plain")},
	{planted.MemoryUnchecked, "memory limit", byTest("./internal/torture", "TestMemoryLimit")},
}

// mostRuns is the number of runs within which a bug must be found. A run of a simulation
// takes milliseconds, so a bug may need seedsPerRun times as many seeds.
const (
	mostRuns    = 200
	seedsPerRun = 10
)

// TestPlanted plants each bug and expects the harness to notice.
func TestPlanted(t *testing.T) {
	only := os.Getenv("BKB_TORTURE_BUG")
	for _, h := range hunts {
		if only != "" && only != string(h.bug) {
			continue
		}
		t.Run(string(h.bug), func(t *testing.T) {
			planted.Set(h.bug)
			t.Setenv("BKB_PLANTED", string(h.bug)) // for the processes to start
			defer planted.Set("")
			runs, found := h.hunt(t, mostRuns)
			if found == "" {
				t.Fatalf("nobody noticed in %d runs", runs)
			}
			if len(found) > 160 {
				found = found[:160] + "…"
			}
			figures(t, "found by %s in run %d: %s", h.with, runs, found)
		})
	}
}

// TestNothingPlanted checks that no harness finds a bug where there is none.
func TestNothingPlanted(t *testing.T) {
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
		build := exec.CommandContext(context.Background(), "go", "test", "-tags", "planted", "-c", "-o", filepath.Join(t.TempDir(), "p.test"), pkg)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cmd := exec.CommandContext(context.Background(), build.Args[6], "-test.run", tests, "-test.timeout", "5m")
		cmd.Dir = filepath.Join(root, pkg)
		cmd.Env = append(os.Environ(), "BKB_TORTURE_EVIDENCE="+t.TempDir(), "BKB_TORTURE_FIGURES=")
		if err := cmd.Run(); err == nil {
			return 1, ""
		}
		return 1, fmt.Sprintf("%s fails in %s", tests, pkg)
	}
}
