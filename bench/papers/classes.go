package papers

import (
	"context"
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// classesData is a problem of two classes. It has training rows and test rows.
type classesData struct {
	name        string
	train, test *data.Memory
	sigma       float64 // length scale of the Gaussian kernel
	note        string
}

// classProblems are the parts of the figures on two classes.
var classProblems = []string{"generator", "susy", "higgs"}

// classData returns a problem of classProblems, with n training rows, or all if there are
// fewer.
func classData(ctx context.Context, env *experiment.Env, name string, n int) (*classesData, error) {
	switch name {
	case "generator":
		train, err := generate(ctx, data.SUSYLike{Seed: env.Derive("susy-like", 0)}, n)
		if err != nil {
			return nil, err
		}
		test, err := generate(ctx, data.SUSYLike{Seed: env.Derive("susy-like", 1)}, max(n/4, min(n, 10_000)))
		return &classesData{name: "SUSY-like generator", train: train, test: test, sigma: 4, note: "its Bayes error is 0.146"}, err
	case "susy":
		train, err := twoClasses(ctx, env, dataset.Options{TargetPath: "susy_10k/susy_10Kn_train_label.csv.gz"}, "susy_10k/susy_10Kn_train.csv.gz", nil)
		if err != nil {
			return nil, err
		}
		test, err := twoClasses(ctx, env, dataset.Options{TargetPath: "susy_10k/susy_10Kn_test_label.csv.gz"}, "susy_10k/susy_10Kn_test.csv.gz", train.e)
		if err != nil {
			return nil, err
		}
		return &classesData{name: "SUSY, 8 features", train: first(train.rows, n), test: test.rows, sigma: 4, note: "10,000 of the 5 million rows and the 8 low-level features are available here"}, nil
	default:
		o := dataset.Options{Target: []string{"1"}}
		train, err := twoClasses(ctx, env, o, "higgs_h2o15k/higgs_train_10k.csv.gz", nil)
		if err != nil {
			return nil, err
		}
		test, err := twoClasses(ctx, env, o, "higgs_h2o15k/higgs_test_5k.csv.gz", train.e)
		if err != nil {
			return nil, err
		}
		return &classesData{name: "HIGGS", train: first(train.rows, n), test: test.rows, sigma: 5, note: "10,000 of the 11 million rows are available here"}, nil
	}
}

// eachPart runs the wanted parts. Those whose data are missing are left out, unless they
// were named.
func eachPart(ctx context.Context, env *experiment.Env, r *report.Result, parts []string, run func(at int, part string) error) error {
	for at, part := range parts {
		if !env.Wants(part) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		err := run(at, part)
		var missing *experiment.DataError
		switch {
		case errors.As(err, &missing) && !env.Named(part):
			r.Note("%s is left out: %v.", part, missing)
		case err != nil:
			return err
		}
	}
	return nil
}

// encoded is rows with their encoding.
type encoded struct {
	rows *data.Memory
	e    *data.Encoding
}

// twoClasses reads a file of the data directory with the encoding e, or a new one if e is
// nil.
func twoClasses(ctx context.Context, env *experiment.Env, o dataset.Options, name string, e *data.Encoding) (*encoded, error) {
	table, err := env.Table(ctx, o, name)
	if err != nil {
		return nil, err
	}
	defer table.Close()
	if e == nil {
		if e, err = table.FitEncoding(ctx, nil, data.EncodingOptions{Task: data.Classification}); err != nil {
			return nil, err
		}
	}
	src, err := table.Encode(ctx, e)
	if err != nil {
		return nil, err
	}
	rows, err := data.Load(ctx, src)
	return &encoded{rows, e}, err
}

// first returns the first n rows.
func first(m *data.Memory, n int) *data.Memory {
	if n >= m.Len() {
		return m
	}
	part, err := data.NewMemory(m.Rows().Slice(0, n), m.Targets()[:n*m.Outputs()], m.Outputs())
	if err != nil {
		panic(fmt.Sprintf("bench: rows that were read once: %v", err))
	}
	return part
}

// errorOn returns the share of rows of data that a model classifies wrongly, and the area
// under its ROC curve.
func errorOn(ctx context.Context, m learners.Model, data *data.Memory) (wrong, auc float64, err error) {
	out := make([]float64, len(data.Targets()))
	if err := m.Predict(ctx, out, kernel.FromRows(data.Rows())); err != nil {
		return 0, 0, err
	}
	c := data.Outputs()
	return learners.ClassError(out, data.Targets(), c), learners.AUC(out, data.Targets(), c), nil
}

// watching returns fit options that call hear with the class error on data after every
// iteration.
func watching(env *experiment.Env, seed uint64, data *data.Memory, hear func(iteration int, wrong float64)) learners.Options {
	return learners.Options{
		Seed: seed, Workers: env.Workers, Validation: data, Measure: learners.ClassError,
		Progress: func(p learners.Progress) error {
			hear(p.Iteration, p.ValidationError)
			return nil
		},
	}
}
