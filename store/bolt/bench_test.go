package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// fataler is the common part of tests and benchmarks.
type fataler interface {
	Helper()
	Context() context.Context
	Fatal(args ...any)
}

const clients = 64

// summaryBytes is about the size of the summary of a study without attributes.
const summaryBytes = 100

// benchTrials lists the numbers of trials to store beforehand. BKB_BENCH_TRIALS=1000000
// adds more.
func benchTrials(b *testing.B) []int {
	list := []int{0, 100_000}
	if s := os.Getenv("BKB_BENCH_TRIALS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// BenchmarkTell commits one tell at a time, by 64 clients in 64 studies at once,
// through the committer and with one transaction for each.
func BenchmarkTell(b *testing.B) {
	for _, stored := range benchTrials(b) {
		b.Run(fmt.Sprintf("stored=%d", stored), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "studies.db")
			preload(b, path, stored)
			var shared, alone time.Duration
			for b.Loop() {
				shared += tellAll(b, path, maxBatch, 100)
				alone += tellAll(b, path, 1, 10) * 10
			}
			tells := float64(b.N * clients * 100)
			b.ReportMetric(tells/shared.Seconds(), "tells/s")
			b.ReportMetric(tells/alone.Seconds(), "alone-tells/s")
			b.ReportMetric(alone.Seconds()/shared.Seconds(), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// preload stores trials in studies of 10,000.
func preload(b *testing.B, path string, stored int) {
	s, err := Open(path, Options{tuning: tuning{noSync: true}})
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i*10_000 < stored; i++ {
		fill(b, s, fmt.Sprint("stored-", i), 10_000)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		b.Fatal(err)
	}
}

// tellAll lets every client tell the given number of outcomes and returns the time it
// took.
func tellAll(b *testing.B, path string, batch, tells int) time.Duration {
	s, err := Open(path, Options{tuning: tuning{batch: batch}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ids := clientStudies(b, s)
	var wg sync.WaitGroup
	var failed atomic.Value
	start := time.Now()
	for _, info := range ids {
		wg.Go(func() {
			for i := range tells {
				pos := info.Head + study.Position(i)
				if err := s.Commit(b.Context(), info.ID, pos, []study.Event{told(i)}, make([]byte, summaryBytes)); err != nil {
					failed.Store(err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if err := failed.Load(); err != nil {
		b.Fatal(err)
	}
	return took
}

func clientStudies(b *testing.B, s *Store) []store.Info {
	infos := make([]store.Info, clients)
	for i := range infos {
		name := fmt.Sprint("client-", i)
		info, err := s.Lookup(b.Context(), name)
		if err != nil {
			info, err = s.Create(b.Context(), name, []study.Event{opened()})
		}
		if err != nil {
			b.Fatal(err)
		}
		infos[i] = info
	}
	return infos
}

// BenchmarkOpen opens and reads a study of 100,000 trials.
func BenchmarkOpen(b *testing.B) {
	const stored = 100_000
	path := filepath.Join(b.TempDir(), "studies.db")
	s, err := Open(path, Options{tuning: tuning{noSync: true}})
	if err != nil {
		b.Fatal(err)
	}
	info := fill(b, s, "large", stored)
	status, err := s.Status(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	var opening, reading time.Duration
	var heap uint64
	for b.Loop() {
		start := time.Now()
		s, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		opening += time.Since(start)
		start = time.Now()
		n := 0
		for _, err := range s.Read(b.Context(), info.ID, 1) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		reading += time.Since(start)
		if n != int(info.Head) {
			b.Fatal(n)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap = max(heap, m.HeapInuse)
		_ = s.Close()
	}
	b.ReportMetric(float64(opening.Milliseconds())/float64(b.N), "open-ms")
	b.ReportMetric(float64(reading.Milliseconds())/float64(b.N), "read-ms")
	b.ReportMetric(float64(heap)/1e6, "heap-MB")
	b.ReportMetric(float64(status.UsedBytes)/stored, "B/trial")
	b.ReportMetric(0, "ns/op")
}
