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
approximate them from a few rows, as FALKON and BKB do. For several λ they choose these
rows once, and bless has fewer of them for a larger λ. The table is a summary. With -f csv
every row and its scores are written.`,
		Example: `  tuner leverage --data train.csv --lambda 1e-3
  tuner leverage --data train.csv --lambda 1e-2,1e-3,1e-4
  tuner leverage --data train.csv --lambda 1e-4 -f csv > scores.csv`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd.Context(), g, cmd) },
	}
	cli.FlagGroup(cmd, cli.Group{Title: "Scores"}, func(f *pflag.FlagSet) {
		f.Float64SliceVar(&l.lambdas, "lambda", nil, "`numbers` λ per sample, above 0, with commas between")
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
	lambdas               []float64
	method, kernel, scale string
	seed                  uint64
	format                *string
}

type leverages struct {
	Rows        int     `json:"rows"`
	Kernel      string  `json:"kernel"`
	LengthScale float64 `json:"length_scale,omitempty"`
	// LengthScales has one for each encoded input.
	LengthScales []float64 `json:"length_scales,omitempty"`
	Method       string    `json:"method"`
	*leverageAt            // of the only λ
	// Path has several λ, in the order of the flag.
	Path    []leverageAt `json:"path,omitempty"`
	Seconds float64      `json:"seconds"`
}

// leverageAt are the scores at one λ.
type leverageAt struct {
	Lambda             float64 `json:"lambda"`
	Points             int     `json:"points,omitempty"` // in the dictionary
	EffectiveDimension float64 `json:"effective_dimension"`
	Largest            float64 `json:"largest"`
	Median             float64 `json:"median"`
	scores             []float64
}

func (l *leverage) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command) error {
	switch {
	case !cmd.Flags().Changed("data"):
		return errNoData
	case !cmd.Flags().Changed("lambda"):
		return cli.Usagef("there is no λ; give one with --lambda, such as 1e-3")
	}
	for _, lambda := range l.lambdas {
		if !(lambda > 0 && lambda <= math.MaxFloat64) {
			return cli.Usagef("--lambda %v: must be above 0 and finite", lambda)
		}
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
	r := leverages{Rows: data.Train.Len(), Kernel: l.kernel}
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
	var d *sketch.Dictionary
	switch sampler, _ := training.SamplerNamed(method); {
	case method == "exact" && r.Rows > exactRows:
		return cli.Usagef("exact scores of %d rows take %.0f GB of memory; use --method bless", r.Rows, 8e-9*float64(r.Rows)*float64(r.Rows))
	case method != "exact":
		if d, err = sampler.Sample(ctx, k, src, slices.Min(l.lambdas), stream.New(l.seed)); err != nil {
			return err
		}
	}
	for _, lambda := range l.lambdas {
		at := leverageAt{Lambda: lambda}
		if d == nil {
			at.scores, err = sketch.LeverageScores(ctx, k, src, lambda)
		} else {
			at.Points = d.At(lambda).Len()
			at.scores, err = d.ScoresAt(ctx, k, src, lambda, 0)
		}
		if err != nil {
			return err
		}
		sorted := slices.Sorted(slices.Values(at.scores))
		at.Largest, at.Median = sorted[len(sorted)-1], sorted[len(sorted)/2]
		for _, s := range at.scores {
			at.EffectiveDimension += s
		}
		r.Path = append(r.Path, at)
	}
	r.Seconds = time.Since(began).Seconds()
	if len(r.Path) == 1 {
		r.leverageAt, r.Path = &r.Path[0], nil
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
		if r.leverageAt == nil {
			lines[0] = lines[0][:1]
			for _, at := range r.Path {
				lines[0] = append(lines[0], fmt.Sprintf("score(%g)", at.Lambda))
			}
		} else {
			r.Path = []leverageAt{*r.leverageAt}
		}
		for i := range r.Path[0].scores {
			line := []string{strconv.Itoa(i + 1)}
			for _, at := range r.Path {
				line = append(line, numberText(at.scores[i]))
			}
			lines = append(lines, line)
		}
		return csv.NewWriter(out).WriteAll(lines)
	}
	if r.Path != nil {
		w := cli.NewTable(out, "LAMBDA", "METHOD", "POINTS", "EFFECTIVE-DIMENSION", "LARGEST", "MEDIAN")
		for _, at := range r.Path {
			points := "-"
			if at.Points > 0 {
				points = fmt.Sprint(at.Points)
			}
			w.Row(fmt.Sprintf("%.6g", at.Lambda), r.Method, points, fmt.Sprintf("%.6g", at.EffectiveDimension), fmt.Sprintf("%.6g", at.Largest), fmt.Sprintf("%.6g", at.Median))
		}
		return w.End()
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
