package papers

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/nystrom"
)

// fig41 is figure 4.1 of Carratino (2020).
var fig41 = experiment.Experiment{
	Name:   "fig4.1",
	Title:  "FALKON against other iterations for the same problem",
	Source: "Carratino (2020), figure 4.1",
	About: `One Nyström problem, with the same centres and λ = 1e-6, is solved by FALKON and by
iterations without its preconditioner. These are gradient descent, SGD (an iteration is
a pass), conjugate gradients on the coefficients, and NYTRO, which is gradient descent
with λ = 0 in coordinates whitened by K_MM. The table has class errors on the test rows
after given numbers of iterations. Carratino (2020) has all of HIGGS. See fig3.1 for the
data here.`,
	Parts:   classProblems,
	Measure: iterationsOfSolvers,
}

// marks are the iterations shown in figure 4.1.
var marks = []int{1, 2, 5, 10, 20, 50, 100}

type namedEstimator struct {
	name string
	learners.Estimator
}

func nystromSolvers(k kernel.Kernel, centers, iterations int) []namedEstimator {
	const lambda = 1e-6
	plain := func(s nystrom.Solver, lambda float64) nystrom.Params {
		return nystrom.Params{Kernel: k, Lambda: lambda, Centers: centers, Solver: s, Coordinates: nystrom.Plain, Iterations: iterations, Tolerance: 1e-12}
	}
	whitened := plain(nystrom.Gradient, 0)
	whitened.Coordinates = nystrom.Whitened
	return []namedEstimator{
		{"FALKON", falkon.Params{Kernel: k, Lambda: lambda, Centers: centers, Iterations: min(iterations, 20)}},
		{"conjugate gradients", plain(nystrom.CG, lambda)},
		{"gradient descent", plain(nystrom.Gradient, lambda)},
		{"SGD", plain(nystrom.SGD, lambda)},
		{"NYTRO", whitened},
	}
}

func iterationsOfSolvers(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	columns := []report.Column{{Name: "data"}, {Name: "n"}, {Name: "M"}, {Name: "solver"}}
	for _, at := range marks {
		columns = append(columns, report.Column{Name: "t = " + itoa(at), Format: "%.4f"})
	}
	t := r.Table("iterations", "Class error after t iterations", append(columns, report.Column{Name: "CPU/iteration", Unit: "s", Format: "%.3f"})...)
	iterations := env.Pick(20, 100, 100)
	return r, eachPart(ctx, env, r, classProblems, func(at int, part string) error {
		data, err := classData(ctx, env, part, env.Pick(600, 20_000, 100_000))
		if err != nil {
			return err
		}
		k, err := gaussian(data.sigma)
		if err != nil {
			return err
		}
		n, centers := data.train.Len(), env.Pick(50, 1000, 2000)
		plot := r.Plot("iterations-"+part, data.name, figure.Axis{Label: "iteration", Log: true}, figure.Axis{Label: "class error"})
		errorsAt := map[string][]float64{}
		solvers := nystromSolvers(k, centers, iterations)
		for i, s := range solvers {
			env.Report(at*len(solvers)+i, len(classProblems)*len(solvers), "%s, %s", data.name, s.name)
			line, watch := figure.Series{Name: s.name}, experiment.StartWatch()
			_, err := s.Fit(ctx, data.train, watching(env, env.Derive("fig4.1", 0), data.test, func(it int, wrong float64) {
				line.X, line.Y = append(line.X, float64(it)), append(line.Y, wrong)
			}))
			if err != nil {
				return err
			}
			row := []any{data.name, n, centers, s.name}
			for _, at := range marks {
				row = append(row, errorAt(line, at))
			}
			t.Add(append(row, watch.CPU()/float64(len(line.X)))...)
			plot.Add(line)
			errorsAt[s.name] = line.Y
		}
		r.Note("%s: %s.", data.name, data.note)
		judgeSolvers(r, data.name, errorsAt)
		return nil
	})
}

// errorAt returns the error after a number of iterations, or after the last one if there
// were fewer. Without iterations it is NaN.
func errorAt(s figure.Series, iteration int) float64 {
	if len(s.Y) == 0 {
		return math.NaN()
	}
	return s.Y[min(iteration, len(s.Y))-1]
}

// judgeSolvers compares FALKON's first iterations with the last of others.
func judgeSolvers(r *report.Result, name string, errorsAt map[string][]float64) {
	ours := errorsAt["FALKON"]
	if len(ours) == 0 {
		return
	}
	after := min(10, len(ours))
	for _, other := range []string{"conjugate gradients", "gradient descent", "SGD", "NYTRO"} {
		if e := errorsAt[other]; len(e) > 0 {
			r.Note("%s: FALKON after %d iterations %.4f, %s after %d %.4f.", name, after, ours[after-1], other, len(e), e[len(e)-1])
		}
	}
}
