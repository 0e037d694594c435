package papers

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/learners/sgdrf"
	"github.com/bkbtuner/bkb/sketch"
)

// fig31 is figure 3.1 of Carratino (2020).
var fig31 = experiment.Experiment{
	Name:   "fig3.1",
	Title:  "SGD with random features, class error against their number M",
	Source: "Carratino (2020), figure 3.1",
	About: `SGD with M random Fourier features √2cos(wᵀx + b) of the Gaussian kernel, b = √n, γ = 1,
five passes, as in Carratino (2020). The error falls until M is about √n and is flat
from there. Carratino (2020) has n = 2·10⁵ rows of SUSY and of HIGGS. Here the generator
has 20,000 (200,000 with --full), and the real data have 10,000 rows each. Errors are
means over the repeats, each with other features and mini-batches.`,
	Parts:   classProblems,
	Repeats: 3,
	Measure: errorsOfFeatures,
}

func errorsOfFeatures(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	t := r.Table("features", "Class error after 5 passes, b = √n, γ = 1",
		report.Column{Name: "data"}, report.Column{Name: "n"}, report.Column{Name: "M"}, report.Column{Name: "M/√n", Format: "%.2f"},
		report.Column{Name: "error", Format: "%.4f"}, report.Column{Name: "±", Format: "%.4f"})
	plot := r.Plot("features", "SGD with random features", figure.Axis{Label: "M/√n", Log: true}, figure.Axis{Label: "class error"})
	return r, eachPart(ctx, env, r, classProblems, func(at int, part string) error {
		data, err := classData(ctx, env, part, env.Pick(1000, 20_000, 200_000))
		if err != nil {
			return err
		}
		k, err := gaussian(data.sigma)
		if err != nil {
			return err
		}
		n := data.train.Len()
		root := math.Sqrt(float64(n))
		s := figure.Series{Name: data.name}
		ratios := []float64{1.0 / 32, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1, 2, 4, 8}
		for i, ratio := range ratios {
			m := max(int(math.Round(ratio*root)), 2)
			env.Report(at*len(ratios)+i, len(classProblems)*len(ratios), "%s, M = %d", data.name, m)
			var wrong []float64
			for rep := range env.Repeats {
				p := sgdrf.Params{Kernel: k, Family: sketch.FourierCosine, Features: m, BatchSize: int(math.Round(root)), StepSize: 1, Passes: 5, Averaging: sgdrf.None}
				last := math.NaN()
				if _, err := p.Fit(ctx, data.train, watching(env, env.Derive("fig3.1", rep), data.test, func(_ int, e float64) { last = e })); err != nil {
					return err
				}
				wrong = append(wrong, last)
			}
			mean, se := meanOf(wrong)
			t.Add(data.name, n, m, float64(m)/root, mean, se)
			s.X, s.Y = append(s.X, float64(m)/root), append(s.Y, mean)
		}
		plot.Add(s)
		r.Note("%s: %s.", data.name, data.note)
		judgeFeatures(r, data.name, s)
		return nil
	})
}

// judgeFeatures states how much is gained before M = √n and after.
func judgeFeatures(r *report.Result, name string, s figure.Series) {
	var at, last float64
	for i, x := range s.X {
		if math.Abs(math.Log(x)) < 0.05 {
			at = s.Y[i]
		}
		last = s.Y[i]
	}
	if at > 0 {
		r.Note("%s: from M = %.2f√n to √n the error falls by %.4f, from there to %.0f√n by %.4f.", name, s.X[0], s.Y[0]-at, s.X[len(s.X)-1], at-last)
	}
}

// meanOf returns the mean and its standard error.
func meanOf(x []float64) (mean, se float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	if len(x) < 2 {
		return mean, math.NaN()
	}
	for _, v := range x {
		se += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(se / float64(len(x)-1) / float64(len(x)))
}
