// Package diagnose has the commands that explain what a study has learned.
package diagnose

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/shared"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
	"github.com/spf13/cobra"
)

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return append(cli.Connects(cli.ToService, newDiagnose(g), newImportance(g), newExpect(g), newPlot(g)),
		cli.Connects(cli.ToPlace, newReplay(g))...)
}

func newDiagnose(g *cli.Globals) *cobra.Command {
	var form *string
	cmd := &cobra.Command{
		Use:               "diagnose [STUDY]",
		Short:             "Show the state of a study's model",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Diagnose shows the state of the model of the proposer bkb, with units.

Quantities:
  results              finished trials that the model has, with late results
  inducing points      points that the model rests on, and how they were drawn
  effective dimension  number of points that the results need
  information gain     information of the results about the objective
  noise                standard deviation of repeated outcomes
  mean of the prior    value that is expected far from all results
  length scales        their geometric mean, and the shortest ones, along which
                       the objective varies fast
  width of bounds      half width of the confidence bounds
  width by theory      half width that the theory asks for
  coverage             last outcomes within the 95 % interval predicted for them
  calibration          factor of the intervals, which tracks 95 % of outcomes
  outliers             results left out, far worse than their neighbours
  failures             infeasible or failed results, and whether suggestions
                       avoid places like theirs
  METRIC kept          results that keep the limits of a metric
  METRIC noise         standard deviation of repeated measurements of it
  stuck for            results since the last improvement
  gap                  how much better than the best a configuration can be,
                       under the model, with bounds as wide as outcomes ask for

It warns of settings that have no effect, such as cost=told when no costs are reported.`,
		Example: "  tuner diagnose digits",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.WithStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
				d, err := svc.Diagnose(ctx, name)
				if err == nil && d.State != surrogate.Ready && d.Results == 0 {
					err = cli.Exit(cli.ExitNotFound, d.State.NoModel(name, d.Missing))
				}
				if err != nil {
					return err
				}
				view, err := svc.Study(ctx, name)
				if err != nil {
					return err
				}
				if *form == "json" {
					err = printDiagnosisJSON(cmd, d)
				} else {
					err = printDiagnosis(cmd, d, view.Spec.Objectives[0].Name)
				}
				if err != nil {
					return err
				}
				for _, text := range d.Warnings {
					g.Note(cmd, "warning: %s", text)
				}
				return nil
			})
		},
	}
	form = cli.FormatFlag(cmd, "table", "json")
	return cmd
}

// draw is the JSON of how inducing points were drawn.
type draw struct {
	Sampler  string     `json:"sampler"`
	Lambda   float64    `json:"lambda,omitempty"`
	Rows     int        `json:"rows"`
	RowsRead int        `json:"rows_read"`
	Path     []drawStep `json:"path,omitempty"`
}

type drawStep struct {
	Lambda             float64 `json:"lambda"`
	InducingPoints     int     `json:"inducing_points"`
	EffectiveDimension float64 `json:"effective_dimension"`
}

func printDiagnosisJSON(cmd *cobra.Command, d surrogate.Diagnosis) error {
	out := struct {
		surrogate.Diagnosis
		Draw *draw `json:"draw,omitempty"`
	}{Diagnosis: d}
	if from := d.Draw; from.Sampler != "" {
		out.Draw = &draw{Sampler: from.Sampler, Lambda: from.Lambda, Rows: from.Rows, RowsRead: from.Read}
		for _, s := range from.Path {
			out.Draw.Path = append(out.Draw.Path, drawStep{s.Lambda, s.Points, s.Dimension})
		}
	}
	return cli.WriteJSON(cmd.OutOrStdout(), out)
}

// printDiagnosis writes a diagnosis.
func printDiagnosis(cmd *cobra.Command, d surrogate.Diagnosis, objective string) error {
	t := cli.NewTable(cmd.OutOrStdout(), "QUANTITY", "VALUE", "UNIT")
	t.Width, t.Least = cli.TableWidth(cmd.OutOrStdout()), map[int]int{2: 12}
	for _, row := range d.Rows(objective) {
		t.Row(row[:]...)
	}
	return t.End()
}

func newExpect(g *cli.Globals) *cobra.Command {
	var form *string
	cmd := &cobra.Command{
		Use:               "expect STUDY name=value… | JSON",
		Short:             "Show what the model expects of a configuration",
		ValidArgsFunction: cli.Args(g.Studies, g.Parameters),
		Long: `Expect shows the outcome that the study's model expects of a configuration, without
running it. For predictions of trained learners see tuner predict.

  MEAN     expected value of the objective
  ± MODEL  standard deviation of the mean: what the model does not know
  ± NOISE  standard deviation of the noise of one outcome

A study with limits of metrics also shows these metrics. The row feasible is the probability
that an outcome succeeds and keeps all limits. It is shown where failures or limits are
modelled.

Give a value for each active parameter. Constants can be left out.`,
		Example: `  tuner expect digits lr=0.01 batch=32 optimizer=adam
  tuner expect digits '{"lr": 0.01, "batch": 32, "optimizer": "adam"}' -f json`,
		Args: cli.Between(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := trials.ParseConfig(args[1:])
			if err != nil {
				return err
			}
			return g.WithView(cmd, args[:1], func(ctx context.Context, svc tuner.Service, view tuner.Study) error {
				if c, err = record.Complete(view.Spec.Space, c); err != nil {
					return err
				}
				p, err := svc.Predict(ctx, view.Name, tuner.PredictQuery{Configs: []space.Config{c}})
				if err != nil {
					return err
				}
				if len(p.Configs) == 0 {
					return cli.Exit(cli.ExitNotFound, p.State.NoModel(view.Name, p.Missing))
				}
				return printExpected(cmd, *form, p, view.Spec.Objectives)
			})
		},
	}
	form = cli.FormatFlag(cmd, "table", "json")
	return cmd
}

// expected is the prediction of an objective in JSON.
type expected struct {
	Objective string  `json:"objective"`
	Mean      float64 `json:"mean"`
	StdDev    float64 `json:"stddev"`
	Noise     float64 `json:"noise"`
}

// printExpected writes the prediction of each objective and of each metric with a limit.
func printExpected(cmd *cobra.Command, form string, p tuner.Predictions, objectives []study.Objective) error {
	of := p.Configs[0]
	out := struct {
		Objectives []expected                   `json:"objectives"`
		Metrics    []surrogate.MetricPrediction `json:"metrics,omitempty"`
		Feasible   *float64                     `json:"feasible,omitempty"`
		Results    int                          `json:"results"`
	}{Metrics: of.Metrics, Results: p.Results}
	if len(of.Metrics) > 0 || of.Feasible < 1 {
		out.Feasible = &of.Feasible
	}
	for j, o := range objectives {
		out.Objectives = append(out.Objectives, expected{o.Name, of.Mean[j], of.StdDev[j], of.Noise[j]})
	}
	if form == "json" {
		return cli.WriteJSON(cmd.OutOrStdout(), out)
	}
	t := cli.NewTable(cmd.OutOrStdout(), "QUANTITY", "MEAN", "± MODEL", "± NOISE")
	t.Width, t.Least = cli.TableWidth(cmd.OutOrStdout()), map[int]int{0: 12}
	for _, row := range of.Rows(objectives) {
		t.Row(row[:]...)
	}
	return t.End()
}

func newImportance(g *cli.Globals) *cobra.Command {
	var form *string
	var q tuner.ImportanceQuery
	cmd := &cobra.Command{
		Use:               "importance [STUDY]",
		Short:             "Show which parameters matter",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Importance shows how much each parameter matters for an objective, in two ways.

  alone, total  Sobol' indices, the shares of the variance of the model's mean
                that the parameter explains alone and with interactions, ± the
                standard error of the estimate. The mean is on the model's
                scale, where long tails are compressed.
  best trials   how much the best tenth of the completed trials differs from
                all, as a share of the sum over parameters (PED-ANOVA). It
                needs no model.

The two answer different questions. A search that has left the bad values of a
parameter early shows a small difference there, although the parameter matters.`,
		Example: `  tuner importance digits
  tuner importance digits --objective latency -f json`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.WithStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
				i, err := svc.Importance(ctx, name, q)
				if err != nil {
					return err
				}
				if *form == "json" {
					return printImportanceJSON(cmd, i)
				}
				if i.State != surrogate.Ready && i.State != 0 {
					g.Note(cmd, "%s", i.State.NoModel(name, i.Missing))
				}
				return printImportance(cmd, i)
			})
		},
	}
	cmd.Flags().StringVar(&q.Objective, "objective", "", "`name` of the objective (default the first)")
	form = cli.FormatFlag(cmd, "table", "json")
	return cmd
}

// printImportance writes a table, with the parameter that matters most first.
func printImportance(cmd *cobra.Command, i tuner.Importance) error {
	bar := func(x float64) string {
		if math.IsNaN(x) {
			return ""
		}
		return strings.Repeat("█", int(math.Round(20*x)))
	}
	t := cli.NewTable(cmd.OutOrStdout(), "PARAMETER", "ALONE", "TOTAL", "BEST TRIALS", "SHARE")
	t.Width, t.Least = cli.TableWidth(cmd.OutOrStdout()), map[int]int{0: 12}
	t.Drop = []int{4, 1}
	for _, p := range i.Ranked() {
		row := p.Row()
		t.Row(append(row[:], bar(p.Rank()))...)
	}
	return t.End()
}

// number is a number in JSON, which has no NaN.
func number(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}

func printImportanceJSON(cmd *cobra.Command, i tuner.Importance) error {
	type parameter struct {
		Parameter       string `json:"parameter"`
		FirstOrder      any    `json:"first_order"`
		FirstOrderError any    `json:"first_order_error"`
		Total           any    `json:"total"`
		TotalError      any    `json:"total_error"`
		Data            any    `json:"data"`
	}
	out := struct {
		Objective  string      `json:"objective"`
		Parameters []parameter `json:"parameters"`
		Results    int         `json:"results"`
		Completed  int         `json:"completed"`
	}{Objective: i.Objective, Results: i.Results, Completed: i.Completed}
	for _, p := range i.Parameters {
		out.Parameters = append(out.Parameters, parameter{p.Parameter, number(p.First), number(p.FirstError), number(p.Total), number(p.TotalError), number(p.Data)})
	}
	return cli.WriteJSON(cmd.OutOrStdout(), out)
}

// replayer is a service that can recompute a study from its log.
type replayer interface {
	Replay(ctx context.Context, name string, progress func(study.Position)) (engine.ReplayReport, error)
}

func newReplay(g *cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:               "replay [STUDY]",
		Short:             "Recompute a study from its log and compare",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Replay recomputes a study from its log and compares the result with the log.

It repeats every suggestion and every model with the data that the proposer had then. It
prints OK with counts if all are the same. Otherwise it prints each difference and fails.
It works on a file or a database.`,
		Example: "  tuner replay digits",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.WithStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
				report, err := replay(ctx, svc, name)
				if err != nil {
					return err
				}
				return printReplay(cmd, name, report)
			})
		},
	}
}

func replay(ctx context.Context, svc tuner.Service, name string) (report engine.ReplayReport, err error) {
	file, ok := svc.(*shared.Service)
	if !ok {
		return report, fmt.Errorf("replay on a server: %w", tuner.ErrUnsupported)
	}
	err = file.Do(ctx, func(svc tuner.Service) (err error) {
		r, ok := svc.(replayer)
		if !ok {
			return fmt.Errorf("replay: %w", tuner.ErrUnsupported)
		}
		report, err = r.Replay(ctx, name, nil)
		return err
	})
	return report, err
}

func printReplay(cmd *cobra.Command, name string, r engine.ReplayReport) error {
	out := cmd.OutOrStdout()
	for _, d := range r.Differences {
		if _, err := fmt.Fprintln(out, cli.Clean(fmt.Sprintf("trial %d: stored %s, recomputed %s", d.Trial, d.Stored, d.Recomputed))); err != nil {
			return err
		}
	}
	for _, at := range r.ModelDifferences {
		if _, err := fmt.Fprintf(out, "event %d: the recomputed model differs\n", at); err != nil {
			return err
		}
	}
	if n := len(r.Differences); n == 0 && len(r.ModelDifferences) > 0 {
		return cli.Exit(cli.ExitDamaged, fmt.Errorf("study %s: %d of %d models differ; another version or machine may round differently", name, len(r.ModelDifferences), r.Models))
	}
	if n := len(r.Differences); n > 0 {
		return cli.Exit(cli.ExitDamaged, fmt.Errorf("study %s: %d of %d suggestions differ; another version or machine may round differently", name, n, r.Suggestions))
	}
	models := ""
	if r.Models > 0 {
		models = fmt.Sprintf("%d models and ", r.Models)
	}
	_, err := fmt.Fprintf(out, "OK: %d events, %s%d suggestions recomputed, %d fallbacks not\n", r.Events, models, r.Suggestions, r.Fallbacks)
	return err
}
