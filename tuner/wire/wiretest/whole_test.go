package wiretest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// whole starts the complete service, store and server included, with a study "s". It
// returns clients, each with a connection of its own.
func whole(t testing.TB, clients int, change func(*study.Spec)) []tuner.Service {
	t.Helper()
	st, err := bolt.Open(filepath.Join(t.TempDir(), "tuner.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tn := engine.Open(st, engine.Options{LongLived: true})
	t.Cleanup(func() {
		if err := tn.Close(); err != nil {
			t.Error(err)
		}
	})
	sp, err := space.New(space.NewFloat("lr", 1e-5, 1).WithScale(space.Log), space.NewInt("batch", 16, 512),
		space.NewCategorical("optimizer", space.String("sgd"), space.String("adam")))
	if err != nil {
		t.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: 1, Proposer: study.Component{Name: "sobol"}}
	if change != nil {
		change(&spec)
	}
	if _, err := tn.CreateStudy(t.Context(), "s", study.Create{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	// Sixty-four fast workers exceed one token's usual rate.
	serve(t, tn, server.Options{Limits: server.Limits{Rate: -1}}, l)
	services := make([]tuner.Service, clients)
	for i := range services {
		c, err := client.Dial(l.Addr().String(), client.Options{Plaintext: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		services[i] = c
	}
	return services
}

// askAndTell asks and tells until the study has no more trials. It returns the numbers of
// its trials and the time of each ask and tell.
func askAndTell(ctx context.Context, s tuner.Service, worker string) (numbers []int, asks, tells []time.Duration, err error) {
	for {
		start := time.Now()
		asked, err := s.Ask(ctx, "s", study.Ask{Worker: worker})
		if code := tuner.CodeOf(err); code == tuner.Finished || code == tuner.NoneLeft {
			return numbers, asks, tells, nil
		} else if err != nil {
			return numbers, asks, tells, err
		}
		told := time.Now()
		trial := asked.Trials[0]
		x, _ := trial.Config.Get("lr")
		loss, _ := x.AsFloat()
		if _, err := s.Tell(ctx, "s", study.Tell{
			Trial: trial.Number, Epoch: trial.Epoch,
			Outcome: study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{loss}}}},
		}); err != nil {
			return numbers, asks, tells, err
		}
		numbers = append(numbers, trial.Number)
		asks, tells = append(asks, told.Sub(start)), append(tells, time.Since(told))
	}
}

// drain lets many workers finish a study and returns their numbers and times.
func drain(t testing.TB, services []tuner.Service, workers int) (numbers []int, asks, tells []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			n, a, b, err := askAndTell(t.Context(), services[w%len(services)], fmt.Sprint("worker-", w))
			if err != nil {
				t.Errorf("worker %d: %v", w, err)
			}
			mu.Lock()
			defer mu.Unlock()
			numbers, asks, tells = append(numbers, n...), append(asks, a...), append(tells, b...)
		})
	}
	all.Wait()
	return numbers, asks, tells
}

// TestManyClients has 64 workers with a connection each, which run 100 trials each on one
// study, and 500 if BKB_LONG is set. Each number comes up exactly once.
func TestManyClients(t *testing.T) {
	trials := 64 * racetest.Size(16, 500)
	services := whole(t, 64, func(c *study.Spec) { c.MaxTrials = trials })
	numbers, _, _ := drain(t, services, 64)
	slices.Sort(numbers)
	for i, n := range numbers {
		if i != n {
			t.Fatalf("trial %d was handed out twice, or %d never", n, i)
		}
	}
	if len(numbers) != trials {
		t.Errorf("%d trials, want %d", len(numbers), trials)
	}
	s, err := services[0].Study(t.Context(), "s")
	if err != nil || s.Status != study.StatusFinished || s.Counts[study.Completed] != trials {
		t.Errorf("the study: %+v, %v", s, err)
	}
}

// BenchmarkAskTell runs ask+tell pairs of 64 workers on one study, over gRPC on
// loopback and a store on disk.
func BenchmarkAskTell(b *testing.B) {
	services := whole(b, 64, func(c *study.Spec) { c.MaxTrials = b.N })
	b.ResetTimer()
	numbers, asks, tells := drain(b, services, 64)
	b.StopTimer()
	if len(numbers) != b.N {
		b.Fatalf("%d trials, want %d", len(numbers), b.N)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
	for name, took := range map[string][]time.Duration{"ask": asks, "tell": tells} {
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2].Seconds()*1e3, name+"-p50-ms")
		b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, name+"-p99-ms")
	}
}
