package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
)

// BenchmarkOpenPages measures the 99th percentile of an ask while 64 clients ask and tell,
// with 20 open pages and without, in turns.
func BenchmarkOpenPages(b *testing.B) {
	s := tuner.Open(memory.New(), tuner.Options{LongLived: true})
	defer s.Close()
	sp := spec(b)
	sp.Proposer.Name = "random"
	if _, err := s.CreateStudy(b.Context(), "s", study.Create{Spec: sp}); err != nil {
		b.Fatal(err)
	}
	r := start(b, s, server.Options{Limits: server.Limits{Rate: -1}}, loopback)
	defer r.stop()
	var with, without []time.Duration
	for range b.N {
		for turn := range 6 {
			if turn%2 == 0 {
				without = append(without, askAndTell(b, s)...)
				continue
			}
			ctx, closePages := context.WithCancel(b.Context())
			var pages sync.WaitGroup
			for range 20 {
				pages.Go(func() { openPage(ctx, r) })
			}
			with = append(with, askAndTell(b, s)...)
			closePages()
			pages.Wait()
		}
	}
	p99 := func(d []time.Duration) float64 {
		slices.Sort(d)
		return d[len(d)*99/100].Seconds() * 1e3
	}
	b.ReportMetric(p99(without), "ms-p99-without")
	b.ReportMetric(p99(with), "ms-p99-with")
	b.ReportMetric(p99(with)/p99(without), "ratio")
}

// askAndTell lets 64 clients ask and tell, each 20 times a second at most, and returns how
// long the asks took.
func askAndTell(b *testing.B, s tuner.Service) (all []time.Duration) {
	var mu sync.Mutex
	var clients sync.WaitGroup
	end := time.Now().Add(2 * time.Second)
	for k := range 64 {
		clients.Go(func() {
			var took []time.Duration
			for time.Now().Before(end) {
				begin := time.Now()
				asked, err := s.Ask(b.Context(), "s", study.Ask{Worker: fmt.Sprint(k), New: true})
				if err != nil {
					b.Error(err)
					return
				}
				took = append(took, time.Since(begin))
				o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{1}}}}
				if _, err := s.Tell(b.Context(), "s", study.Tell{Trial: asked.Trials[0].Number, Outcome: o}); err != nil {
					b.Error(err)
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	clients.Wait()
	return all
}

// openPage does what an open page does with its server.
func openPage(ctx context.Context, r *running) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(path string) (*http.Response, error) {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.http+path, nil)
		if err != nil {
			return nil, err
		}
		return client.Do(q)
	}
	events, err := get("/api/studies/s/events")
	if err != nil {
		return
	}
	defer events.Body.Close()
	var position string
	var last time.Time
	wait := 700 * time.Millisecond
	for lines := bufio.NewScanner(events.Body); lines.Scan(); {
		id, ok := strings.CutPrefix(lines.Text(), "id: ")
		if !ok || time.Since(last) < wait {
			continue
		}
		last = time.Now()
		if res, err := get("/api/studies/s/columns?after=" + position); err == nil {
			n, _ := io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if wait = 700 * time.Millisecond; n > 8<<10 { // of more than 500 trials
				wait = 3 * time.Second
			}
		}
		position = id
	}
}
