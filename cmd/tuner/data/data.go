// Package data has the commands that move, copy, check and restore stored studies.
package data

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/store/transfer"
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

func newExport(g *cli.Globals) *cobra.Command {
	return trials.NewTrialList(g, &cobra.Command{
		Use:               "export [STUDY]",
		Short:             "Write the trials of a study as CSV or JSON",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Export writes the trials of a study to stdout as CSV, JSON (a list), JSON lines or YAML.
The command import reads all but YAML.

NaN and the infinities are the strings nan, inf and -inf. In CSV, text that a spreadsheet
would take for a formula has a ' before it. CSV has no late results, and import leaves
out those of JSON. Export reads page by page, so that large studies need no more memory.`,
		Example: "  tuner export digits > digits.csv\n  tuner export digits -f jsonl | tuner --db other.db import digits -",
		Args:    cli.Between(0, 1),
	}, "csv", "json", "jsonl", "yaml")
}

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

func openEither(ctx context.Context, g *cli.Globals, cmd *cobra.Command, place string, o bolt.Options) (store.Store, error) {
	o.Logger = g.Logger(cmd, slog.LevelWarn)
	if postgres.IsAddress(place) {
		return g.OpenDatabase(ctx, cmd, place, o.Logger)
	}
	st, err := g.OpenFile(ctx, cmd, place, o)
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

func newStore(g *cli.Globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Prepare a database for studies",
		Long: `Store makes and upgrades the tables of a store in a PostgreSQL database.

The database is named by --store, TUNER_STORE or an argument. The role in the address
must own the tables. Other commands need only a role to which --grant gave its rights.`,
		Example: "  tuner store init postgres://owner@db.example.org/tuner --grant tuner",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := postgres.InitOptions{Program: "tuner " + cli.Version()}
	initialise := &cobra.Command{
		Use:   "init [URL]",
		Short: "Make the tables of a store in a database",
		Long: `Init makes the tables of a store in a schema of its own, bkb unless the address names
another (?schema=NAME). If they are there already, it changes nothing but the rights of
--grant.`,
		Example: "  tuner store init postgres://owner@db.example.org/tuner --grant tuner",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := storeAddress(g, cmd, args)
			if err != nil {
				return err
			}
			id, made, err := postgres.Init(cmd.Context(), address, o)
			if err != nil {
				return cli.DatabaseError(err)
			}
			verb := "Found"
			if made {
				verb = "Made"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s store %s, format %d\n", verb, id.Store[:8], id.Format)
			return err
		},
	}
	upgrade := &cobra.Command{
		Use:   "upgrade [URL]",
		Short: "Upgrade the tables of a store in a database",
		Long: `Upgrade changes the tables of a store to the format of this program. Stop all servers
and commands that use the store first, because older programs refuse the new format, and
make a backup. With --dry-run it says what it would do, and changes nothing.

A file needs no upgrade, because a program reads the files of all earlier ones.`,
		Example: "  tuner store upgrade --dry-run postgres://owner@db.example.org/tuner",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := storeAddress(g, cmd, args)
			if err != nil {
				return err
			}
			if !postgres.IsAddress(address) {
				return cli.Usagef("%s is a file, which needs no upgrade, because this program reads the files of all earlier ones; name a database", address)
			}
			id, from, err := postgres.Upgrade(cmd.Context(), address, o)
			if err != nil {
				return cli.DatabaseError(err)
			}
			text := fmt.Sprintf("Upgraded store %s from format %d to %d", id.Store[:8], from, id.Format)
			switch {
			case from == id.Format:
				text = fmt.Sprintf("Store %s has format %d already", id.Store[:8], id.Format)
			case o.DryRun:
				text = fmt.Sprintf("Would upgrade store %s from format %d, written by %s, to %d. Older programs refuse it then, so stop all that use it and make a backup first",
					id.Store[:8], from, cli.Clean(id.Writer), id.Format)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	for _, c := range []*cobra.Command{initialise, upgrade} {
		c.Flags().StringVar(&o.Grant, "grant", "", "`role` that gets the rights to read and write studies")
	}
	upgrade.Flags().BoolVar(&o.DryRun, "dry-run", false, "check only, without a change")
	cmd.AddCommand(cli.Connects(cli.ToDatabase, initialise, upgrade)...)
	return cmd
}

// storeAddress is the database of a command, from its argument or from --store.
func storeAddress(g *cli.Globals, cmd *cobra.Command, args []string) (string, error) {
	switch {
	case len(args) > 0:
		return args[0], nil
	case g.Database() != "":
		return g.Database(), nil
	default:
		return "", cli.Usagef("%s needs a database; name it as postgres://USER@HOST/DATABASE in an argument, --store or TUNER_STORE", cmd.CommandPath())
	}
}
