// Package data has the commands that move, copy, check and restore stored studies.
package data

import (
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return []*cobra.Command{
		newExport(g), newImport(g), newBackup(g), newRestore(g), newCheck(g), newCompact(g), newCopy(g), newStore(g),
	}
}
