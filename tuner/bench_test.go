package tuner

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// longStudy fills a store with a study "s" of n told trials of ten parameters.
func longStudy(b testing.TB, st store.Store, n int) {
	b.Helper()
	var parameters []space.Parameter
	for i := range 10 {
		parameters = append(parameters, space.NewFloat(fmt.Sprintf("parameter-%d", i), 0, 1))
	}
	sp, err := space.New(parameters...)
	if err != nil {
		b.Fatal(err)
	}
	var s study.Study
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}}
	do := func(c study.Command) []study.Event {
		now = now.Add(time.Second)
		_, events, err := s.Decide(now, c)
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range events {
			if err := s.Apply(e); err != nil {
				b.Fatal(err)
			}
		}
		return events
	}
	info, err := st.Create(b.Context(), "s", do(study.Create{Spec: spec}))
	if err != nil {
		b.Fatal(err)
	}
	u := make([]float64, sp.Dim())
	var pending []study.Event
	for i := range n {
		for j := range u {
			u[j] = float64((i*(j+7)+j*j)%10007) / 10007
		}
		config, err := sp.Decode(u)
		if err != nil {
			b.Fatal(err)
		}
		id := fmt.Sprintf("%032d", i)
		pending = append(pending, do(study.Start{Ask: study.Ask{RequestID: "a" + id, Count: 1, Worker: fmt.Sprint("worker-", i%64)}, Trial: i,
			Suggestion: study.Suggestion{Config: config, Phase: "start", Seed: uint64(i), Seen: s.Position()}})...)
		pending = append(pending, do(study.Tell{RequestID: "t" + id, Trial: i, Outcome: loss(u[0])})...)
		if len(pending) > 2000 || i == n-1 {
			if err := st.Commit(b.Context(), info.ID, s.Position()-study.Position(len(pending)), pending); err != nil {
				b.Fatal(err)
			}
			pending = pending[:0]
		}
	}
}

// BenchmarkLoad reads a study from its log: the first call after a restart.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			st := newFaulty()
			st.Store = memory.New()
			longStudy(b, st, n)
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
