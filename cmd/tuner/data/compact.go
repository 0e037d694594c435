package data

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/spf13/cobra"
)

func newCompact(g *cli.Globals) *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use:   "compact [FILE]",
		Short: "Reclaim space from deleted data",
		Long: `Compact rewrites the file without the space of deleted data.

The copy is checked, compared with the original, and put in its place in one step. No
other process may use the file meanwhile.`,
		Example: "  tuner compact\n  tuner compact --keep old.db",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := offlineFile(g, cmd, args)
			if err != nil {
				return err
			}
			logger := g.Logger(cmd, slog.LevelWarn)
			var before, after int64
			err = g.WhenFree(cmd.Context(), cmd, func(turn time.Duration) (err error) {
				o := bolt.CompactOptions{Keep: keep, Open: bolt.Options{LockTimeout: turn, Logger: logger}}
				before, after, err = bolt.Compact(cmd.Context(), path, o)
				return err
			})
			if err != nil {
				return offlineError(err, path)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d bytes before, %d after\n", before, after)
			return err
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "`file` that keeps the original")
	return cmd
}
