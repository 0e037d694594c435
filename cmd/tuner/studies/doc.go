// Package studies has the commands that create, run, steer and delete studies, and the progress of a run.
package studies

import (
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return append(cli.Connects(cli.ToService,
		newCreateStudy(g), newStudies(g), newRun(g), newPause(g), newResume(g), newFinish(g), newDeleteStudy(g)), newSpace(g))
}
