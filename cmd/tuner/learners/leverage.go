package learners

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/sketch"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// exactRows is the largest number of rows for exact scores, which take 8·n² bytes.
const exactRows = 20_000

func newLeverage(g *cli.Globals) *cobra.Command {
	l := leverage{}
	cmd := &cobra.Command{
		Use:   "leverage --data FILE --lambda LAMBDA",
		Short: "Compute ridge leverage scores and the effective dimension",
		Long: `Leverage computes the ridge leverage score of each row of the data, and their sum, which
is the effective dimension.

The score of row i at λ is ℓ(i, λ) = (K(K + λnI)⁻¹)_ii. It says how much the row counts
for kernel ridge regression. The effective dimension says how many centres a good
approximation needs. Exact scores need n² memory and n³ time. The other methods
approximate them from a few rows, as FALKON and BKB do. The table is a summary. With
-f csv every row and its score are written.`,
		Example: `  tuner leverage --data train.csv --lambda 1e-3
  tuner leverage --data train.csv --lambda 1e-4 -f csv > scores.csv`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd.Context(), g, cmd) },
	}
	cli.FlagGroup(cmd, cli.Group{Title: "Scores"}, func(f *pflag.FlagSet) {
		f.Float64Var(&l.lambda, "lambda", 0, "λ per sample, above 0")
		cli.ChoiceVar(f, &l.method, "method", "", "`method` (auto is exact up to 5000 rows, else bless)", "auto", "exact", "bless", "bless-r", "squeak", "recursive", "two-pass")
		f.StringVar(&l.kernel, "kernel", "gaussian", "`kernel`, as in tuner train falkon")
		f.StringVar(&l.scale, "length-scale", training.Median, "`length` scale of the kernel, or one for each encoded input with commas between (median is the median distance of 1000 rows)")
		f.Uint64Var(&l.seed, "seed", 1, "seed of random numbers")
	})
	cli.Register(cmd, "kernel", cli.Words(kernelNames()...))
	l.data.add(cmd)
	l.data.addTarget(cmd)
	l.encoding.add(cmd)
	l.format = cli.FormatFlag(cmd, "table", "csv", "json")
	return cmd
}

type leverage struct {
	data                  dataFlags
	encoding              encodingFlags
	lambda                float64
	method, kernel, scale string
	seed                  uint64
	format                *string
}

type leverages struct {
	Rows        int     `json:"rows"`
	Lambda      float64 `json:"lambda"`
	Kernel      string  `json:"kernel"`
	LengthScale float64 `json:"length_scale,omitempty"`
	// LengthScales has one for each encoded input.
	LengthScales       []float64 `json:"length_scales,omitempty"`
	Method             string    `json:"method"`
	Points             int       `json:"points,omitempty"` // in the dictionary
	EffectiveDimension float64   `json:"effective_dimension"`
	Largest            float64   `json:"largest"`
	Median             float64   `json:"median"`
	Seconds            float64   `json:"seconds"`
	scores             []float64
}

func (l *leverage) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command) error {
	switch {
	case !cmd.Flags().Changed("data"):
		return errNoData
	case !cmd.Flags().Changed("lambda"):
		return cli.Usagef("there is no λ; give one with --lambda, such as 1e-3")
	case !(l.lambda > 0 && l.lambda <= math.MaxFloat64):
		return cli.Usagef("--lambda %v: must be above 0 and finite", l.lambda)
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
	noteTable(g, cmd, table, data.Encoding)
	problem, err := training.NewProblem(ctx, data, l.seed)
	if err != nil {
		return dataError(err)
	}
	k, scales, err := training.NewKernel(l.kernel, l.scale, problem)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	r := leverages{Rows: data.Train.Len(), Lambda: l.lambda, Kernel: l.kernel}
	if len(scales) == 1 {
		r.LengthScale = scales[0]
	} else {
		r.LengthScales = scales
	}
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
		return cli.Usagef("exact scores of %d rows take %.0f GB of memory; use --method bless", r.Rows, 8e-9*float64(r.Rows)*float64(r.Rows))
	case method == "exact":
		r.scores, err = sketch.LeverageScores(ctx, k, src, l.lambda)
	default:
		var d *sketch.Dictionary
		if d, err = sampler.Sample(ctx, k, src, l.lambda, stream.New(l.seed)); err != nil {
			return err
		}
		r.Points = d.Len()
		r.scores, err = d.Scores(ctx, k, src, 0)
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
	switch *l.format {
	case "json":
		return cli.WriteJSON(out, r)
	case "csv":
		lines := [][]string{{"row", "score"}}
		for i, s := range r.scores {
			lines = append(lines, []string{strconv.Itoa(i + 1), numberText(s)})
		}
		return csv.NewWriter(out).WriteAll(lines)
	}
	w := cli.NewTable(out, "QUANTITY", "VALUE")
	w.Row("rows", fmt.Sprint(r.Rows))
	scale := fmt.Sprintf("length scale %.6g", r.LengthScale)
	if n := len(r.LengthScales); n > 0 {
		scale = fmt.Sprintf("%d length scales from %.6g to %.6g", n, slices.Min(r.LengthScales), slices.Max(r.LengthScales))
	}
	w.Row("kernel", r.Kernel+", "+scale)
	w.Row("λ", fmt.Sprintf("%.6g", r.Lambda))
	w.Row("method", r.Method)
	if r.Points > 0 {
		w.Row("points", fmt.Sprint(r.Points))
	}
	w.Row("effective dimension", fmt.Sprintf("%.6g", r.EffectiveDimension))
	w.Row("largest score", fmt.Sprintf("%.6g", r.Largest))
	w.Row("median score", fmt.Sprintf("%.6g", r.Median))
	return w.End()
}
