package papers

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/sgdrf"
	"github.com/bkbtuner/bkb/sketch"
)

// fig32 is figure 3.2 of Carratino (2020).
var fig32 = experiment.Experiment{
	Name:   "fig3.2",
	Title:  "SGD with random features, class error against step size and mini-batch",
	Source: "Carratino (2020), figure 3.2",
	About: `One pass over the data with M = √n features (at least 100), for mini-batches b and steps
γ. The best step grows with b up to b = √n. Larger mini-batches make too few steps in a
pass and cannot reach the best error. "diverged" counts repeats whose numbers grew
without bound.`,
	Parts:   classProblems,
	Repeats: 3,
	Measure: errorsOfSteps,
}

func errorsOfSteps(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	t := r.Table("steps", "Class error after one pass", report.Column{Name: "data"}, report.Column{Name: "n"}, report.Column{Name: "b"}, report.Column{Name: "γ"},
		report.Column{Name: "error", Format: "%.4f"}, report.Column{Name: "±", Format: "%.4f"}, report.Column{Name: "diverged"})
	best := r.Table("best", "The best step for each mini-batch", report.Column{Name: "data"}, report.Column{Name: "b"}, report.Column{Name: "b/√n", Format: "%.2f"}, report.Column{Name: "best γ"}, report.Column{Name: "error", Format: "%.4f"})
	return r, eachPart(ctx, env, r, classProblems, func(at int, part string) error {
		data, err := classData(ctx, env, part, env.Pick(1000, 20_000, 200_000))
		if err != nil {
			return err
		}
		if err := stepsOn(ctx, env, r, t, best, data, at); err != nil {
			return err
		}
		return nil
	})
}

// stepsOn tries mini-batches and steps on one problem.
func stepsOn(ctx context.Context, env *experiment.Env, r *report.Result, t, best *report.Table, data *classesData, at int) error {
	k, err := gaussian(data.sigma)
	if err != nil {
		return err
	}
	n := data.train.Len()
	root := int(math.Round(math.Sqrt(float64(n))))
	plot := r.Plot("steps-"+data.name, data.name+": one pass", figure.Axis{Label: "γ", Log: true}, figure.Axis{Label: "class error"})
	sizes := []int{1, 10, root, 10 * root, n / 4}
	steps := []float64{0.01, 0.03, 0.1, 0.3, 0.5, 1, 2, 4, 8}
	for i, b := range sizes {
		s, bestError, bestStep := figure.Series{Name: fmt.Sprintf("b = %d", b)}, math.Inf(1), math.NaN()
		for j, step := range steps {
			env.Report((at*len(sizes)+i)*len(steps)+j, len(classProblems)*len(sizes)*len(steps), "%s, b = %d, γ = %g", data.name, b, step)
			var wrong []float64
			diverged := 0
			for rep := range env.Repeats {
				p := sgdrf.Params{Kernel: k, Family: sketch.FourierCosine, Features: max(root, 100), BatchSize: b, StepSize: step, Passes: 1, Averaging: sgdrf.None}
				last := math.NaN()
				_, err := p.Fit(ctx, data.train, watching(env, env.Derive("fig3.2", rep), data.test, func(_ int, e float64) { last = e }))
				var grew *learners.DivergenceError
				if errors.As(err, &grew) {
					diverged++
					continue
				}
				if err != nil {
					return err
				}
				wrong = append(wrong, last)
			}
			if len(wrong) == 0 {
				t.Add(data.name, n, b, step, math.NaN(), math.NaN(), diverged)
				continue
			}
			mean, se := meanOf(wrong)
			t.Add(data.name, n, b, step, mean, se, diverged)
			s.X, s.Y = append(s.X, step), append(s.Y, mean)
			if mean < bestError {
				bestError, bestStep = mean, step
			}
		}
		plot.Add(s)
		best.Add(data.name, b, float64(b)/math.Sqrt(float64(n)), bestStep, bestError)
	}
	r.Note("%s: %s.", data.name, data.note)
	return nil
}
