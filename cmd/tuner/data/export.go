package data

import (
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	"github.com/bkbtuner/bkb/tuner/optuna"
	"github.com/spf13/cobra"
)

func newExport(g *cli.Globals) *cobra.Command {
	var storedName string
	cmd := trials.NewTrialList(g, &cobra.Command{
		Use:   "export [STUDY]",
		Short: "Write the trials of a study as CSV or JSON",
		Long: `Export writes the trials of a study to stdout as CSV, JSON (a list), JSON lines or YAML.
The command import reads all but YAML.

NaN and the infinities are the strings nan, inf and -inf. In CSV, text that a spreadsheet
would take for a formula has a ' before it. CSV has no late results, and import leaves
out those of JSON. Export reads page by page, so that large studies need no more memory.

A study of Optuna has the format optuna, which import reads with the search space. Name it
as tuner studies does, or give the address of its server, optuna+grpc://ADDRESS.`,
		Example: "  tuner export digits > digits.csv\n  tuner export digits -f jsonl | tuner --db other.db import digits -\n  tuner export optuna.digits > digits.json",
		Args:    cli.Between(0, 1),
	}, "csv", "json", "jsonl", "yaml", string(record.Optuna))
	cmd.Flags().StringVar(&storedName, "optuna-study", "", "`name` of the study at optuna+grpc://ADDRESS (default the only one)")
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		stored := len(args) > 0 && strings.HasPrefix(args[0], trials.OptunaScheme)
		if !stored {
			if storedName != "" {
				return cli.Usagef("--optuna-study needs the address of a storage, such as %s127.0.0.1:13000", trials.OptunaScheme)
			}
			g.Foreign = optuna.NewState
			return list(cmd, args)
		}
		if err := trials.OnlyOptunaForm(cmd, args[0]); err != nil {
			return err
		}
		data, err := trials.ReadStorage(cmd.Context(), args[0], storedName)
		if err != nil {
			return err
		}
		return trials.WriteLine(cmd.OutOrStdout(), data)
	}
	return cmd
}
