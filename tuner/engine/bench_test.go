package engine

import (
	"context"
	"fmt"
	"runtime"
	"testing"

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
