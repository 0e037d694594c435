package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/surrogate"
	"github.com/spf13/cobra"
)

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
