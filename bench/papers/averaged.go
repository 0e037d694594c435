package papers

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/avgsgd"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/minibatch"
)

// averagedParts are the samplings of figures 2, 4 and 5.
var averagedParts = []string{string(minibatch.Replacement), string(minibatch.Cycle), string(minibatch.Reshuffle)}

// averaged is figures 2, 4 and 5 of Pillaud-Vivien, Rudi and Bach.
var averaged = experiment.Experiment{
	Name:   "averaged",
	Title:  "Averaged SGD, best number of steps against n",
	Source: "Pillaud-Vivien, Rudi and Bach (2018), figures 2, 4 and 5",
	About: `The spline problem with r = 1/(2α), for α = 1.5 and 2 (easy, one pass is enough) and 2.5
and 3 (hard), n = 100 … 1000. The best number of steps of averaged SGD grows as n^slope.
Theory has 1, 1, 1.25 and 1.5. Rows are drawn with replacement (figure 2), in turn
(figure 4) or in a new order in every pass (figure 5). These are the names of the parts.
slope(α = 3) − slope(α = 1.5) should be ≥ 0.4, and the three samplings within 0.2 of
each other. "risk slope" is that of the excess risk at the best step. Theory has −½.`,
	Parts:   averagedParts,
	Repeats: 16,
	Measure: stepsOfAveraging,
}

func stepsOfAveraging(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	slopes := r.Table("slopes", "Slopes of log t* over log n", report.Column{Name: "sampling"}, report.Column{Name: "α"}, report.Column{Name: "slope", Format: "%.2f"}, report.Column{Name: "theory", Format: "%.2f"},
		report.Column{Name: "risk slope", Format: "%.2f"}, report.Column{Name: "at the edge"})
	t := r.Table("steps", "The best number of steps", report.Column{Name: "sampling"}, report.Column{Name: "α"}, report.Column{Name: "n"}, report.Column{Name: "t*", Format: "%.0f"}, report.Column{Name: "passes", Format: "%.2f"}, report.Column{Name: "excess risk"})
	alphas := []float64{1.5, 2, 2.5, 3}
	sizes := [][]int{{50, 100}, {100, 178, 316, 562, 1000}, {100, 178, 316, 562, 1000}}[env.Scale-experiment.Quick]
	all := map[string][]float64{}
	for i, part := range averagedParts {
		if !env.Wants(part) {
			continue
		}
		plot := r.Plot("steps-"+part, "Best number of steps, "+part, figure.Axis{Label: "n", Log: true}, figure.Axis{Label: "steps", Log: true})
		for j, alpha := range alphas {
			env.Report(i*len(alphas)+j, 3*len(alphas), "%s, α = %g", part, alpha)
			s := averagedStudy{
				Alpha: alpha, Order: 1, Terms: env.Pick(100, 1000, 1000), Sampling: minibatch.Sampling(part), // r = 1/(2α)
				Sizes: sizes, Repetitions: env.Repeats, Passes: env.Pick(40, 400, 400), Seed: env.Seed,
			}
			curve, err := s.Run(ctx)
			if err != nil {
				return r, err
			}
			slopes.Add(part, alpha, curve.Slope, max(1, alpha/2), // Theorem 1 with 2rα + 1 = 2
				curve.RiskSlope, yesNo(curve.AtEdge))
			line := figure.Series{Name: "α = " + short(alpha)}
			for k, n := range sizes {
				t.Add(part, alpha, n, curve.Steps[k], curve.Steps[k]/float64(n), curve.Risk[k])
				line.X, line.Y = append(line.X, float64(n)), append(line.Y, curve.Steps[k])
			}
			plot.Add(line)
			all[part] = append(all[part], curve.Slope)
		}
	}
	judgeSlopes(r, alphas, all)
	return r, nil
}

// judgeSlopes states whether the slopes grow as expected and agree.
func judgeSlopes(r *report.Result, alphas []float64, all map[string][]float64) {
	for _, part := range averagedParts {
		s, ok := all[part]
		if !ok {
			continue
		}
		r.Note("%s: slope(α = 3) − slope(α = 1.5) = %.2f, and should be at least 0.4.", part, s[len(s)-1]-s[0])
	}
	if len(all) < 2 {
		return
	}
	apart := 0.0
	for j := range alphas {
		low, high := math.Inf(1), math.Inf(-1)
		for _, s := range all {
			low, high = min(low, s[j]), max(high, s[j])
		}
		apart = max(apart, high-low)
	}
	r.Note("The samplings are at most %.2f apart, and should be within 0.2.", apart)
}

// averagedMNIST is figure 3 of Pillaud-Vivien, Rudi and Bach.
var averagedMNIST = experiment.Experiment{
	Name:   "averaged-mnist",
	Title:  "Averaged SGD on MNIST, best number of passes against n",
	Source: "Pillaud-Vivien, Rudi and Bach (2018), figure 3",
	About: `Linear least squares on the pixels of n digits, ten one-vs-all targets, by averaged SGD
without replacement, γ = 1/(4R²). The best number of passes, by the squared error on
other digits, grows with n in the paper. A fit ends after 100 passes without a gain.`,
	Repeats: 3,
	Measure: passesOnMNIST,
}

func passesOnMNIST(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	train, test, err := mnist(ctx, env)
	if err != nil {
		return nil, err
	}
	t := r.Table("passes", "The best number of passes", report.Column{Name: "n"}, report.Column{Name: "passes", Format: "%.1f"}, report.Column{Name: "MSE", Format: "%.4f"}, report.Column{Name: "class error", Format: "%.4f"}, report.Column{Name: "at the edge"})
	plot := r.Plot("passes", "Averaged SGD on MNIST", figure.Axis{Label: "n", Log: true}, figure.Axis{Label: "best number of passes", Log: true})
	line := figure.Series{Name: "measured"}
	sizes := [][]int{{200, 400}, {100, 300, 1000, 3000}, {100, 300, 1000, 3000, 10_000, 30_000}}[env.Scale-experiment.Quick]
	judge := first(test, env.Pick(200, 2000, 10_000))
	passes := env.Pick(5, 1000, 2000)
	for i, n := range sizes {
		env.Report(i, len(sizes), "n = %d", n)
		var best, least, wrong []float64
		edge := 0
		for rep := range env.Repeats {
			rows, err := someRows(train, n, env, rep)
			if err != nil {
				return r, err
			}
			at, lowest := 0, math.Inf(1)
			most := max(min(passes, 10_000_000/n), 10) // because a pass costs n
			o := learners.Options{
				Seed: env.Derive("averaged-mnist", rep), Workers: env.Workers, Validation: judge, Measure: learners.MSE,
				Patience: 100,
				Progress: func(p learners.Progress) error {
					if p.ValidationError < lowest {
						at, lowest = p.Iteration, p.ValidationError
					}
					return nil
				},
			}
			m, err := avgsgd.Params{Passes: most, Sampling: minibatch.Reshuffle}.Fit(ctx, rows, o)
			if err != nil {
				return r, err
			}
			e, _, err := errorOn(ctx, m, judge)
			if err != nil {
				return r, err
			}
			if at == most {
				edge++
			}
			best, least, wrong = append(best, float64(at)), append(least, lowest), append(wrong, e)
		}
		b, _ := meanOf(best)
		l, _ := meanOf(least)
		w, _ := meanOf(wrong)
		t.Add(n, b, l, w, edge)
		line.X, line.Y = append(line.X, float64(n)), append(line.Y, b)
	}
	plot.Add(line)
	return r, nil
}

// mnist returns the digits, pixels divided by 255.
func mnist(ctx context.Context, env *experiment.Env) (train, test *data.Memory, err error) {
	read := func(images, labels string, e *data.Encoding) (*encoded, error) {
		return twoClasses(ctx, env, dataset.Options{TargetPath: "mnist/" + labels, Float32: true}, "mnist/"+images, e)
	}
	if env.Scale == experiment.Quick { // a sixth of the time to read
		a, err := read("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", nil)
		if err != nil {
			return nil, nil, err
		}
		half := a.rows.Len() / 2
		test, err = data.NewMemory(a.rows.Rows().Slice(half, 2*half), a.rows.Targets()[half*a.rows.Outputs():], a.rows.Outputs())
		return first(a.rows, half), test, err
	}
	a, err := read("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", nil)
	if err != nil {
		return nil, nil, err
	}
	b, err := read("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", a.e)
	if err != nil {
		return nil, nil, err
	}
	return a.rows, b.rows, nil
}

// someRows returns n rows at random.
func someRows(m *data.Memory, n int, env *experiment.Env, rep int) (*data.Memory, error) {
	if n >= m.Len() {
		return m, nil
	}
	return chosenRows(m, env.Rand("rows", rep).Perm(m.Len())[:n])
}

// chosenRows returns some rows, in the order given.
func chosenRows(m *data.Memory, chosen []int) (*data.Memory, error) {
	n, c := len(chosen), m.Outputs()
	y := make([]float64, 0, n*c)
	for _, i := range chosen {
		y = append(y, m.Targets()[i*c:][:c]...)
	}
	return data.NewMemory(m.Rows().Select(chosen), y, c)
}
