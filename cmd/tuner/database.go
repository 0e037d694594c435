package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/shared"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/cobra"
)

// database is the address of the database to work on, empty for a file or a server.
func (g *globals) database() string {
	switch {
	case g.store != "":
		return g.store
	case g.db != "" || g.address() != "": // a flag is stronger than the environment
		return ""
	default:
		return os.Getenv("TUNER_STORE")
	}
}

// exclusive refuses two places for the studies.
func (g *globals) exclusive() error {
	var flags []string
	for _, f := range []struct{ name, value string }{{"--db", g.db}, {"--server", g.server}, {"--store", g.store}} {
		if f.value != "" {
			flags = append(flags, f.name)
		}
	}
	if len(flags) > 1 {
		return usagef("%s and %s exclude each other", flags[0], flags[1])
	}
	return nil
}

// onFile refuses a database for commands that work on files. instead says what to do.
func (g *globals) onFile(cmd *cobra.Command, instead string) error {
	if err := g.exclusive(); err != nil {
		return err
	}
	if g.database() != "" {
		return usagef("%s works on a file, not on a database; %s", cmd.CommandPath(), instead)
	}
	return nil
}

// openDatabase opens the store in a database. While it cannot be reached it tries again
// for --retry-for.
func (g *globals) openDatabase(ctx context.Context, cmd *cobra.Command, address string, logger *slog.Logger) (*postgres.Store, error) {
	if postgres.HasPassword(address) && address != os.Getenv("TUNER_STORE") {
		g.note(cmd, "Other users of this machine can see the password on the command line. Put it into a file for PGPASSFILE, or the address into TUNER_STORE.")
	}
	until := time.Now().Add(g.retryFor)
	for said := false; ; said = true {
		try, cancel := context.WithTimeout(ctx, max(time.Until(until), 10*time.Second))
		st, err := postgres.Open(try, address, postgres.Options{Logger: logger})
		cancel()
		if !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil || time.Now().After(until) {
			return st, databaseError(err)
		}
		if !said {
			g.note(cmd, "%v. Trying until %s.", err, until.Format(time.TimeOnly))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// databaseError gives errors of opening a database their exit code.
func databaseError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, postgres.ErrURL):
		return usageError{err}
	case errors.Is(err, postgres.ErrMissing):
		return &statusError{exitNotFound, err}
	case errors.Is(err, postgres.ErrForeign):
		return &statusError{exitDamaged, err}
	case errors.Is(err, postgres.ErrNewerFormat), errors.Is(err, postgres.ErrOlderFormat), errors.Is(err, postgres.ErrUnsafe):
		return &statusError{exitUnsupported, err}
	case errors.Is(err, postgres.ErrDenied):
		return &tuner.RemoteError{Code: tuner.Denied, Message: err.Error()}
	default:
		return err
	}
}

// lent is a store that stays open when its borrower closes it.
type lent struct{ unbacked }

func (lent) Close() error { return nil }

// unbacked is a database for a service, whose backups are not a file.
type unbacked struct {
	*postgres.Store
	noBackup
}

// onDatabase returns the service over a database. The connections stay open while the
// command runs. A study is read again after a pause, because other processes write too.
func (g *globals) onDatabase(cmd *cobra.Command, address string, o tuner.Options) *shared.Service {
	var st *postgres.Store
	s := shared.New(func(ctx context.Context) (_ tuner.Service, err error) {
		if st == nil {
			if st, err = g.openDatabase(ctx, cmd, address, o.Logger); err != nil {
				st = nil
				return nil, err
			}
		}
		return tuner.Open(lent{unbacked{Store: st}}, o), nil
	})
	s.Closed = func() error {
		if st == nil {
			return nil
		}
		return st.Close()
	}
	return s
}

// opened is the store of a server, with what the server asks of it.
type opened struct {
	store.Store
	file    *bolt.Store     // nil for a database
	failed  <-chan struct{} // closed when the store has failed, nil if it goes on
	failure func() error
	bytes   func() (server.StoreBytes, error)
}

func openedFile(st *bolt.Store) *opened {
	return &opened{
		Store: backuper{st}, file: st, failed: st.Failed(), failure: st.Failure,
		bytes: func() (server.StoreBytes, error) {
			s, err := st.Status(context.Background())
			return server.StoreBytes{Used: s.UsedBytes, Free: s.FreeBytes, Limit: s.MaxSize}, err
		},
	}
}

func openedDatabase(st *postgres.Store) *opened {
	return &opened{
		Store: unbacked{Store: st}, failure: func() error { return nil },
		bytes: func() (server.StoreBytes, error) {
			n, err := st.Bytes(context.Background())
			return server.StoreBytes{Used: n, Free: -1, Limit: -1}, err // the database knows neither
		},
	}
}

// checkDatabase is tuner check of a database.
func (g *globals) checkDatabase(cmd *cobra.Command, address string) (err error) {
	st, err := g.openDatabase(cmd.Context(), cmd, address, g.logger(cmd, slog.LevelWarn))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	report, err := st.Check(cmd.Context(), &verify.Options{Summaries: tuner.CheckSummary})
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	remedy := "restore the database from its own backup, or copy the readable studies (tuner copy)"
	if err := printProblems(out, report.Report, "the database", report.Bytes, remedy); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "PostgreSQL %s: an acknowledged trial survives %s\n", report.Durability.Version, report.Durability.Survives())
	return err
}

func newStore(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Prepare a database for studies",
		Long: `Store makes and upgrades the tables of a store in a PostgreSQL database.

The database is named by --store, TUNER_STORE or an argument. The role in the address
must own the tables. Other commands need only a role to which --grant gave its rights.`,
		Example: "  tuner store init postgres://owner@db.example.org/tuner --grant tuner",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := postgres.InitOptions{Program: "tuner " + version()}
	initialise := &cobra.Command{
		Use:   "init [URL]",
		Short: "Make the tables of a store in a database",
		Long: `Init makes the tables of a store in a schema of its own, bkb unless the address names
another (?schema=NAME). If they are there already, it changes nothing but the rights of
--grant.`,
		Example: "  tuner store init postgres://owner@db.example.org/tuner --grant tuner",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := g.storeAddress(cmd, args)
			if err != nil {
				return err
			}
			id, made, err := postgres.Init(cmd.Context(), address, o)
			if err != nil {
				return databaseError(err)
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
and commands that use the store first, because older programs refuse the new format.`,
		Example: "  tuner store upgrade postgres://owner@db.example.org/tuner",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := g.storeAddress(cmd, args)
			if err != nil {
				return err
			}
			id, from, err := postgres.Upgrade(cmd.Context(), address, o)
			if err != nil {
				return databaseError(err)
			}
			text := fmt.Sprintf("Upgraded store %s from format %d to %d", id.Store[:8], from, id.Format)
			if from == id.Format {
				text = fmt.Sprintf("Store %s has format %d already", id.Store[:8], id.Format)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	for _, c := range []*cobra.Command{initialise, upgrade} {
		c.Flags().StringVar(&o.Grant, "grant", "", "`role` that gets the rights to read and write studies")
		cmd.AddCommand(c)
	}
	return cmd
}

// storeAddress is the database of a command, from its argument or from --store.
func (g *globals) storeAddress(cmd *cobra.Command, args []string) (string, error) {
	if err := g.exclusive(); err != nil {
		return "", err
	}
	switch {
	case len(args) > 0:
		return args[0], nil
	case g.database() != "":
		return g.database(), nil
	default:
		return "", usagef("%s needs a database; name it as postgres://USER@HOST/DATABASE in an argument, --store or TUNER_STORE", cmd.CommandPath())
	}
}
