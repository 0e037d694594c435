// Package server has the commands that serve the studies, start workers and manage tokens.
package server

import (
	"slices"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return slices.Concat(
		cli.Connects(cli.ToPlace, newServe(g)),
		cli.Connects(cli.ToService, newUI(g), newKatib(g)),
		[]*cobra.Command{newWorkers(g)},
		cli.Connects(cli.ToServer, newHealth(g)),
		[]*cobra.Command{newToken(g)},
	)
}
