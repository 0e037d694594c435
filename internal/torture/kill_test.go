//go:build linux

package torture

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
)

// Limits of a sufficient load. They are tells per second from readiness to the kill,
// over runs that lasted long enough.
const (
	minimumTells = 200
	minimumLife  = 200 * time.Millisecond
)

// cyclesPerFile is the number of kills that a file goes through.
const cyclesPerFile = 10

// TestKill kills the server under load again and again. After each kill the file is
// valid and holds all acknowledged data once. The clients then repeat the calls that
// got no answer.
func TestKill(t *testing.T) {
	heavy(t)
	n := often(t, "KILLS", 5)
	seed := seed(t)
	folder := evidence(t, seed)
	k := &killing{folder: folder, random: rand.New(rand.NewPCG(seed, 1))}
	begun := time.Now()
	// A run with too little load proves little and does not count.
	cycle := 0
	for ; cycle < n+k.idle && k.idle <= 10+n; cycle++ {
		if k.last = n + k.idle - 1; cycle%cyclesPerFile == 0 {
			k.fresh(t, cycle)
		}
		k.cycle(t, cycle)
		for _, f := range k.faults {
			t.Error(f)
		}
		if t.Failed() {
			k.keep(t)
			return
		}
	}
	slices.Sort(k.readies)
	figures(t, "%d kills in %s (and %d with less than %d tells a second, which do not count), %d acknowledged calls (%d with a retry over a restart), %d unanswered, 0 lost, 0 doubled; %d operations linearizable; tells a second median %.0f, least %.0f; ready after a kill median %s, most %s",
		cycle-k.idle, time.Since(begun).Round(time.Second), k.idle, minimumTells, k.acked, k.retried, k.doubtful, k.ordered, median(k.rates), minimum(k.rates), quantile(k.readies, 0.5).Round(time.Millisecond), k.readies[len(k.readies)-1].Round(time.Millisecond))
	if cycle < n+k.idle {
		lacking(t, "only %d of %d kills count: %d servers had less than %d tells a second; this machine is too busy to be a test", cycle-k.idle, n, k.idle, minimumTells)
	}
}

// killing is a series of kills.
type killing struct {
	folder  string
	last    int // cycle
	random  *rand.Rand
	db      string
	crowd   *crowd
	log     *syncBuffer
	rates   []float64 // tells per second
	readies []time.Duration

	faults                   []string
	acked, doubtful, retried int
	ordered                  int // operations in histories found to be linearizable
	idle                     int // runs with too little load to count
}

func (k *killing) fail(format string, args ...any) {
	k.faults = append(k.faults, fmt.Sprintf(format, args...))
}

func (k *killing) fresh(t *testing.T, cycle int) {
	if k.db != "" {
		_ = os.Remove(k.db)
	}
	k.db = filepath.Join(k.folder, fmt.Sprintf("tuner-%d.db", cycle))
	k.crowd, k.log = newCrowd(t), new(syncBuffer)
}

// life returns how long the server of a cycle runs. It is usually long enough to
// measure the load, and sometimes only a moment.
func (k *killing) life() time.Duration {
	if k.random.IntN(3) == 0 {
		return time.Duration(k.random.Int64N(int64(minimumLife)))
	}
	return minimumLife + time.Duration(k.random.Int64N(int64(150*time.Millisecond)))
}

func (k *killing) cycle(t *testing.T, cycle int) {
	s, err := serve(t, k.db, k.log, nil)
	if err != nil {
		k.fail("cycle %d: %v", cycle, err)
		return
	}
	k.readies = append(k.readies, s.ready.Sub(s.started))
	for _, c := range k.crowd.pending {
		if c.Doubt {
			k.retried++
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		k.crowd.run(ctx, k.random.Uint64(), fmt.Sprint("c", cycle), func() tuner.Service { return s.dial(t) })
	}()
	life := k.life()
	time.Sleep(time.Until(s.ready.Add(life)))
	s.kill()
	lived := time.Since(s.ready)
	cancel()
	<-worked
	if life >= minimumLife {
		rate := float64(k.crowd.journal.count("tell", acked, s.ready.UnixNano())) / lived.Seconds()
		if k.rates = append(k.rates, rate); rate < minimumTells {
			k.idle++
			k.last++
		}
	}
	k.validate(t, cycle)
}

// validate checks the file against the answers that clients got.
func (k *killing) validate(t *testing.T, cycle int) {
	if err := checkFile(t, k.db); err != nil {
		k.fail("cycle %d: %v", cycle, err)
		return
	}
	h, err := readFile(k.db)
	if err != nil {
		k.fail("cycle %d: %v", cycle, err)
		return
	}
	verdict := judge(h, k.crowd.journal.Calls)
	for _, f := range verdict.faults {
		k.fail("cycle %d: %s", cycle, f)
	}
	if cycle%cyclesPerFile == cyclesPerFile-1 || cycle == k.last {
		n, faults := linearizable(k.folder, k.crowd.journal.Calls)
		for _, f := range faults {
			k.fail("cycle %d: %s", cycle, f)
		}
		k.ordered += n
		k.acked, k.doubtful = k.acked+verdict.acked, k.doubtful+verdict.doubtful
	}
}

// keep saves the data for examining the failure and checking it again.
func (k *killing) keep(t *testing.T) {
	if err := writeJSON(filepath.Join(k.folder, "journal.json"), k.crowd.journal); err != nil {
		t.Error(err)
	}
	if err := copyFile(k.db, filepath.Join(k.folder, "failed.db")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(k.folder, "server.log"), []byte(k.log.String()), 0o644); err != nil {
		t.Error(err)
	}
}

// readFile reads a file that no process has open.
func readFile(path string) (holding, error) {
	s, err := bolt.Open(path, bolt.Options{MustExist: true, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return readAll(s)
}

func minimum(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Min(values)
}

// TestAgain checks the folder of a failed run again.
func TestAgain(t *testing.T) {
	folder := os.Getenv("BKB_TORTURE_AGAIN")
	if folder == "" {
		t.Skip("checks the folder of a failed run, which BKB_TORTURE_AGAIN names")
	}
	var j journal
	if err := readJSON(filepath.Join(folder, "journal.json"), &j); err != nil {
		t.Fatal(err)
	}
	h, err := readFile(filepath.Join(folder, "failed.db"))
	if err != nil {
		t.Fatal(err)
	}
	verdict := judge(h, j.Calls)
	for _, f := range verdict.faults {
		t.Error(f)
	}
	t.Logf("%d calls, %d acknowledged, %d studies", len(j.Calls), verdict.acked, len(h))
}

// TestKillCreation kills servers while they create their file. The next server starts
// from the remains.
func TestKillCreation(t *testing.T) {
	heavy(t)
	n := often(t, "CREATIONS", 6)
	seed := seed(t)
	folder, random := evidence(t, seed), rand.New(rand.NewPCG(seed, 4))
	probe, err := serve(t, filepath.Join(folder, "probe.db"), io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	ready := probe.ready.Sub(probe.started)
	probe.kill()
	made := 0
	for i := range n {
		db := filepath.Join(folder, fmt.Sprintf("new-%d.db", i))
		cmd := exec.Command(tunerBinary(t), "serve", "--db", db, "--listen", "unix:"+db+".s")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(2 * ready))))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := os.Stat(db); err == nil {
			made++
			if err := checkFile(t, db); err != nil {
				t.Errorf("creation %d: %v", i, err)
			}
		}
		s, err := bolt.Open(db, bolt.Options{})
		if err != nil {
			t.Fatalf("creation %d: %v", i, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		_ = os.Remove(db)
	}
	figures(t, "%d kills while a file was created, in %d of them it was there; each time the next program could begin", n, made)
}
