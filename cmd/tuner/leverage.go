package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/sketch"
	"github.com/spf13/cobra"
)

// exactRows is up to how many rows exact scores are computed: 8·n² bytes.
const exactRows = 20_000

func newLeverage(g *globals) *cobra.Command {
	l := leverage{}
	cmd := &cobra.Command{
		Use:   "leverage --data FILE --lambda LAMBDA",
		Short: "Compute ridge leverage scores and the effective dimension",
		Long: `Leverage computes how much each row of the data counts for kernel ridge regression
at λ: its score ℓ(i, λ) = (K(K + λnI)⁻¹)_ii, and the sum of all, the effective
dimension: how many centres a good approximation takes.

Exact scores cost n² memory and n³ time. The other methods approximate them from a
few rows, which is what FALKON and BKB do: BLESS (thesis, algorithm 3), BLESS-R
(algorithm 4), SQUEAK, recursive and two-pass sampling.

The table is a summary. With -f csv every row and its score are written.

` + dataHelp,
		Example: `  tuner leverage --data train.csv --lambda 1e-3
  tuner leverage --data train.csv --lambda 1e-4 --method bless -f csv > scores.csv`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd.Context(), g, cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Float64Var(&l.lambda, "lambda", 0, "λ > 0, per sample")
	f.StringVar(&l.method, "method", "auto", "exact, bless, bless-r, squeak, recursive, two-pass, or auto: exact up to 5000 rows, else bless")
	f.StringVar(&l.kernel, "kernel", "gaussian", "the kernel, as in tuner train falkon --help")
	f.StringVar(&l.scale, "length-scale", training.Auto, "its length scale (auto: the median distance of 1000 rows)")
	f.Uint64Var(&l.seed, "seed", 1, "what random numbers are derived from")
	l.data.add(cmd)
	l.data.addTarget(cmd)
	l.encoding.add(cmd)
	l.format = formatFlag(cmd, "table", "csv", "json")
	return cmd
}

// leverage is the flags of leverage.
type leverage struct {
	data                  dataFlags
	encoding              encodingFlags
	lambda                float64
	method, kernel, scale string
	seed                  uint64
	format                *format
}

// leverages is what came out.
type leverages struct {
	Rows               int     `json:"rows"`
	Lambda             float64 `json:"lambda"`
	Kernel             string  `json:"kernel"`
	LengthScale        float64 `json:"length_scale"`
	Method             string  `json:"method"`
	Points             int     `json:"points,omitempty"` // in the dictionary
	EffectiveDimension float64 `json:"effective_dimension"`
	Largest            float64 `json:"largest"`
	Median             float64 `json:"median"`
	Seconds            float64 `json:"seconds"`
	scores             []float64
}

func (l *leverage) run(ctx context.Context, g *globals, cmd *cobra.Command) error {
	if !(l.lambda > 0 && l.lambda <= math.MaxFloat64) {
		return usagef("--lambda %v: must be positive, and finite", l.lambda)
	}
	o, err := l.encoding.encoding()
	if err != nil {
		return err
	}
	table, err := l.data.open(ctx)
	if err != nil {
		return err
	}
	defer table.Close()
	data, err := training.Prepare(ctx, table, training.Split{}, o)
	if err != nil {
		return refused(err)
	}
	g.noteTable(cmd, table, data.Encoding)
	problem, err := training.NewProblem(ctx, data, l.seed)
	if err != nil {
		return dataError(err)
	}
	k, scale, err := training.NewKernel(l.kernel, l.scale, problem)
	if err != nil {
		return usagef("%w", err)
	}
	r := leverages{Rows: data.Train.Len(), Lambda: l.lambda, Kernel: l.kernel, LengthScale: scale}
	if err := l.compute(ctx, &r, k, data.Train); err != nil {
		return dataError(err)
	}
	return l.write(cmd, r)
}

func (l *leverage) compute(ctx context.Context, r *leverages, k kernel.Kernel, src kernel.Source) (err error) {
	began := time.Now()
	method := l.method
	if method == "auto" {
		if method = "exact"; r.Rows > 5000 {
			method = "bless"
		}
	}
	r.Method = method
	switch sampler, _ := training.SamplerNamed(method); {
	case method == "exact" && r.Rows > exactRows:
		return usagef("exact scores of %d rows take %.0f GB of memory; use --method bless", r.Rows, 8e-9*float64(r.Rows)*float64(r.Rows))
	case method == "exact":
		r.scores, err = sketch.LeverageScores(ctx, k, src, l.lambda)
	case sampler != nil && method != "uniform":
		var d *sketch.Dictionary
		if d, err = sampler.Sample(ctx, k, src, l.lambda, stream.New(l.seed)); err != nil {
			return err
		}
		r.Points = d.Len()
		r.scores, err = d.Scores(ctx, k, src, 0)
	default:
		return usagef("--method %s: must be auto, exact, bless, bless-r, squeak, recursive or two-pass", method)
	}
	if err != nil {
		return err
	}
	r.Seconds = time.Since(began).Seconds()
	sorted := slices.Sorted(slices.Values(r.scores))
	r.Largest, r.Median = sorted[len(sorted)-1], sorted[len(sorted)/2]
	for _, s := range r.scores {
		r.EffectiveDimension += s
	}
	return nil
}

func (l *leverage) write(cmd *cobra.Command, r leverages) error {
	out := cmd.OutOrStdout()
	switch l.format.value {
	case "json":
		return writeJSON(out, r)
	case "csv":
		w := csv.NewWriter(out)
		if err := w.Write([]string{"row", "score"}); err != nil {
			return err
		}
		for i, s := range r.scores {
			if err := w.Write([]string{strconv.Itoa(i + 1), strconv.FormatFloat(s, 'g', -1, 64)}); err != nil {
				return err
			}
		}
		w.Flush()
		return w.Error()
	}
	w := newTable(out, "WHAT", "VALUE")
	w.row("rows", fmt.Sprint(r.Rows))
	w.row("kernel", fmt.Sprintf("%s, length scale %.6g", r.Kernel, r.LengthScale))
	w.row("λ", fmt.Sprintf("%.6g", r.Lambda))
	w.row("method", r.Method)
	if r.Points > 0 {
		w.row("points", fmt.Sprint(r.Points))
	}
	w.row("effective dimension", fmt.Sprintf("%.6g", r.EffectiveDimension))
	w.row("largest score", fmt.Sprintf("%.6g", r.Largest))
	w.row("median score", fmt.Sprintf("%.6g", r.Median))
	return w.end()
}
