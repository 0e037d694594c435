//go:build linux

package torture

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner"
)

// TestOverload has four times as many clients as the server can serve at once. The
// server does at least 80 % of its best work, in bounded memory. If other processes use
// the machine too, the test counts tells per second of processor time, because tells
// per second of wall time then depend on those processes.
func TestOverload(t *testing.T) {
	rounds := often(t, "OVERLOAD", 0)
	if rounds == 0 {
		t.Skip("takes 8 s a round; make torture runs three rounds (BKB_TORTURE_OVERLOAD)")
	}
	seed := seed(t)
	s, err := serve(t, filepath.Join(evidence(t, seed), "tuner.db"), io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	var peaks, bySecond, byProcessor, others []float64
	anonymous := 0.0
	for round := range rounds {
		peak := load(t, s, 4, fmt.Sprint("peak", round), seed) // the server is built for 64 clients
		over := load(t, s, 16, fmt.Sprint("over", round), seed)
		anonymous = max(anonymous, memoryMB(t, s.cmd.Process.Pid))
		peaks = append(peaks, peak.tells/peak.seconds)
		bySecond = append(bySecond, over.tells/over.seconds/(peak.tells/peak.seconds))
		byProcessor = append(byProcessor, over.tells/over.ours/(peak.tells/peak.ours))
		others = append(others, (over.busy+peak.busy-over.ours-peak.ours)/(over.all+peak.all))
	}
	shared := median(others) > 0.2
	figures(t, "256 clients: %.0f %% of the tells that 64 do, a second, and %.0f %% for a second of processors (medians of %d rounds; %.0f a second; others had %.0f %% of the machine), %.0f MB of memory",
		100*median(bySecond), 100*median(byProcessor), rounds, median(peaks), 100*median(others), anonymous)
	goodput := median(bySecond)
	if shared {
		goodput = median(byProcessor)
	}
	if goodput < 0.8 {
		t.Errorf("goodput falls to %.0f %%", 100*goodput)
	}
	if anonymous > 400 {
		t.Errorf("the server has %.0f MB", anonymous)
	}
}

// burst is the result of some seconds of load.
type burst struct {
	tells, seconds float64
	ours           float64 // processor seconds of the server and its clients
	busy, all      float64 // processor seconds of all processes, and in total
}

// load runs crowds on a server. It measures them for some seconds once each has told a
// result, so that connecting does not count.
func load(t *testing.T, s *serving, crowds int, tag string, seed uint64) burst {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	var all []*crowd
	for i := range crowds {
		w := newCrowd(t)
		all = append(all, w)
		work.Go(func() {
			w.run(ctx, seed+uint64(i), fmt.Sprint(tag, "-", i), func() tuner.Service { return patient{s.dial(t)} })
		})
	}
	for limit := time.Now().Add(time.Minute); slices.ContainsFunc(all, func(w *crowd) bool { return w.tells.Load() == 0 }); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("some of %d crowds told nothing in a minute", crowds)
		}
	}
	told := func() (n float64) {
		for _, w := range all {
			n += float64(w.tells.Load())
		}
		return n
	}
	begun, b := time.Now(), processors(t, s.cmd.Process.Pid)
	b.tells = -told()
	time.Sleep(3 * time.Second)
	end := processors(t, s.cmd.Process.Pid)
	return burst{
		tells: b.tells + told(), seconds: time.Since(begun).Seconds(),
		ours: end.ours - b.ours, busy: end.busy - b.busy, all: end.all - b.all,
	}
}

// processors reads the processor time of the server and this process, of all processes,
// and in total.
func processors(t testing.TB, pid int) (b burst) {
	t.Helper()
	const tick = 100 // per second, in /proc on Linux
	sum := func(path string, pick func(fields []float64) float64) float64 {
		text, err := os.ReadFile(path)
		if err != nil {
			lacking(t, "no figures of processes on this system: %v", err)
		}
		line, _, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), "\n") // the part before may contain spaces
		var fields []float64
		for _, f := range strings.Fields(line)[1:] {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			fields = append(fields, v)
		}
		return pick(fields) / tick
	}
	times := func(f []float64) float64 { return f[10] + f[11] } // utime and stime, after the state
	b.ours = sum(fmt.Sprintf("/proc/%d/stat", pid), times) + sum("/proc/self/stat", times)
	b.all = sum("/proc/stat", func(f []float64) (all float64) {
		for _, v := range f[:8] {
			all += v
		}
		return all
	})
	b.busy = b.all - sum("/proc/stat", func(f []float64) float64 { return f[3] + f[4] }) // idle, iowait
	return b
}

// memoryMB returns the memory of a process without mapped files.
func memoryMB(t testing.TB, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		lacking(t, "no figures of processes on this system: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb / 1024
		}
	}
	t.Fatal("no RssAnon in the status of the process")
	return 0
}

// descriptors returns the number of files that a process has open.
func descriptors(t testing.TB, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		lacking(t, "no figures of processes on this system: %v", err)
	}
	return len(entries)
}

// sample is the resource use of a server at one moment.
type sample struct {
	at                time.Duration
	heap              float64 // bytes in use after a collection, approximately
	goroutines, files float64
	fileMB, trials    float64
}

// TestSoak runs a server under load for the duration BKB_TORTURE_SOAK. Its resource use
// grows with its data only.
func TestSoak(t *testing.T) {
	text := os.Getenv("BKB_TORTURE_SOAK")
	if text == "" {
		t.Skip("takes half an hour; make soak runs it (BKB_TORTURE_SOAK)")
	}
	life, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	seed := seed(t)
	db := filepath.Join(evidence(t, seed), "tuner.db")
	var log syncBuffer
	s, err := serveAt(t, db, "unix:"+filepath.Join(filepath.Dir(db), "s"), &log, nil, "--metrics", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	_, rest, _ := strings.Cut(log.String(), `msg="serving metrics" address=`)
	for limit := time.Now().Add(time.Minute); rest == "" && time.Now().Before(limit); {
		time.Sleep(20 * time.Millisecond)
		_, rest, _ = strings.Cut(log.String(), `msg="serving metrics" address=`)
	}
	address, _, _ := strings.Cut(rest, "\n")
	samples := soak(t, s, db, address, seed, life)
	if len(samples) < 6 {
		t.Fatalf("only %d samples in %s", len(samples), life)
	}
	samples = samples[len(samples)/4:] // once it has warmed up
	first, last := samples[0], samples[len(samples)-1]
	hours := (last.at - first.at).Hours()
	heap := slope(samples, func(s sample) float64 { return s.heap / (1 << 20) })
	figures(t, "%s under load: heap %+.2f MB/h (%.0f MB at the end), goroutines %.0f → %.0f, open files %.0f → %.0f, %.0f bytes of file for each trial",
		life, heap, last.heap/(1<<20), first.goroutines, last.goroutines, first.files, last.files, (last.fileMB-first.fileMB)*(1<<20)/max(last.trials-first.trials, 1))
	if last.goroutines > first.goroutines+25 || last.files > first.files+10 {
		t.Error("goroutines or files leak")
	}
	if hours >= 0.3 && heap > 16 {
		t.Errorf("the heap grows by %.1f MB an hour", heap)
	}
}

// soak has crowds come and go. Each crowd deletes its studies at the end, so that
// little data remains.
func soak(t *testing.T, s *serving, db, metrics string, seed uint64, life time.Duration) (samples []sample) {
	begun := time.Now()
	trials := 0.0
	for round := 0; time.Since(begun) < life; round++ {
		w := newCrowd(t)
		ctx, cancel := context.WithTimeout(context.Background(), min(10*time.Second, life/20+time.Second))
		w.run(ctx, seed+uint64(round), fmt.Sprint("soak", round), func() tuner.Service { return patient{s.dial(t)} })
		cancel()
		c := s.dial(t)
		for _, name := range w.studies {
			if v, err := c.Study(context.Background(), name); err == nil {
				trials += float64(v.Trials)
			}
			if err := c.DeleteStudy(context.Background(), name); err != nil {
				t.Error(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(200 * time.Millisecond) // until connections have closed
		samples = append(samples, measure(t, s, db, metrics, time.Since(begun), trials))
	}
	return samples
}

func measure(t *testing.T, s *serving, db, metrics string, at time.Duration, trials float64) sample {
	t.Helper()
	answer, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(db)
	if err != nil {
		t.Fatal(err)
	}
	return sample{
		at: at, heap: metric(t, text, "go_memstats_heap_alloc_bytes"), goroutines: metric(t, text, "go_goroutines"),
		files: float64(descriptors(t, s.cmd.Process.Pid)), fileMB: float64(info.Size()) / (1 << 20), trials: trials,
	}
}

// metric reads a number in the text format of Prometheus.
func metric(t testing.TB, text []byte, name string) float64 {
	t.Helper()
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			v, err := strconv.ParseFloat(string(bytes.TrimSpace(rest)), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("the server has no metric %s", name)
	return 0
}

// slope returns the growth of a figure per hour, by least squares.
func slope(samples []sample, of func(sample) float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, s := range samples {
		x, y := s.at.Hours(), of(s)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
