package prune

import (
	"fmt"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/study"
)

// TestStreak runs trials that the rule would all stop, with one worker and with three.
func TestStreak(t *testing.T) {
	for _, test := range []struct {
		options string
		workers int
		longest int // stopped in a row
	}{
		{`{"min_trials": 1}`, 1, 4},
		{`{"min_trials": 1, "max_streak": 2}`, 1, 2},
		{`{"min_trials": 1, "max_streak": 0}`, 1, 60},
		// While the spared trial runs, the other workers' trials are stopped.
		{`{"min_trials": 1}`, 3, 4 + 2*9},
	} {
		t.Run(fmt.Sprintf("%s by %d", test.options, test.workers), func(t *testing.T) {
			var s study.Study
			p := must(t, study.Component{Name: Median, Options: test.options})
			do := func(c study.Command) {
				t.Helper()
				_, events, err := s.Decide(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), c)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events {
					if err := s.Apply(e); err != nil {
						t.Fatal(err)
					}
					for _, n := range concerned(e) {
						trial, _ := s.Trial(n)
						p.Update(trial)
					}
				}
			}
			steps := make(map[int]int64)
			start := func() {
				n := s.Trials()
				do(study.Start{Ask: study.Ask{Count: 1}, Trial: n, Suggestion: study.Suggestion{Config: config()}})
				steps[n] = 0
			}
			longest, row, spared := 0, 0, 0
			turn := func(n int) {
				// Each trial is worse than all before it.
				do(study.ReportValues{Trial: n, Reports: []study.Report{{Step: steps[n], Values: []study.NamedValue{{Name: "loss", Value: float64(n)}}}}})
				steps[n]++
				outcome := study.Outcome{State: study.Completed, Metrics: []study.Metric{
					{Name: "loss", Values: []float64{float64(n)}}, {Name: "acc", Values: []float64{0}},
				}}
				switch v := p.Decide(n); {
				case v.Stop:
					outcome = study.Outcome{State: study.Pruned}
					row++
				case steps[n] < 10:
					if n > 0 && v.Reason == "" {
						t.Errorf("trial %d runs on without a reason", n)
					}
					return
				default:
					row = 0
					spared++
				}
				longest = max(longest, row)
				do(study.Tell{Trial: n, Outcome: outcome})
				delete(steps, n)
			}
			do(study.Create{Spec: testSpec()})
			start()
			for len(steps) > 0 {
				turn(0)
			}
			for s.Trials() < 61 || len(steps) > 0 {
				for len(steps) < test.workers && s.Trials() < 61 {
					start()
				}
				for n := range s.Trials() {
					if _, runs := steps[n]; runs {
						turn(n)
					}
				}
			}
			if longest > test.longest || test.workers == 1 && longest != test.longest {
				t.Errorf("%d trials were stopped in a row, want %d", longest, test.longest)
			}
			if spared < 2 && test.longest < 60 {
				t.Errorf("%d trials ran to their end", spared)
			}
		})
	}
}
