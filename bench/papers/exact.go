package papers

import (
	"context"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/training"
)

// exactness compares FALKON with exact ridge regression.
var exactness = experiment.Experiment{
	Name:   "exact",
	Title:  "FALKON against exact kernel ridge regression on real data",
	Source: "ours, Carratino (2020), theorem 8",
	About: `Both learn the same rows, at most 8000, with the Gaussian kernel. Each chooses its
length scale, of ⅛ to 4 median distances, and λ, of 1e-9 to 1e-2, by its own error on
500 of 2000 rows. FALKON has centres in proportion, so both are tuned alike. FALKON has
M uniform centres and 100 iterations. Test rows are the tenth of the data that the first
mask of the data set names. FALKON should be within 2 % of exact on concrete, airfoil,
energy and protein. On kin40k, with the settings of exact regression, the table has the
error against M. At M = n it should be that of exact regression.`,
	Parts:   []string{"concrete", "airfoil", "energy", "protein", "kin40k"},
	Measure: errorsOfCenters,
}

func errorsOfCenters(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	t := r.Table("errors", "Test error, RMSE of standardised targets", report.Column{Name: "data"}, report.Column{Name: "n"}, report.Column{Name: "learner"}, report.Column{Name: "M"},
		report.Column{Name: "σ"}, report.Column{Name: "λ"}, report.Column{Name: "RMSE", Format: "%.4f"}, report.Column{Name: "ratio", Format: "%.3f"}, report.Column{Name: "CPU", Unit: "s", Format: "%.2f"})
	parts := []string{"concrete", "airfoil", "energy", "protein", "kin40k"}
	return r, eachPart(ctx, env, r, parts, func(at int, part string) error {
		env.Report(at, len(parts), "%s", part)
		train, test, err := regressionData(ctx, env, part, env.Pick(300, 8000, 8000))
		if err != nil {
			return err
		}
		if err := againstExact(ctx, env, r, t, part, train, test); err != nil {
			return err
		}
		return nil
	})
}

// againstExact runs the comparison on one data set.
func againstExact(ctx context.Context, env *experiment.Env, r *report.Result, t *report.Table, name string, train, test *data.Memory) error {
	n := train.Len()
	grid, err := newTuningGrid(ctx, env, train)
	if err != nil {
		return err
	}
	env.Report(0, 0, "%s, exact", name)
	ridge := func(k kernel.Kernel, lambda float64, _ int) learners.Estimator {
		return krr.Params{Kernel: k, Lambda: lambda}
	}
	best, err := grid.tune(ctx, env, ridge)
	if err != nil {
		return err
	}
	want, cpu, err := best.errorOf(ctx, env, ridge, n, train, test)
	if err != nil {
		return err
	}
	t.Add(name, n, "exact", n, best.sigma, best.lambda, want, 1.0, cpu)
	s := figure.Series{Name: "FALKON"}
	sizes := []int{n / 4, n / 2, n * 3 / 4, n}
	if name == "kin40k" { // with the settings of exact regression, to reach its solution
		sizes = []int{n / 64, n / 32, n / 16, n / 8, n / 4, n / 2, n}
	}
	for _, m := range sizes {
		env.Report(0, 0, "%s, M = %d", name, m)
		// M is the same share of the rows when tuning.
		falkonOf := func(k kernel.Kernel, lambda float64, rows int) learners.Estimator {
			return falkon.Params{Kernel: k, Lambda: lambda, Centers: (m*rows + n - 1) / n, Iterations: 100}
		}
		at := best
		if name != "kin40k" {
			if at, err = grid.tune(ctx, env, falkonOf); err != nil {
				return err
			}
		}
		got, cpu, err := at.errorOf(ctx, env, falkonOf, n, train, test)
		if err != nil {
			return err
		}
		t.Add(name, n, "FALKON", m, at.sigma, at.lambda, got, got/want, cpu)
		s.X, s.Y = append(s.X, float64(m)), append(s.Y, got)
	}
	if name == "kin40k" {
		r.Plot("kin40k", "FALKON on kin40k", figure.Axis{Label: "M", Log: true}, figure.Axis{Label: "RMSE", Log: true}).
			Add(s).Add(figure.Series{Name: "exact", X: []float64{s.X[0], s.X[len(s.X)-1]}, Y: []float64{want, want}})
	}
	return nil
}

// tuningGrid has the settings that both learners choose from, and the rows for the choice.
type tuningGrid struct {
	learn, judge *data.Memory
	median       float64
}

// newTuningGrid takes up to 2000 rows, a quarter of them for validation.
func newTuningGrid(ctx context.Context, env *experiment.Env, train *data.Memory) (*tuningGrid, error) {
	order := env.Rand("exact rows", 0).Perm(train.Len())
	order = order[:min(len(order), env.Pick(200, 2000, 2000))]
	rows, err := chosenRows(train, order)
	if err != nil {
		return nil, err
	}
	median, err := training.MedianDistance(ctx, train, env.Seed)
	if err != nil {
		return nil, err
	}
	n, c := rows.Len(), rows.Outputs()
	judge, err := data.NewMemory(rows.Rows().Slice(n*3/4, n), rows.Targets()[n*3/4*c:], c)
	return &tuningGrid{first(rows, n*3/4), judge, median}, err
}

// setting is a choice.
type setting struct {
	k             kernel.Kernel
	sigma, lambda float64
}

// tune returns the setting with the least error on the validation rows.
func (g *tuningGrid) tune(ctx context.Context, env *experiment.Env, of func(k kernel.Kernel, lambda float64, rows int) learners.Estimator) (best setting, err error) {
	least := math.Inf(1)
	for _, scale := range []float64{0.125, 0.25, 0.5, 1, 2, 4} {
		k, err := kernel.NewGaussian(scale * g.median)
		if err != nil {
			return best, err
		}
		for e := -9; e <= -2; e++ {
			at := setting{k, scale * g.median, math.Pow(10, float64(e))}
			wrong, _, err := at.errorOf(ctx, env, of, g.learn.Len(), g.learn, g.judge)
			if err != nil {
				return best, err
			}
			if wrong < least {
				least, best = wrong, at
			}
		}
	}
	return best, nil
}

// errorOf fits and returns the error on test rows and the CPU time of the fit.
func (at setting) errorOf(ctx context.Context, env *experiment.Env, of func(k kernel.Kernel, lambda float64, rows int) learners.Estimator, rows int, train, test *data.Memory) (rmse, cpu float64, err error) {
	watch := experiment.StartWatch()
	model, err := of(at.k, at.lambda, rows).Fit(ctx, train, learners.Options{Workers: env.Workers, Seed: env.Derive("exact", 0)})
	if err != nil {
		return 0, 0, err
	}
	cpu = watch.CPU()
	rmse, err = rmseOn(ctx, model, test)
	return rmse, cpu, err
}

// rmseOn returns the root mean square error on rows.
func rmseOn(ctx context.Context, m learners.Model, test *data.Memory) (float64, error) {
	out := make([]float64, len(test.Targets()))
	if err := m.Predict(ctx, out, test); err != nil {
		return 0, err
	}
	return learners.RMSE(out, test.Targets(), test.Outputs()), nil
}

// regressionData returns up to n training rows of a UCI set, and the rows of its first test
// mask, encoded by the training rows.
func regressionData(ctx context.Context, env *experiment.Env, name string, n int) (train, test *data.Memory, err error) {
	table, err := env.Table(ctx, dataset.Options{Target: []string{"-1"}, Header: dataset.HeaderNo}, "uci/"+name+".data.csv.gz")
	if err != nil {
		return nil, nil, err
	}
	defer table.Close()
	mask, err := testMask(ctx, env, name)
	if err != nil {
		return nil, nil, err
	}
	if len(mask) != table.Len() {
		return nil, nil, fmt.Errorf("bench: the mask of %s has %d rows, the data %d", name, len(mask), table.Len())
	}
	var in, out []int
	for i, held := range mask {
		if held {
			out = append(out, i)
		} else {
			in = append(in, i)
		}
	}
	e, err := table.FitEncoding(ctx, in, data.EncodingOptions{Task: data.Regression})
	if err != nil {
		return nil, nil, err
	}
	all, err := table.Encode(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	part := func(rows []int) (*data.Memory, error) {
		src, err := data.Subset(all, rows)
		if err != nil {
			return nil, err
		}
		return data.Load(ctx, src)
	}
	if train, err = part(in); err != nil {
		return nil, nil, err
	}
	if test, err = part(out); err != nil {
		return nil, nil, err
	}
	train, err = someRows(train, n, env, 1)
	return train, test, err
}

// testMask returns which rows the first split of a UCI set holds out.
func testMask(ctx context.Context, env *experiment.Env, name string) ([]bool, error) {
	table, err := env.Table(ctx, dataset.Options{NoTarget: true, Header: dataset.HeaderNo}, "uci/"+name+".test_mask.csv.gz")
	if err != nil {
		return nil, err
	}
	defer table.Close()
	all := make([]int, table.Len())
	for i := range all {
		all[i] = i
	}
	rows, err := kernel.Select(ctx, table.Cells(), all)
	if err != nil {
		return nil, err
	}
	x, ok := rows.(*kernel.Points[float64])
	if !ok {
		return nil, fmt.Errorf("bench: the mask of %s is %T", name, rows)
	}
	mask := make([]bool, x.Len())
	for i := range mask {
		mask[i] = x.Row(i)[0] != 0
	}
	return mask, nil
}
