package papers

import (
	"context"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// generate returns rows 0 … n−1 of a problem in memory.
func generate(ctx context.Context, p data.Problem, n int) (*data.Memory, error) {
	source, err := data.Generate[float64](p, 0, n)
	if err != nil {
		return nil, err
	}
	return data.Load(ctx, source)
}

// susyRows returns the first n rows of the real SUSY data, 8 features of 10,000 events,
// z-scored.
func susyRows(ctx context.Context, env *experiment.Env, n int) (*data.Memory, error) {
	const folder = "susy_10k/susy_10Kn_train"
	table, err := env.Table(ctx, dataset.Options{TargetPath: folder + "_label.csv.gz"}, folder+".csv.gz")
	if err != nil {
		return nil, err
	}
	encoding, err := table.FitEncoding(ctx, nil, data.EncodingOptions{})
	if err != nil {
		return nil, err
	}
	source, err := table.Encode(ctx, encoding)
	if err != nil {
		return nil, err
	}
	all, err := data.Load(ctx, source)
	if err != nil || n >= all.Len() {
		return all, err
	}
	return data.NewMemory(all.Rows().Slice(0, n), all.Targets()[:n*all.Outputs()], all.Outputs())
}

// gaussian is the Gaussian kernel exp(−‖x − y‖²/(2σ²)).
func gaussian(sigma float64) (kernel.Kernel, error) { return kernel.NewGaussian(sigma) }
