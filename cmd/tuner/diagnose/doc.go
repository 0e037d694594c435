// Package diagnose has the commands that explain what a study has learned.
package diagnose

import (
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return append(cli.Connects(cli.ToService, newDiagnose(g), newImportance(g), newExpect(g), newPlot(g)),
		cli.Connects(cli.ToPlace, newReplay(g))...)
}
