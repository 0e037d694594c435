// Package diagnose has the commands that explain what a study has learned.
package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
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
					err = cli.Exit(cli.ExitNotFound, noModel(name, d.State, d.Missing))
				}
				if err != nil {
					return err
				}
				view, err := svc.Study(ctx, name)
				if err != nil {
					return err
				}
				if err := printDiagnosis(cmd, *form, d, view.Spec.Objectives[0].Name); err != nil {
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

// noModel says why a study has no model.
func noModel(study string, s surrogate.State, missing int) error {
	switch s {
	case surrogate.None:
		return fmt.Errorf("study %s has no model, because its space has no parameter that varies", study)
	case surrogate.AtNextAsk:
		return fmt.Errorf("study %s has no model yet, because the next ask makes it: run tuner ask %s", study, study)
	case surrogate.Waiting:
		results := "results are"
		if missing == 1 {
			results = "result is"
		}
		return fmt.Errorf("study %s has no model yet, because %d more %s needed", study, missing, results)
	default: // of a server of an earlier version
		return fmt.Errorf("study %s has no model yet, because too few trials have finished", study)
	}
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

// drawOf returns nil for a model of an earlier version, which does not have it.
func drawOf(d surrogate.Draw) *draw {
	if d.Sampler == "" {
		return nil
	}
	out := &draw{Sampler: d.Sampler, Lambda: d.Lambda, Rows: d.Rows, RowsRead: d.Read}
	for _, s := range d.Path {
		out.Path = append(out.Path, drawStep{s.Lambda, s.Points, s.Dimension})
	}
	return out
}

// limitedMetric is the JSON of the model of a metric with a limit.
type limitedMetric struct {
	Metric  string  `json:"metric"`
	Results int     `json:"results"`
	Broken  int     `json:"broken"`
	Noise   float64 `json:"noise"`
}

func metricsOf(list []surrogate.LimitedMetric) (out []limitedMetric) {
	for _, m := range list {
		out = append(out, limitedMetric(m))
	}
	return out
}

// drawnBy names the sampler.
func drawnBy(d surrogate.Draw) string {
	switch d.Sampler {
	case "all":
		return "every different input"
	case "uniform":
		return "uniform sampling"
	}
	return strings.ToUpper(d.Sampler)
}

// printDiagnosis writes a diagnosis. The unit of the noise and the gap is the objective.
func printDiagnosis(cmd *cobra.Command, form string, d surrogate.Diagnosis, objective string) error {
	if form == "json" {
		return cli.WriteJSON(cmd.OutOrStdout(), struct {
			Results            int             `json:"results"`
			InducingPoints     int             `json:"inducing_points"`
			Capped             bool            `json:"capped"`
			EffectiveDimension float64         `json:"effective_dimension"`
			InformationGain    float64         `json:"information_gain"`
			Noise              float64         `json:"noise"`
			Beta               float64         `json:"beta"`
			TheoryBeta         float64         `json:"theory_beta"`
			Gap                float64         `json:"gap"`
			Covered            int             `json:"covered"`
			Predicted          int             `json:"predicted"`
			Calibration        float64         `json:"calibration"`
			Outliers           int             `json:"outliers"`
			Failures           int             `json:"failures"`
			AvoidsFailures     bool            `json:"avoids_failures"`
			Idle               int             `json:"idle"`
			Stuck              bool            `json:"stuck"`
			Metrics            []limitedMetric `json:"metrics,omitempty"`
			Warnings           []string        `json:"warnings,omitempty"`
			Draw               *draw           `json:"draw,omitempty"`
		}{
			d.Results, d.InducingPoints, d.Capped, d.EffectiveDimension, d.InformationGain, d.Noise,
			d.Beta, d.TheoryBeta, d.Gap, d.Covered, d.Predicted, d.Calibration, d.Outliers, d.Failures, d.AvoidsFailures, d.Idle, d.Stuck, metricsOf(d.Metrics), d.Warnings, drawOf(d.Draw),
		})
	}
	const deviations = "standard deviations of the model"
	t := cli.NewTable(cmd.OutOrStdout(), "QUANTITY", "VALUE", "UNIT")
	t.Width, t.Least = cli.OutputWidth(cmd.OutOrStdout()), map[int]int{2: 12}
	capped := ""
	if d.Capped {
		capped = " (capped)"
	}
	t.Row("results", fmt.Sprint(d.Results), "trials")
	t.Row("inducing points", fmt.Sprint(d.InducingPoints)+capped, "points")
	if draw := d.Draw; draw.Sampler != "" {
		t.Row("drawn by", drawnBy(draw), "")
		if draw.Lambda > 0 {
			t.Row("λ of the draw", fmt.Sprintf("%.2g", draw.Lambda), "per row")
			t.Row("rows read", fmt.Sprintf("%d of %d", draw.Read, draw.Rows), "rows")
		}
		if n := len(draw.Path); n > 1 {
			t.Row("path of λ", fmt.Sprintf("%d from %.2g", n, draw.Path[0].Lambda), "steps")
		}
	}
	t.Row("effective dimension", fmt.Sprintf("%.3g", d.EffectiveDimension), "points")
	t.Row("information gain", fmt.Sprintf("%.3g", d.InformationGain), "nats (log det V)")
	t.Row("noise", fmt.Sprintf("%.3g", d.Noise), objective+" (standard deviation)")
	t.Row("width of bounds", fmt.Sprintf("%.3g", d.Beta), deviations)
	t.Row("width by theory", fmt.Sprintf("%.3g", d.TheoryBeta), deviations)
	if d.Predicted > 0 {
		t.Row("coverage", fmt.Sprintf("%d of %d", d.Covered, d.Predicted), "outcomes in 95 % intervals")
		t.Row("calibration", fmt.Sprintf("%.2g", d.Calibration), "of an interval's width")
	}
	if d.Outliers > 0 {
		t.Row("outliers", fmt.Sprint(d.Outliers), "results left out")
	}
	if d.Failures > 0 {
		effect := "their places are not avoided"
		if d.AvoidsFailures {
			effect = "their places are avoided"
		}
		t.Row("failures", fmt.Sprint(d.Failures), effect)
	}
	for _, m := range d.Metrics {
		t.Row(m.Metric+" kept", fmt.Sprintf("%d of %d", m.Results-m.Broken, m.Results), "results")
		if m.Noise > 0 {
			t.Row(m.Metric+" noise", fmt.Sprintf("%.3g", m.Noise), m.Metric+" (standard deviation)")
		}
	}
	if d.Stuck {
		t.Row("stuck for", fmt.Sprint(d.Idle), "results")
	}
	gap := "-" // with several objectives, and where the model cannot say
	if d.Gap != 0 {
		gap = fmt.Sprintf("%.3g", d.Gap)
	}
	t.Row("gap", gap, objective+" (under the model)")
	return t.End()
}

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return append(cli.Connects(cli.ToService, newDiagnose(g), newImportance(g), newExpect(g), newPlot(g)),
		cli.Connects(cli.ToPlace, newReplay(g))...)
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
			return g.WithStudy(cmd, args[:1], func(ctx context.Context, svc tuner.Service, name string) error {
				view, err := svc.Study(ctx, name)
				if err != nil {
					return err
				}
				if c, err = record.Complete(view.Spec.Space, c); err != nil {
					return err
				}
				p, err := svc.Predict(ctx, name, tuner.PredictQuery{Configs: []space.Config{c}})
				if err != nil {
					return err
				}
				if len(p.Configs) == 0 {
					return cli.Exit(cli.ExitNotFound, noModel(name, p.State, p.Missing))
				}
				return printExpected(cmd, *form, p, view.Spec.Objectives)
			})
		},
	}
	form = cli.FormatFlag(cmd, "table", "json")
	return cmd
}

// printExpected writes the prediction of each objective and of each metric with a limit.
func printExpected(cmd *cobra.Command, form string, p tuner.Predictions, objectives []study.Objective) error {
	of := p.Configs[0]
	// Servers of an earlier version send no probability.
	doubts := len(of.Metrics) > 0 || of.Feasible > 0 && of.Feasible < 1
	if form == "json" {
		type expected struct {
			Objective string  `json:"objective"`
			Mean      float64 `json:"mean"`
			StdDev    float64 `json:"stddev"`
			Noise     float64 `json:"noise"`
		}
		type limited struct {
			Metric string  `json:"metric"`
			Mean   float64 `json:"mean"`
			StdDev float64 `json:"stddev"`
			Noise  float64 `json:"noise"`
		}
		out := struct {
			Objectives []expected `json:"objectives"`
			Metrics    []limited  `json:"metrics,omitempty"`
			Feasible   *float64   `json:"feasible,omitempty"`
			Results    int        `json:"results"`
		}{Results: p.Results}
		for _, m := range of.Metrics {
			out.Metrics = append(out.Metrics, limited(m))
		}
		if doubts {
			out.Feasible = &of.Feasible
		}
		for j, o := range objectives {
			out.Objectives = append(out.Objectives, expected{o.Name, of.Mean[j], of.StdDev[j], of.Noise[j]})
		}
		return cli.WriteJSON(cmd.OutOrStdout(), out)
	}
	t := cli.NewTable(cmd.OutOrStdout(), "QUANTITY", "MEAN", "± MODEL", "± NOISE")
	t.Width, t.Least = cli.OutputWidth(cmd.OutOrStdout()), map[int]int{0: 12}
	for j, o := range objectives {
		t.Row(o.Name, fmt.Sprintf("%.4g", of.Mean[j]), fmt.Sprintf("%.2g", of.StdDev[j]), fmt.Sprintf("%.2g", of.Noise[j]))
	}
	for _, m := range of.Metrics {
		t.Row(m.Metric, fmt.Sprintf("%.4g", m.Mean), fmt.Sprintf("%.2g", m.StdDev), fmt.Sprintf("%.2g", m.Noise))
	}
	if doubts {
		t.Row("feasible", fmt.Sprintf("%.3g", of.Feasible), "-", "-")
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
					g.Note(cmd, "%s", noModel(name, i.State, i.Missing))
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
	list := slices.Clone(i.Parameters)
	rank := func(p tuner.ParameterImportance) float64 {
		if math.IsNaN(p.Total) {
			return p.Data
		}
		return p.Total
	}
	slices.SortStableFunc(list, func(a, b tuner.ParameterImportance) int { return cmp.Compare(rank(b), rank(a)) })
	share := func(x, se float64) string {
		switch {
		case math.IsNaN(x):
			return ""
		case math.IsNaN(se):
			return fmt.Sprintf("%.1f %%", 100*x)
		default:
			return fmt.Sprintf("%.1f ± %.1f %%", 100*x, 100*se)
		}
	}
	bar := func(x float64) string {
		if math.IsNaN(x) {
			return ""
		}
		return strings.Repeat("█", int(math.Round(20*x)))
	}
	t := cli.NewTable(cmd.OutOrStdout(), "PARAMETER", "ALONE", "TOTAL", "BEST TRIALS", "SHARE")
	t.Width, t.Least = cli.OutputWidth(cmd.OutOrStdout()), map[int]int{0: 12}
	t.Drop = []int{4, 1}
	for _, p := range list {
		t.Row(p.Parameter, share(p.First, p.FirstError), share(p.Total, p.TotalError), share(p.Data, math.NaN()), bar(rank(p)))
	}
	return t.End()
}

// number is a number in JSON, which has no NaN.
type number struct{ x float64 }

func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(n.x) || math.IsInf(n.x, 0) {
		return []byte("null"), nil
	}
	return fmt.Appendf(nil, "%g", n.x), nil
}

func printImportanceJSON(cmd *cobra.Command, i tuner.Importance) error {
	type parameter struct {
		Parameter       string `json:"parameter"`
		FirstOrder      number `json:"first_order"`
		FirstOrderError number `json:"first_order_error"`
		Total           number `json:"total"`
		TotalError      number `json:"total_error"`
		Data            number `json:"data"`
	}
	out := struct {
		Objective  string      `json:"objective"`
		Parameters []parameter `json:"parameters"`
		Results    int         `json:"results"`
		Completed  int         `json:"completed"`
	}{Objective: i.Objective, Results: i.Results, Completed: i.Completed}
	for _, p := range i.Parameters {
		out.Parameters = append(out.Parameters, parameter{p.Parameter, number{p.First}, number{p.FirstError}, number{p.Total}, number{p.TotalError}, number{p.Data}})
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
