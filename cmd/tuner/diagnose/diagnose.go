package diagnose

import (
	"context"
	"fmt"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
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
