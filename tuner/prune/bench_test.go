package prune

import (
	"fmt"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/study"
)

// history makes trials of 20 steps each. Most have completed, and the last one is running.
func history(trials int) []study.Trial {
	out := make([]study.Trial, trials)
	for n := range out {
		l := newLearner(1, n)
		out[n] = study.Trial{Number: n, State: study.Completed, Epoch: 1}
		for step := range int64(20) {
			out[n].Reports = append(out[n].Reports, study.Report{Epoch: 1, Step: step + 1, Values: []study.NamedValue{{Name: "loss", Value: l.at(step + 1)}}})
		}
	}
	out[trials-1].State = study.Running
	return out
}

// BenchmarkReport compares one report and one verdict after a number of trials with reading
// the verdict from the whole history.
func BenchmarkReport(b *testing.B) {
	for _, c := range []study.Component{{Name: Median}, {Name: ASHA}, {Name: Hyperband, Options: `{"max_resource": 20}`}} {
		for _, trials := range []int{1000, 100_000} {
			b.Run(fmt.Sprintf("%s/trials=%d", c.Name, trials), func(b *testing.B) {
				p, past := must(b, c), history(trials)
				for _, t := range past {
					p.Update(t)
				}
				slow := twinOf(p)
				began := time.Now()
				slow(past, trials-1)
				naive := time.Since(began)
				t := past[trials-1]
				b.ResetTimer()
				for i := range b.N {
					if i%20 == 0 { // a new attempt
						t.Epoch++
					}
					t.Reports = append(t.Reports[:i%20], study.Report{Epoch: t.Epoch, Step: int64(i%20 + 1), Values: past[trials-1].Reports[i%20].Values})
					p.Update(t)
					p.Decide(t.Number)
				}
				b.ReportMetric(float64(naive)*float64(b.N)/float64(b.Elapsed()), "naive/incremental")
			})
		}
	}
}
