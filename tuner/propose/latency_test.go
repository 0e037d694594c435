package propose

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// BenchmarkAsk measures an ask after a tell in a study with a number of results in 8
// dimensions. The model is up to date before. A rebuild that is due is measured apart. A
// random suggestion is measured for comparison.
func BenchmarkAsk(b *testing.B) {
	var fields []string
	for i := range 8 {
		fields = append(fields, fmt.Sprintf(`"x%d": {"type": "float", "low": 0, "high": 1}`, i))
	}
	sp := labtest.Parse(b, "{"+strings.Join(fields, ",")+"}")
	spec := labtest.SpecOf(sp, 1)
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, rng := newLab(b, spec), rand.New(rand.NewPCG(1, uint64(n)))
			value := func(c space.Config) float64 {
				u := make([]float64, 8)
				if err := sp.Encode(c, u); err != nil {
					b.Fatal(err)
				}
				s := 0.0
				for i, v := range u {
					s += math.Pow(v-0.4, 2) * float64(1+i%3)
				}
				return s - math.Exp(-20*s) + 0.01*rng.NormFloat64()
			}
			for i := range n {
				u := make([]float64, 8)
				for j := range u { // closer and closer to the best, as in a search
					u[j] = min(max(0.4+rng.NormFloat64()*0.6/math.Sqrt(1+float64(i)/float64(n)*8), 0), 1)
				}
				c, err := sp.Decode(u)
				if err != nil {
					b.Fatal(err)
				}
				l.Do(study.Add{Config: c, Outcome: labtest.Completed(spec, value(c))})
			}
			l.Log = nil
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			p := must(b, study.Component{Name: BKB}, spec)
			start := time.Now()
			var asks, anchors []time.Duration
			var cpu time.Duration
			l.timedAnchor(p, &anchors)
			anchor := time.Since(start)
			start = time.Now()
			l.start(l.once(p))
			rebuild := time.Since(start)
			anchors = nil
			for b.Loop() {
				trial, _ := l.S.Trial(l.S.Trials() - 1)
				l.Do(study.Tell{Trial: trial.Number, Outcome: labtest.Completed(spec, value(trial.Config))})
				if l.timedAnchor(p, &anchors) {
					begin := time.Now()
					if _, err := p.(*bkb).At(l.S); err != nil {
						b.Fatal(err)
					}
					anchors[len(anchors)-1] += time.Since(begin)
				}
				begin, used := time.Now(), cpuTime()
				proposal := l.once(p)
				asks, cpu = append(asks, time.Since(begin)), cpu+cpuTime()-used
				l.start(proposal)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			d, err := p.(Modeler).Diagnose(context.Background(), l.S)
			if err != nil {
				b.Fatal(err)
			}
			slices.Sort(asks)
			random := must(b, study.Component{Name: Random}, spec)
			begin := time.Now()
			for range 100 {
				if _, err := random.Propose(context.Background(), l.S, 1); err != nil {
					b.Fatal(err)
				}
			}
			p50 := asks[len(asks)/2].Seconds()
			b.ReportMetric(p50*1e3, "p50-ms")
			b.ReportMetric(asks[len(asks)*99/100].Seconds()*1e3, "p99-ms")
			b.ReportMetric(cpu.Seconds()/float64(len(asks))*1e3, "cpu-ms") // all threads, including the garbage collector's
			b.ReportMetric(p50/(time.Since(begin).Seconds()/100), "random-x")
			b.ReportMetric(anchor.Seconds()*1e3, "first-model-ms")
			b.ReportMetric(rebuild.Seconds()*1e3, "restart-ms")
			b.ReportMetric(float64(d.InducingPoints), "m")
			b.ReportMetric(float64(after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))/(1<<20), "heap-MB")
			if len(anchors) > 0 {
				b.ReportMetric(slices.Max(anchors).Seconds()*1e3, "rebuild-ms")
			}
		})
	}
}

func (l *lab) timedAnchor(p Proposer, times *[]time.Duration) bool {
	begin := time.Now()
	a, due, err := p.(Modeler).Anchor(context.Background(), l.S)
	if err != nil {
		l.T.Fatalf("anchor: %v", err)
	}
	if due {
		*times = append(*times, time.Since(begin))
		l.Do(a)
	}
	return due
}

func (l *lab) once(p Proposer) Proposal {
	proposal, err := p.Propose(context.Background(), l.S, 1)
	if err != nil {
		l.T.Fatalf("propose: %v", err)
	}
	return proposal
}
