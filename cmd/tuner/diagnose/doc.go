// Package diagnose has the commands that explain what a study has learned.
package diagnose

import (
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return []*cobra.Command{
		newDiagnose(g), newImportance(g), newExpect(g), newPlot(g), newReplay(g),
	}
}
