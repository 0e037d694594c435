package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/spf13/cobra"
)

func newDiagnose(g *globals) *cobra.Command {
	var form *format
	cmd := &cobra.Command{
		Use:   "diagnose [STUDY]",
		Short: "Show how a study's model stands",
		Long: `Diagnose shows what the model of the proposer bkb rests on and how sure it is: the
results it has heard of, its inducing points (and whether there would be more but for
the option cap), the sampler that drew them with its λ and the rows it read, the
effective dimension and the information gain of the results, the noise, the width of
the confidence bounds, the width that the theory asks for, and the gap: how much
better than the best a configuration could be at most, as far as the bounds hold. It
warns of settings that have no effect, such as cost=told when no costs are reported.`,
		Example: "  tuner diagnose digits\n  tuner diagnose digits -f json",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
				d, err := svc.Diagnose(ctx, name)
				if err == nil && d.Results == 0 {
					err = &statusError{exitNotFound, fmt.Errorf("study %s has no model yet: too few trials have finished", name)}
				}
				if err != nil {
					return err
				}
				return printDiagnosis(cmd, form.value, d)
			})
		},
	}
	form = formatFlag(cmd, "table", "json")
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

// drawOf returns nil for a model of an earlier program, which does not say.
func drawOf(d propose.Draw) *draw {
	if d.Sampler == "" {
		return nil
	}
	out := &draw{Sampler: d.Sampler, Lambda: d.Lambda, Rows: d.Rows, RowsRead: d.Read}
	for _, s := range d.Path {
		out.Path = append(out.Path, drawStep{s.Lambda, s.Points, s.Dimension})
	}
	return out
}

// drawnBy says it in words: BLESS at λ = 2.1e-06 (path 0.5, 0.25, …; 1666 of 20000 rows read).
func drawnBy(d propose.Draw) string {
	switch d.Sampler {
	case "all":
		return "every different input"
	case "uniform":
		return "uniform sampling"
	}
	text := fmt.Sprintf("%s at λ = %.2g", strings.ToUpper(d.Sampler), d.Lambda)
	if n := len(d.Path); n > 1 {
		text += fmt.Sprintf(", path of %d from λ = %.2g", n, d.Path[0].Lambda)
	}
	return text + fmt.Sprintf(", %d of %d rows read", d.Read, d.Rows)
}

func printDiagnosis(cmd *cobra.Command, form string, d propose.Diagnosis) error {
	if form == "json" {
		return writeJSON(cmd.OutOrStdout(), struct {
			Results            int      `json:"results"`
			InducingPoints     int      `json:"inducing_points"`
			Capped             bool     `json:"capped"`
			EffectiveDimension float64  `json:"effective_dimension"`
			InformationGain    float64  `json:"information_gain"`
			Noise              float64  `json:"noise"`
			Beta               float64  `json:"beta"`
			TheoryBeta         float64  `json:"theory_beta"`
			Gap                float64  `json:"gap"`
			Warnings           []string `json:"warnings,omitempty"`
			Draw               *draw    `json:"draw,omitempty"`
		}{
			d.Results, d.InducingPoints, d.Capped, d.EffectiveDimension, d.InformationGain, d.Noise,
			d.Beta, d.TheoryBeta, d.Gap, d.Warnings, drawOf(d.Draw),
		})
	}
	t := newTable(cmd.OutOrStdout(), "QUANTITY", "VALUE")
	capped := ""
	if d.Capped {
		capped = " (capped)"
	}
	t.row("results", fmt.Sprint(d.Results))
	t.row("inducing points", fmt.Sprint(d.InducingPoints)+capped)
	if d.Draw.Sampler != "" {
		t.row("drawn by", drawnBy(d.Draw))
	}
	t.row("effective dimension", fmt.Sprintf("%.3g", d.EffectiveDimension))
	t.row("information gain", fmt.Sprintf("%.3g", d.InformationGain))
	t.row("noise", fmt.Sprintf("%.3g", d.Noise))
	t.row("width of bounds", fmt.Sprintf("%.3g", d.Beta))
	t.row("width by theory", fmt.Sprintf("%.3g", d.TheoryBeta))
	gap := "-" // with several objectives, and where the model cannot say
	if d.Gap != 0 {
		gap = fmt.Sprintf("%.3g", d.Gap)
	}
	t.row("gap", gap)
	if err := t.end(); err != nil {
		return err
	}
	for _, text := range d.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", text)
	}
	return nil
}
