//go:build linux

package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// fault is an error or a delay of a system call.
type fault struct {
	call, what string
	fatal      bool // the server cannot know the state of the disk, and must end
}

var faults = []fault{
	{"fdatasync", "error=EIO", true},
	{"pwrite64", "error=EIO", true},
	{"pwrite64", "error=ENOSPC", false},
	{"ftruncate", "error=ENOSPC", false},
	{"fdatasync", "error=ENOSPC", true},
	{"ftruncate", "error=EIO", true},
	{"fsync", "error=EIO", true},
	{"fdatasync", "delay_exit=50000", false}, // microseconds
	{"pwrite64", "delay_enter=20000", false},
}

// TestFaults fails or delays the N-th write, sync or truncation of a server under load.
// Its answers are true afterwards. After an error that leaves it in doubt, it ends with
// a failure.
func TestFaults(t *testing.T) {
	heavy(t)
	n := often(t, "FAULTS", 5)
	seed := seed(t)
	f := &faulting{folder: evidence(t, seed), random: rand.New(rand.NewPCG(seed, 5))}
	begun := time.Now()
	for i := range n {
		kind := faults[i%len(faults)]
		f.run(t, kind, 1+i/len(faults)*(1+f.random.IntN(3)))
		for _, text := range f.faults {
			t.Error(text)
		}
		if t.Failed() {
			return
		}
	}
	figures(t, "%d runs in %s with an injected fault, %d of which ended the server; %d acknowledged calls, 0 lost, 0 doubled, no success and no refusal that was not true",
		n, time.Since(begun).Round(time.Second), f.ended, f.acked)
	if f.ended == 0 {
		t.Error("no fault ever ended a server: this was no test")
	}
}

type faulting struct {
	folder       string
	random       *rand.Rand
	runs         int
	ended, acked int
	faults       []string
}

func (f *faulting) fail(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// run injects one fault at the k-th call of one of a server's threads.
func (f *faulting) run(t *testing.T, kind fault, k int) {
	f.runs++
	db := filepath.Join(f.folder, fmt.Sprintf("tuner-%d.db", f.runs))
	s, err := bolt.Open(db, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	trace := tracing(t, os.DevNull)
	under := []string{
		trace[0], "-f", "--seccomp-bpf", "-qq", "-o", os.DevNull, "-e", "signal=none",
		"-e", "trace=" + kind.call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", kind.call, kind.what, k),
	}
	var log syncBuffer
	server, err := serve(t, db, &log, under)
	if err != nil {
		t.Fatal(err)
	}
	failed := func() bool { return strings.Contains(log.String(), "level=ERROR") }
	crowd := newCrowd(t)
	ctx, cancel := crowd.life(250*time.Millisecond, func() bool { return failed() || crowd.tells.Load() > 10 })
	defer cancel()
	crowd.run(ctx, f.random.Uint64(), "f", func() tuner.Service { return patient{server.dial(t)} })
	name := fmt.Sprintf("%s at the %d. %s", kind.what, k, kind.call)
	if kind.fatal && failed() {
		f.ended++
		if ended, err := server.wait(time.Minute); !ended || err == nil {
			f.fail("%s: the server knows that it failed, and did not end with a failure: %v", name, err)
		}
	} else {
		server.kill()
	}
	f.judge(db, crowd, name)
	if len(f.faults) > 0 {
		_ = writeJSON(filepath.Join(f.folder, "journal.json"), crowd.journal)
		_ = copyFile(db, filepath.Join(f.folder, "failed.db"))
		_ = os.WriteFile(filepath.Join(f.folder, "server.log"), []byte(log.String()), 0o644)
	}
	_ = os.Remove(db)
}

func (f *faulting) judge(db string, crowd *crowd, name string) {
	h, err := readFile(db)
	if err != nil {
		f.fail("%s: %v", name, err)
		return
	}
	verdict := judge(h, crowd.journal.Calls)
	f.acked += verdict.acked
	for _, text := range verdict.faults {
		f.fail("%s: %s", name, text)
	}
}

// TestFullDisk fills the disk of a server. The server refuses writes, continues to
// read, and recovers without a restart. No acknowledged data are lost.
func TestFullDisk(t *testing.T) {
	heavy(t)
	seed := seed(t)
	folder := filepath.Join(evidence(t, seed), "disk")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=4m"); err != nil {
		lacking(t, "a small disk cannot be mounted here: %v", err)
	}
	defer func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) }()
	db, crowd := filepath.Join(folder, "tuner.db"), newCrowd(t)
	server, err := serve(t, db, io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	calm := server.dial(t)
	defer calm.Close()
	phase := func(tag string, life time.Duration, tells int64) (told, full int) {
		least := crowd.tells.Load() + tells
		ctx, cancel := crowd.life(life, func() bool { return crowd.tells.Load() >= least })
		defer cancel()
		since := time.Now().UnixNano()
		crowd.run(ctx, seed, tag, func() tuner.Service { return patient{server.dial(t)} })
		for _, c := range crowd.journal.Calls {
			if c.End >= since && c.Code == tuner.Exhausted {
				full++
			}
		}
		return crowd.journal.count("tell", acked, since), full
	}
	before, _ := phase("before", 150*time.Millisecond, 10)
	if err := fillDisk(filepath.Join(folder, "others")); err != nil {
		t.Fatal(err)
	}
	// What the file has kept free may take some writes before one is refused.
	var full int
	for round, deadline := 0, time.Now().Add(time.Minute); full == 0; round++ {
		if time.Now().After(deadline) {
			t.Fatal("nothing was refused on a full disk in a minute: this was no test")
		}
		_, full = phase(fmt.Sprint("full", round, "-"), 400*time.Millisecond, 0)
	}
	if s, err := calm.Study(context.Background(), "before-0"); err != nil || s.Trials == 0 {
		t.Errorf("reading with a full disk: %+v, %v", s.Trials, err)
	}
	if err := os.Remove(filepath.Join(folder, "others")); err != nil {
		t.Fatal(err)
	}
	after, refused := phase("after", 150*time.Millisecond, 1)
	if after == 0 || refused > 0 {
		t.Errorf("with room again %d tells were acknowledged and %d calls refused", after, refused)
	}
	server.kill()
	h, err := readFile(db)
	if err != nil {
		t.Fatal(err)
	}
	verdict := judge(h, crowd.journal.Calls)
	for _, f := range verdict.faults {
		t.Error(f)
	}
	figures(t, "%d tells before, %d calls refused while the disk was full, %d tells after, without a restart; %d acknowledged calls, 0 lost", before, full, after, verdict.acked)
}

// fillDisk writes until the disk is full.
func fillDisk(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for block := make([]byte, 1<<16); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			return err
		}
	}
	return nil
}

// TestTwoServers checks that a file has one owner, which the error of a second server
// names.
func TestTwoServers(t *testing.T) {
	heavy(t)
	seed := seed(t)
	db := filepath.Join(evidence(t, seed), "tuner.db")
	first, err := serve(t, db, io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.kill()
	crowd := newCrowd(t)
	ctx, cancel := context.WithCancel(context.Background())
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		crowd.run(ctx, seed, "t", func() tuner.Service { return patient{first.dial(t)} })
	}()
	second := filepath.Join(filepath.Dir(db), "second")
	if err := os.Mkdir(second, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var log syncBuffer
		other, err := serveAt(t, db, "unix:"+filepath.Join(second, "s"), &log, nil, "--lock-timeout", "100ms")
		if err == nil {
			other.kill()
			t.Fatal("two servers have one file")
		}
		if want := fmt.Sprintf("process %d", first.cmd.Process.Pid); !strings.Contains(log.String(), want) {
			t.Errorf("the second server does not say that %s has the file: %s", want, log.String())
		}
	}
	cancel()
	<-worked
	first.kill()
	h, err := readFile(db)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range judge(h, crowd.journal.Calls).faults {
		t.Error(f)
	}
}

// TestFrozenWorker stops a worker for longer than its lease, and another worker gets
// the trial. The outcome of the first is kept as a late result, and that of the other
// counts. No lease ends because the server was stopped.
func TestFrozenWorker(t *testing.T) {
	t.Parallel() // it waits more than it computes
	heavy(t)
	seed := seed(t)
	db := filepath.Join(evidence(t, seed), "tuner.db")
	server, err := serve(t, db, io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	c := server.dial(t)
	defer c.Close()
	ctx := context.Background()
	sp := spec(t)
	sp.Lease, sp.MaxTrials = time.Second, 1
	if _, err := c.CreateStudy(ctx, "s", study.Create{Spec: sp}); err != nil {
		t.Fatal(err)
	}
	asked, err := c.Ask(ctx, "s", study.Ask{Worker: "frozen"})
	if err != nil {
		t.Fatal(err)
	}
	first := asked.Trials[0]
	var second study.Trial
	for limit := time.Now().Add(time.Minute); ; {
		asked, err := c.Ask(ctx, "s", study.Ask{Worker: "other", Lease: 4 * time.Second})
		if err == nil {
			second = asked.Trials[0]
			break
		}
		if tuner.CodeOf(err) != tuner.NoneLeft || time.Now().After(limit) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if second.Number != first.Number || second.Epoch != first.Epoch+1 {
		t.Fatalf("%+v after %+v", second, first)
	}
	outcome := func(v float64) study.Outcome {
		return study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{v}}}}
	}
	if _, err := c.Heartbeat(ctx, "s", study.Heartbeat{Trial: first.Number, Epoch: first.Epoch}); tuner.CodeOf(err) != tuner.LeaseLost {
		t.Errorf("a heartbeat under a lost lease: %v", err)
	}
	late, err := c.Tell(ctx, "s", study.Tell{Trial: first.Number, Epoch: first.Epoch, Outcome: outcome(1)})
	if err != nil || !late.Late {
		t.Errorf("the frozen worker's tell: %+v, %v", late, err)
	}
	// The server stops for longer than the second worker's lease, which keeps the
	// trial.
	if _, err := c.Heartbeat(ctx, "s", study.Heartbeat{Trial: second.Number, Epoch: second.Epoch, Lease: 4 * time.Second}); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(-server.cmd.Process.Pid, syscall.SIGSTOP)
	time.Sleep(6 * time.Second)
	_ = syscall.Kill(-server.cmd.Process.Pid, syscall.SIGCONT)
	told, err := c.Tell(ctx, "s", study.Tell{Trial: second.Number, Epoch: second.Epoch, Outcome: outcome(2)})
	if err != nil || told.Late || told.Trial.State != study.Completed || len(told.Trial.Late) != 1 {
		t.Errorf("the other worker's tell after the server was stopped: %+v, %v", told, err)
	}
}
