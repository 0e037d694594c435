package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/storetest/longstudy"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/study"
)

// BenchmarkRestart kills a server with a long study in the middle of its work and starts
// it again. It measures the time until the server is ready and until the first ask is
// answered, the speed of asks then, and the memory.
func BenchmarkRestart(b *testing.B) {
	for _, k := range []struct {
		proposer string
		n        int
	}{{"sobol", 1_000}, {"sobol", 100_000}, {"bkb", 10_000}, {"bkb", 100_000}} {
		b.Run(fmt.Sprintf("%s/%d", k.proposer, k.n), func(b *testing.B) {
			db := filepath.Join(b.TempDir(), "tuner.db")
			st, err := bolt.Open(db, bolt.Options{})
			if err != nil {
				b.Fatal(err)
			}
			longstudy.Fill(b, st, "s", k.proposer, k.n, 8)
			if err := st.Close(); err != nil {
				b.Fatal(err)
			}
			var ready, first time.Duration
			var asks []time.Duration
			var anon float64
			for b.Loop() {
				start := time.Now()
				process, address := startServer(b, db)
				ready += time.Since(start)
				c, err := client.Dial(address, client.Options{Plaintext: true})
				if err != nil {
					b.Fatal(err)
				}
				for i := range 300 {
					start := time.Now()
					answer, err := c.Ask(context.Background(), "s", study.Ask{})
					if err != nil {
						b.Fatal(err)
					}
					if took := time.Since(start); i == 0 {
						first += took
					} else {
						asks = append(asks, took)
					}
					if k.proposer != "bkb" {
						continue // suggestions that look at nothing
					}
					t := answer.Trials[0]
					loss := study.Metric{Name: "loss", Values: []float64{1 / float64(i+1)}}
					if _, err := c.Tell(context.Background(), "s", study.Tell{
						Trial: t.Number, Epoch: t.Epoch, Outcome: study.Outcome{State: study.Completed, Metrics: []study.Metric{loss}},
					}); err != nil {
						b.Fatal(err)
					}
				}
				anon = max(anon, anonymousMB(b, process.Process.Pid))
				c.Close()
				if err := process.Process.Signal(syscall.SIGKILL); err != nil {
					b.Fatal(err)
				}
				_ = process.Wait() // killed
			}
			slices.Sort(asks)
			b.ReportMetric(ready.Seconds()/float64(b.N)*1e3, "ready-ms")
			b.ReportMetric(first.Seconds()/float64(b.N)*1e3, "first-ask-ms")
			b.ReportMetric(asks[len(asks)/2].Seconds()*1e3, "ask-p50-ms")
			b.ReportMetric(asks[len(asks)*99/100].Seconds()*1e3, "ask-p99-ms")
			b.ReportMetric(anon, "RssAnon-MB")
		})
	}
}

// startServer runs this program's serve command in a process of its own.
func startServer(b testing.TB, db string, flags ...string) (*exec.Cmd, string) {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"serve", "--db", db, "--listen", "127.0.0.1:0", "--rate", "-1"}, flags...)...)
	cmd.Args[0] = "tuner" // what testscript.Main goes by
	stderr, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "Listening on "); ok {
			go func() {
				for lines.Scan() {
				}
			}()
			return cmd, address
		}
	}
	b.Fatalf("the server ended without listening: %v", cmd.Wait())
	return nil, ""
}

// TestServerTakesOver starts a server of a file and an address that another one still has.
// It waits until that one stops.
func TestServerTakesOver(t *testing.T) {
	t.Parallel() // it waits more than it computes
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals to stop a server with")
	}
	db := filepath.Join(t.TempDir(), "tuner.db")
	first, address := startServer(t, db)
	stopped := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() {
		err := first.Process.Signal(syscall.SIGTERM)
		stopped <- errors.Join(err, first.Wait())
	})
	second, again := startServer(t, db, "--listen", address)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if again != address {
		t.Errorf("the second server listens on %s, the first one on %s", again, address)
	}
	if err := errors.Join(second.Process.Signal(syscall.SIGTERM), second.Wait()); err != nil {
		t.Error(err)
	}
}

// anonymousMB is the process's resident memory without mapped files, in MB.
func anonymousMB(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skipf("no memory figures on this system: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb / 1024
		}
	}
	b.Fatal("no RssAnon in the status of the process")
	return 0
}

// BenchmarkLocalAsk asks a study of BKB without a server. A process starts, reads the
// study, suggests and ends. The first makes a model, the others find it. CPU time is that
// of the process.
func BenchmarkLocalAsk(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			db := filepath.Join(b.TempDir(), "tuner.db")
			st, err := bolt.Open(db, bolt.Options{})
			if err != nil {
				b.Fatal(err)
			}
			longstudy.Fill(b, st, "s", "bkb", n, 8)
			if err := st.Close(); err != nil {
				b.Fatal(err)
			}
			exe, err := os.Executable()
			if err != nil {
				b.Fatal(err)
			}
			ask := func() (wall, cpu time.Duration) {
				cmd := exec.Command(exe, "ask", "s", "--db", db)
				cmd.Args[0] = "tuner"
				start := time.Now()
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				return time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			}
			first, firstCPU := ask()
			var wall, cpu time.Duration
			for b.Loop() {
				w, c := ask()
				wall, cpu = wall+w, cpu+c
			}
			b.ReportMetric(first.Seconds()*1e3, "first-ms")
			b.ReportMetric(firstCPU.Seconds()*1e3, "first-cpu-ms")
			b.ReportMetric(wall.Seconds()/float64(b.N)*1e3, "ask-ms")
			b.ReportMetric(cpu.Seconds()/float64(b.N)*1e3, "cpu-ms")
		})
	}
}
