package postgres

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// BenchmarkTell commits one tell at a time, by 64 clients in 64 studies at once, in turns
// to a database that syncs and to a file on the same disk.
func BenchmarkTell(b *testing.B) {
	server, err := pgtest.Start()
	if err != nil {
		pgtest.Skip(b, err)
	}
	defer server.Stop()
	if _, _, err := Init(b.Context(), server.Address(), InitOptions{}); err != nil {
		b.Fatal(err)
	}
	database, err := Open(b.Context(), server.Address(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer database.Close()
	file, err := bolt.Open(filepath.Join(b.TempDir(), "studies.db"), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	const clients, tells = 64, 100
	stores := []store.Store{database, file}
	heads := make([][]store.Info, len(stores))
	for i, s := range stores {
		for c := range clients {
			info, err := s.Create(b.Context(), fmt.Sprint("client-", c), eventtest.Examples()[:1])
			if err != nil {
				b.Fatal(err)
			}
			heads[i] = append(heads[i], info)
		}
	}
	var took [2]time.Duration
	for b.Loop() {
		for i, s := range stores {
			took[i] += tellAll(b, s, heads[i], tells)
		}
	}
	total := float64(b.N * clients * tells)
	b.ReportMetric(total/took[0].Seconds(), "tells/s")
	b.ReportMetric(total/took[1].Seconds(), "bolt-tells/s")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// summaryLength is about the size of the summary of a study without attributes.
const summaryLength = 100

// tellAll lets a client for each study tell outcomes, and returns the time it took.
func tellAll(b *testing.B, s store.Store, infos []store.Info, tells int) time.Duration {
	var wg sync.WaitGroup
	var failed atomic.Value
	begun := time.Now()
	for i := range infos {
		wg.Go(func() {
			for n := range tells {
				told := study.Event{Time: time.Now(), Request: study.Request{ID: fmt.Sprintf("%032d", n)}, Body: study.Told{
					Trial: n, Epoch: 1, Outcome: study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{0.5}}}},
				}}
				if err := s.Commit(b.Context(), infos[i].ID, infos[i].Head, []study.Event{told}, make([]byte, summaryLength)); err != nil {
					failed.Store(err)
					return
				}
				infos[i].Head++
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begun)
}
