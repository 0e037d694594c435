// Package data has the commands that move, copy, check and restore stored studies.
package data

import (
	"slices"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return slices.Concat(
		cli.Connects(cli.ToService, newExport(g), newImport(g), newBackup(g)),
		cli.Connects(cli.ToFile, newRestore(g)),
		cli.Connects(cli.ToPlace, newCheck(g)),
		cli.Connects(cli.ToFile, newCompact(g)),
		[]*cobra.Command{newCopy(g), newStore(g)},
	)
}
