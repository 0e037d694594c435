package data

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/store/transfer"
	"github.com/spf13/cobra"
)

func newCopy(g *cli.Globals) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "copy [STUDY...]",
		Short: "Copy studies between files and databases",
		Long: `Copy writes studies with all of their events to another file or database, and compares
them afterwards. Without arguments it copies all studies.

It refuses a study whose name the destination uses for another one. If it is interrupted,
the same command continues. Servers may use the source meanwhile if it is a database.
Changes after a study was begun are not copied.`,
		Example: "  tuner copy --from tuner.db --to postgres://tuner@db.example.org/tuner\n  tuner copy --from postgres://tuner@db.example.org/tuner --to copy.db digits",
		Args:    cli.Between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case g.Db != "" || g.Server != "" || g.Store != "":
				return cli.Usagef("copy has --from and --to; leave --db, --server and --store out")
			case from == "" || to == "":
				return cli.Usagef("copy needs --from and --to, each a file or postgres://USER@HOST/DATABASE")
			}
			return copyStudies(cmd, g, from, to, args)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`file` or URL of the database to copy from")
	cmd.Flags().StringVar(&to, "to", "", "`file` or URL of the database to copy to, a file is created if missing")
	return cmd
}

// copyStudies copies the named studies, or all.
func copyStudies(cmd *cobra.Command, g *cli.Globals, from, to string, names []string) (err error) {
	ctx := cmd.Context()
	source, err := openEither(ctx, g, cmd, from, bolt.Options{ReadOnly: true, MustExist: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := openEither(ctx, g, cmd, to, bolt.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	studies, events := 0, uint64(0)
	for info, err := range source.List(ctx, "") {
		if err != nil {
			return err
		}
		if i := slices.Index(names, info.Name); i >= 0 {
			names = slices.Delete(names, i, i+1)
		} else if cmd.Flags().NArg() > 0 {
			continue
		}
		c, err := transfer.Study(ctx, source, target, info)
		if different := (*transfer.DifferentError)(nil); errors.As(err, &different) {
			return cli.Exit(cli.ExitInvalid, err)
		}
		if err != nil {
			return fmt.Errorf("copying study %s: %w", info.Name, err)
		}
		if c.Already > 0 {
			g.Note(cmd, "Continued %s after %d of %d events.", info.Name, c.Already, c.Events)
		}
		studies, events = studies+1, events+c.Events
	}
	if len(names) > 0 {
		return cli.Exit(cli.ExitNotFound, fmt.Errorf("there is no study %q in %s", names[0], placeText(from)))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "Copied %d studies with %d events, and compared them\n", studies, events)
	return err
}

// openEither opens a file or a database.
func openEither(ctx context.Context, g *cli.Globals, cmd *cobra.Command, place string, o bolt.Options) (store.Store, error) {
	logger := g.Logger(cmd, slog.LevelWarn)
	if postgres.IsAddress(place) {
		return g.OpenDatabase(ctx, cmd, place, logger)
	}
	st, err := g.OpenFile(ctx, cmd, place, o, logger)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// placeText names a file or a database without its address, which may have a password.
func placeText(place string) string {
	if postgres.IsAddress(place) {
		return "the database"
	}
	return place
}
