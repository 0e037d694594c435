package bo

import (
	"math"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
)

// workers adds the comparison of optimisers with several workers with the same ones with one.
func (r *results) workers(out *report.Result) {
	var t *report.Table
	for _, s := range r.suite {
		for _, k := range r.plan.contestants {
			for _, n := range r.plan.budgets() {
				if k.Workers < 2 {
					continue
				}
				one, several := s.paired(k.Base, k.Name, n)
				if len(one) == 0 {
					continue
				}
				if t == nil {
					t = out.Table("workers", "Normalised regret of several asynchronous workers and of one, after as many trials of the same problems and seeds. Ratios are of means and of geometric means, the latter with regrets of at least 1e-8",
						report.Column{Name: "suite"}, report.Column{Name: "optimiser"}, report.Column{Name: "workers"}, report.Column{Name: "trials"}, report.Column{Name: "runs"},
						report.Column{Name: "better"}, report.Column{Name: "equal"}, report.Column{Name: "worse"},
						report.Column{Name: "median of one", Format: "%.3g"}, report.Column{Name: "median", Format: "%.3g"},
						report.Column{Name: "ratio of means", Format: "%.2f"}, report.Column{Name: "geometric", Format: "%.2f"})
				}
				better, equal, worse, logs := 0, 0, 0, 0.0
				for i, v := range several {
					switch {
					case v < one[i]:
						better++
					case v > one[i]:
						worse++
					default:
						equal++
					}
					logs += math.Log(max(v, nearRegret) / max(one[i], nearRegret))
				}
				mean := means([][]float64{one, several})
				t.Add(s.Name, k.Name, k.Workers, n, len(one), better, equal, worse,
					experiment.Quantiles(one, 0.5)[0], experiment.Quantiles(several, 0.5)[0], mean[1]/mean[0], math.Exp(logs/float64(len(one))))
			}
		}
	}
}

// paired returns the regrets of two optimisers after n trials on the same problems and seeds.
func (s *suiteResults) paired(a, b string, n int) (x, y []float64) {
	for _, at := range s.cells(n, a, b) {
		x, y = append(x, s.regret(at, a, n, measured)), append(y, s.regret(at, b, n, measured))
	}
	return x, y
}
