package papers

import (
	"context"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
)

// online measures the rates of Lin and Rosasco (2019).
var online = experiment.Experiment{
	Name:   "online",
	Title:  "Doubly online learning, error against steps",
	Source: "Lin and Rosasco (2019), corollaries 3.2, 3.6 and 3.8",
	About: `The relative squared distance of f_T from the truth, a random function of the space of
the Gaussian kernel (ζ = ½, γ ≈ 0), as T grows, for constant steps, decaying steps, and
decaying steps with a ridge. "theory" is the exponent that the corollary guarantees. The
error may fall faster.`,
	Repeats: 8,
	Measure: ratesOnline,
}

func ratesOnline(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	slopes := r.Table("slopes", "Slopes of log error over log T", report.Column{Name: "steps"}, report.Column{Name: "slope", Format: "%.2f"}, report.Column{Name: "theory", Format: "%.2f"})
	t := r.Table("errors", "Relative squared error", report.Column{Name: "steps"}, report.Column{Name: "T"}, report.Column{Name: "error"})
	plot := r.Plot("errors", "Doubly online learning", figure.Axis{Label: "T", Log: true}, figure.Axis{Label: "relative squared error", Log: true})
	sizes := [][]int{{100, 200, 400}, {500, 1000, 2000, 4000}, {500, 1000, 2000, 4000, 8000, 16_000}}[env.Scale-experiment.Quick]
	rules := []onlineRule{fixedSteps, decayingSteps, regularisedSteps}
	for i, rule := range rules {
		env.Report(i, len(rules), "%s steps", rule)
		rates, err := onlineStudy{Rule: rule, Sizes: sizes, Noise: 0.3, Repetitions: env.Repeats, Seed: env.Seed}.Run(ctx)
		if err != nil {
			return r, err
		}
		slopes.Add(string(rule), rates.Slope, rates.Theory)
		s := figure.Series{Name: string(rule)}
		for j, size := range rates.Sizes {
			t.Add(string(rule), size, rates.Error[j])
			s.X, s.Y = append(s.X, float64(size)), append(s.Y, rates.Error[j])
		}
		plot.Add(s)
	}
	return r, nil
}
