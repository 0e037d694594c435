package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/store/storetest/longstudy"
	"github.com/bkbtuner/bkb/tuner/study"
)

// BenchmarkLoad reads a study from its log, as the first call after a restart does.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			st := newFaulty()
			st.Store = memory.New()
			longstudy.Fill(b, st, "s", "", n, 10)
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				tn := Open(st, Options{})
				if _, err := tn.Ask(context.Background(), "s", study.Ask{}); err != nil {
					b.Fatal(err)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				tn.Close()
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "heapB/trial")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/load")
		})
	}
}

// BenchmarkClients has 64 clients ask and tell in one study, and in a study each.
func BenchmarkClients(b *testing.B) {
	const clients = 64
	for _, studies := range []int{1, clients} {
		b.Run(fmt.Sprint(studies), func(b *testing.B) {
			st := must(bolt.Open(filepath.Join(b.TempDir(), "s.db"), bolt.Options{}))
			tn := Open(st, Options{LongLived: true})
			defer tn.Close()
			for i := range studies {
				must(tn.CreateStudy(b.Context(), fmt.Sprint("s", i), study.Create{Spec: testSpec(b, nil)}))
			}
			b.ResetTimer()
			var work sync.WaitGroup
			for i := range clients {
				name := fmt.Sprint("s", i%studies)
				work.Go(func() {
					for range b.N {
						t := must(tn.Ask(b.Context(), name, study.Ask{})).Trials[0]
						must(tn.Tell(b.Context(), name, study.Tell{Trial: t.Number, Epoch: t.Epoch, Outcome: study.Outcome{State: study.Failed}}))
					}
				})
			}
			work.Wait()
			b.ReportMetric(float64(clients*b.N)/b.Elapsed().Seconds(), "pairs/s")
		})
	}
}
