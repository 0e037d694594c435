// Package longstudy makes large studies, for benchmarks and tests whose program starts often:
// package storetest, where such a study would belong, takes 9 ms to start.
package longstudy

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Fill fills a store with a study of n told trials of d parameters, for benchmarks. Each
// trial has two events with a request id and a worker. The configurations are random and have the
// phase of the start design. The objective is a quadratic bowl.
func Fill(b testing.TB, st store.Store, name, proposer string, n, d int) {
	b.Helper()
	parameters := make([]space.Parameter, d)
	for i := range parameters {
		parameters[i] = space.NewFloat(fmt.Sprintf("parameter-%d", i), 0, 1)
	}
	ok := func(what string, err error) {
		b.Helper()
		if err != nil {
			b.Fatalf("%s: %v", what, err)
		}
	}
	sp, err := space.New(parameters...)
	ok("space.New", err)
	var s study.Study
	var pending []study.Event
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	do := func(c study.Command) {
		now = now.Add(time.Second)
		_, events, err := s.Decide(now, c)
		ok("Decide", err)
		for _, e := range events {
			ok("Apply", s.Apply(e))
		}
		pending = append(pending, events...)
	}
	do(study.Create{Spec: study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Proposer: study.Component{Name: proposer}}})
	info, err := st.Create(b.Context(), name, pending)
	ok("Create", err)
	pending = pending[:0]
	u, rng := make([]float64, sp.Dim()), rand.New(rand.NewPCG(1, 1))
	for i := range n {
		bowl := 0.0
		for j := range u {
			u[j] = rng.Float64()
			bowl += (u[j] - 0.3) * (u[j] - 0.3)
		}
		config, err := sp.Decode(u)
		ok("Decode", err)
		id := fmt.Sprintf("%032d", i)
		do(study.Start{
			Ask: study.Ask{RequestID: "a" + id, Count: 1, Worker: fmt.Sprint("worker-", i%64)}, Trial: i, Answer: 1,
			Suggestion: study.Suggestion{Config: config, Phase: "start", Seed: uint64(i), Seen: s.Position()},
		})
		do(study.Tell{RequestID: "t" + id, Trial: i, Outcome: study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{bowl}}}}})
		if len(pending) > 2000 || i == n-1 {
			ok("Commit", st.Commit(b.Context(), info.ID, s.Position()-study.Position(len(pending)), pending, nil))
			pending = pending[:0]
		}
	}
}
