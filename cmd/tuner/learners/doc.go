// Package learners has the commands that train, tune and use the bundled kernel learners on files of data.
package learners

import (
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return append(cli.Connects(cli.ToService, newAuto(g)), newTrain(g), newPredict(g), newEvaluate(g), newLeverage(g))
}
