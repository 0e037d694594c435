package papers

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/doublyonline"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/landweber"
	"github.com/bkbtuner/bkb/learners/nystrom"
	"github.com/bkbtuner/bkb/learners/sgdrf"
)

// table41 is table 4.1 of Carratino (2020).
var table41 = experiment.Experiment{
	Name:   "table4.1",
	Title:  "Time for optimal generalisation, as a power of n",
	Source: "Carratino (2020), table 4.1",
	About: `Each learner has the settings of theory for the worst case, which are λ = n^−½, M = 4√n
centres or features, √n iterations of gradient descent, and log n of FALKON, on n rows
of the SUSY-like generator. "slope" is that of log CPU time over log n in the last three
sizes, and "theory" the exponent of the table without logarithms. The slope is smaller
if the time is not yet dominated by its largest term, or if it is spent in fast matrix
products. "error" is the class error at the largest n. It should be the same for all.`,
	Measure: timesOfLearners,
}

// scaled is a learner with the settings for n rows.
type scaled struct {
	name   string
	theory float64
	least  int // n up to which it is run at Standard scale
	of     func(k kernel.Kernel, n int) learners.Estimator
}

func scaledLearners() []scaled {
	root := func(n int) int { return int(math.Round(math.Sqrt(float64(n)))) }
	lambda := func(n int) float64 { return 1 / math.Sqrt(float64(n)) }
	return []scaled{
		{"KRR, direct", 3, 8000, func(k kernel.Kernel, n int) learners.Estimator { return krr.Params{Kernel: k, Lambda: lambda(n)} }},
		{"KRR, gradient descent", 2.5, 8000, func(k kernel.Kernel, n int) learners.Estimator {
			return landweber.Params{Kernel: k, Iterations: root(n)}
		}},
		{"Nyström, direct", 2, 64_000, func(k kernel.Kernel, n int) learners.Estimator {
			return nystrom.Params{Kernel: k, Lambda: lambda(n), Centers: 4 * root(n)}
		}},
		{"Nyström, gradient descent", 2, 16_000, func(k kernel.Kernel, n int) learners.Estimator {
			return nystrom.Params{Kernel: k, Centers: 4 * root(n), Solver: nystrom.Gradient, Iterations: root(n)}
		}},
		{"doubly online", 2, 16_000, func(k kernel.Kernel, n int) learners.Estimator {
			return doublyonline.Params{Kernel: k, Features: 2}
		}},
		{"SGD, random features", 1.5, 64_000, func(k kernel.Kernel, n int) learners.Estimator {
			return sgdrf.Params{Kernel: k, Features: 4 * root(n), BatchSize: root(n), StepSize: 1, Passes: 1}
		}},
		{"FALKON", 1.5, 64_000, func(k kernel.Kernel, n int) learners.Estimator {
			return falkon.Params{Kernel: k, Lambda: lambda(n), Centers: 4 * root(n), Iterations: int(math.Ceil(math.Log(float64(n))))}
		}},
	}
}

func timesOfLearners(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	sizes := [][]int{{250, 500, 1000}, {1000, 2000, 4000, 8000, 16_000, 32_000, 64_000}, {1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000}}[env.Scale-experiment.Quick]
	factor := env.Pick(1, 1, 2)
	k, err := gaussian(4)
	if err != nil {
		return nil, err
	}
	env.Report(0, 0, "generating %d rows", sizes[len(sizes)-1])
	all, err := generate(ctx, data.SUSYLike{Seed: env.Derive("table4.1", 0)}, sizes[len(sizes)-1])
	if err != nil {
		return nil, err
	}
	test, err := generate(ctx, data.SUSYLike{Seed: env.Derive("table4.1", 1)}, env.Pick(500, 5000, 5000))
	if err != nil {
		return nil, err
	}
	slopes := r.Table("slopes", "Exponents of n", report.Column{Name: "learner"}, report.Column{Name: "slope", Format: "%.2f"}, report.Column{Name: "theory", Format: "%.1f"}, report.Column{Name: "n"}, report.Column{Name: "error", Format: "%.4f"})
	t := r.Table("times", "CPU time", report.Column{Name: "learner"}, report.Column{Name: "n"}, report.Column{Name: "CPU", Unit: "s", Format: "%.3f"}, report.Column{Name: "error", Format: "%.4f"})
	plot := r.Plot("times", "CPU time for optimal generalisation", figure.Axis{Label: "n", Log: true}, figure.Axis{Label: "CPU seconds", Log: true})
	for i, l := range scaledLearners() {
		s, wrong, largest := figure.Series{Name: l.name}, math.NaN(), 0
		for j, n := range sizes {
			if n > l.least*factor {
				break
			}
			env.Report(i*len(sizes)+j, len(scaledLearners())*len(sizes), "%s, n = %d", l.name, n)
			watch := experiment.StartWatch()
			m, err := l.of(k, n).Fit(ctx, first(all, n), learners.Options{Seed: env.Derive("table4.1 fit", 0), Workers: env.Workers})
			if err != nil {
				return r, err
			}
			cpu := watch.CPU()
			if wrong, _, err = errorOn(ctx, m, test); err != nil {
				return r, err
			}
			t.Add(l.name, n, cpu, wrong)
			s.X, s.Y, largest = append(s.X, float64(n)), append(s.Y, cpu), n
		}
		last := max(len(s.X)-3, 0)
		slopes.Add(l.name, slope(s.X[last:], s.Y[last:]), l.theory, largest, wrong)
		plot.Add(s)
	}
	return r, nil
}
