package bo

import (
	"math"

	"github.com/bkbtuner/bkb/bench/report"
)

// intervals are the intervals of outcomes that coverage is measured for, as the share that is
// inside if the prediction is right, and half the width in standard deviations of a normal
// distribution.
var intervals = [...]struct{ share, width float64 }{
	{0.5, 0.6744897501960817},
	{0.9, 1.6448536269514722},
	{0.95, 1.959963984540054},
}

// coverage adds the share of outcomes inside the intervals that were predicted for them, of
// optimisers that predict.
func (r *results) coverage(out *report.Result) {
	var t *report.Table
	for _, s := range r.suite {
		for _, k := range r.plan.contestants {
			for _, n := range r.plan.budgets() {
				all, problems := s.covered(k.Name, n)
				if all.outcomes == 0 {
					continue
				}
				if t == nil {
					t = out.Table("coverage", "Of runs that recorded predictions, share of the outcomes of trials that succeed inside the interval that was predicted when the trial was suggested. Lowest and highest are the shares of 95 % intervals on one problem",
						report.Column{Name: "suite"}, report.Column{Name: "optimiser"}, report.Column{Name: "trials"}, report.Column{Name: "runs"}, report.Column{Name: "outcomes"},
						report.Column{Name: "50 %", Format: "%.3f"}, report.Column{Name: "90 %", Format: "%.3f"}, report.Column{Name: "95 %", Format: "%.3f"},
						report.Column{Name: "lowest", Format: "%.3f"}, report.Column{Name: "highest", Format: "%.3f"})
				}
				low, high := 1.0, 0.0
				for _, p := range problems {
					share := p.share(len(intervals) - 1)
					low, high = min(low, share), max(high, share)
				}
				t.Add(s.Name, k.Name, n, all.runs, all.outcomes, all.share(0), all.share(1), all.share(2), low, high)
			}
		}
	}
}

// predicted counts outcomes that had a prediction.
type predicted struct {
	runs, outcomes int
	inside         [len(intervals)]int
}

// share returns the share inside an interval.
func (p *predicted) share(interval int) float64 {
	return float64(p.inside[interval]) / float64(p.outcomes)
}

// covered counts the predicted outcomes of the first n trials of an optimiser's runs, of all
// problems and of each that has some.
func (s *suiteResults) covered(name string, n int) (all predicted, problems []predicted) {
	problem := ""
	for _, at := range s.cells(n, name) {
		var here predicted
		trials := s.runs[at][name].Trials
		for _, t := range trials[:min(n, len(trials))] {
			if !t.OK || !(t.StdDev > 0) {
				continue
			}
			here.outcomes++
			for i, c := range intervals {
				if math.Abs(t.Value-t.Mean) <= c.width*t.StdDev {
					here.inside[i]++
				}
			}
		}
		if here.outcomes == 0 {
			continue
		}
		here.runs = 1
		if at.problem != problem {
			problems, problem = append(problems, predicted{}), at.problem
		}
		for _, sum := range []*predicted{&all, &problems[len(problems)-1]} {
			sum.runs, sum.outcomes = sum.runs+1, sum.outcomes+here.outcomes
			for i, v := range here.inside {
				sum.inside[i] += v
			}
		}
	}
	return all, problems
}
