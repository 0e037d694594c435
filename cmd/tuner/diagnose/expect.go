package diagnose

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

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
