// Package server has the commands that serve the studies, start workers and manage tokens.
package server

import (
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return []*cobra.Command{
		newServe(g), newUI(g), newKatib(g), newWorkers(g), newHealth(g), newToken(g),
	}
}
