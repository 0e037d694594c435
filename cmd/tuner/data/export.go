package data

import (
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	"github.com/spf13/cobra"
)

func newExport(g *cli.Globals) *cobra.Command {
	return trials.NewTrialList(g, &cobra.Command{
		Use:               "export [STUDY]",
		Short:             "Write the trials of a study as CSV or JSON",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Export writes the trials of a study to stdout as CSV, JSON (a list), JSON lines or YAML.
The command import reads all but YAML.

NaN and the infinities are the strings nan, inf and -inf. In CSV, text that a spreadsheet
would take for a formula has a ' before it. CSV has no late results, and import leaves
out those of JSON. Export reads page by page, so that large studies need no more memory.`,
		Example: "  tuner export digits > digits.csv\n  tuner export digits -f jsonl | tuner --db other.db import digits -",
		Args:    cli.Between(0, 1),
	}, "csv", "json", "jsonl", "yaml")
}
