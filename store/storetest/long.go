package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// LongStudy fills a store with a study of n told trials of d parameters, for
// benchmarks. Each trial has two events with a request id and a worker. The
// configurations are random and have the phase of the start design. The objective is a
// quadratic bowl.
func LongStudy(b testing.TB, st store.Store, name, proposer string, n, d int) {
	b.Helper()
	var parameters []space.Parameter
	for i := range d {
		parameters = append(parameters, space.NewFloat(fmt.Sprintf("parameter-%d", i), 0, 1))
	}
	sp, err := space.New(parameters...)
	if err != nil {
		b.Fatal(err)
	}
	var s study.Study
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Proposer: study.Component{Name: proposer}}
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
	info, err := st.Create(b.Context(), name, do(study.Create{Spec: spec}))
	if err != nil {
		b.Fatal(err)
	}
	u, rng := make([]float64, sp.Dim()), rand.New(rand.NewPCG(1, 1))
	var pending []study.Event
	for i := range n {
		bowl := 0.0
		for j := range u {
			u[j] = rng.Float64()
			bowl += (u[j] - 0.3) * (u[j] - 0.3)
		}
		config, err := sp.Decode(u)
		if err != nil {
			b.Fatal(err)
		}
		id := fmt.Sprintf("%032d", i)
		pending = append(pending, do(study.Start{
			Ask: study.Ask{RequestID: "a" + id, Count: 1, Worker: fmt.Sprint("worker-", i%64)}, Trial: i, Answer: 1,
			Suggestion: study.Suggestion{Config: config, Phase: "start", Seed: uint64(i), Seen: s.Position()},
		})...)
		pending = append(pending, do(study.Tell{RequestID: "t" + id, Trial: i, Outcome: study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{bowl}}}}})...)
		if len(pending) > 2000 || i == n-1 {
			if err := st.Commit(b.Context(), info.ID, s.Position()-study.Position(len(pending)), pending, nil); err != nil {
				b.Fatal(err)
			}
			pending = pending[:0]
		}
	}
}
