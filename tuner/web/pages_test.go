//go:build unix

package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
)

// pairs is how often BenchmarkOpenPages measures with pages and without.
const pairs = 10

// BenchmarkOpenPages measures the 99th percentile of an ask while 64 clients ask and tell,
// with 20 open pages and without. The turns follow each other, and every second pair has the
// pages first, so that a machine that becomes slower or faster changes both. It reports the
// median of the ratios of the pairs with their quartiles, and the CPU time of the process,
// clients and pages included.
func BenchmarkOpenPages(b *testing.B) {
	s := engine.Open(memory.New(), engine.Options{LongLived: true})
	defer s.Close()
	sp := spec(b)
	sp.Proposer.Name = "random"
	if _, err := s.CreateStudy(b.Context(), "s", study.Create{Spec: sp}); err != nil {
		b.Fatal(err)
	}
	r := start(b, s, server.Options{Limits: server.Limits{Rate: -1}}, loopback)
	defer r.stop()
	type turn struct {
		p99 float64 // milliseconds
		cpu float64 // milliseconds of CPU in a second
	}
	measure := func(pages int) turn {
		ctx, closePages := context.WithCancel(b.Context())
		var open sync.WaitGroup
		for range pages {
			open.Go(func() { openPage(ctx, r) })
		}
		time.Sleep(time.Second) // until the pages have the trials of the turns before
		begun, used := time.Now(), cpuTime(b)
		took := askAndTell(b, s)
		out := turn{cpu: 1e3 * (cpuTime(b) - used).Seconds() / time.Since(begun).Seconds()}
		closePages()
		open.Wait()
		slices.Sort(took)
		out.p99 = took[len(took)*99/100].Seconds() * 1e3
		return out
	}
	var with, without, ratios, cpuWith, cpuWithout []float64
	measure(20) // to warm up
	for range b.N {
		for k := range pairs {
			var w, o turn
			if k%2 == 0 {
				o = measure(0)
				w = measure(20)
			} else {
				w = measure(20)
				o = measure(0)
			}
			b.Logf("p99 of an ask: %.2f ms with 20 pages, %.2f ms without, ratio %.3f; CPU %.0f and %.0f ms/s", w.p99, o.p99, w.p99/o.p99, w.cpu, o.cpu)
			with, without, ratios = append(with, w.p99), append(without, o.p99), append(ratios, w.p99/o.p99)
			cpuWith, cpuWithout = append(cpuWith, w.cpu), append(cpuWithout, o.cpu)
		}
	}
	quantile := func(x []float64, q float64) float64 {
		slices.Sort(x)
		return x[int(math.Round(q*float64(len(x)-1)))]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(without, 0.5), "ms-p99-without")
	b.ReportMetric(quantile(with, 0.5), "ms-p99-with")
	b.ReportMetric(quantile(ratios, 0.5), "ratio")
	b.ReportMetric(quantile(ratios, 0.25), "ratio-q1")
	b.ReportMetric(quantile(ratios, 0.75), "ratio-q3")
	b.ReportMetric(quantile(cpuWith, 0.5)-quantile(cpuWithout, 0.5), "ms-CPU/s-of-pages")
}

// cpuTime is what the process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// askAndTell lets 64 clients ask and tell, each 20 times a second at most, and returns how
// long the asks took.
func askAndTell(b *testing.B, s tuner.Service) (all []time.Duration) {
	var mu sync.Mutex
	var clients sync.WaitGroup
	end := time.Now().Add(4 * time.Second) // so long that each page asks for changes
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

// openPage does what an open page does with its server. It loads all trials first.
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
	position := "0"
	var last time.Time
	wait := time.Duration(0)
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
