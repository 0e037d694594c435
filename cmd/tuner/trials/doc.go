// Package trials has the commands on the trials of a study: ask, tell, report and what lists them.
package trials

import (
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return cli.Connects(cli.ToService,
		newAsk(g), newTell(g), newReport(g), newHeartbeat(g), newEnqueue(g), newNote(g), newStop(g), newTrials(g), newBest(g), newWatch(g))
}
