package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/shared"
	"github.com/spf13/cobra"
)

// Database is the address of the database to work on, empty for a file or a server.
func (g *Globals) Database() string {
	switch {
	case g.Store != "":
		return g.Store
	case g.Db != "" || g.Address() != "": // a flag is stronger than the environment
		return ""
	default:
		return os.Getenv("TUNER_STORE")
	}
}

// Exclusive refuses two places for the studies.
func (g *Globals) Exclusive() error {
	var flags []string
	for _, f := range []struct{ name, value string }{{"--db", g.Db}, {"--server", g.Server}, {"--store", g.Store}} {
		if f.value != "" {
			flags = append(flags, f.name)
		}
	}
	if len(flags) > 1 {
		return Usagef("%s and %s exclude each other", flags[0], flags[1])
	}
	return nil
}

// OnFile refuses a database for commands that work on files. instead says what to do.
func (g *Globals) OnFile(cmd *cobra.Command, instead string) error {
	if err := g.Exclusive(); err != nil {
		return err
	}
	if g.Database() != "" {
		return Usagef("%s works on a file, not on a database; %s", cmd.CommandPath(), instead)
	}
	return nil
}

// OpenDatabase opens the store in a database. While it cannot be reached it tries again
// for --retry-for.
func (g *Globals) OpenDatabase(ctx context.Context, cmd *cobra.Command, address string, logger *slog.Logger) (*postgres.Store, error) {
	if postgres.HasPassword(address) && address != os.Getenv("TUNER_STORE") {
		g.Note(cmd, "Other users of this machine can see the password on the command line. Put it into a file for PGPASSFILE, or the address into TUNER_STORE.")
	}
	until := time.Now().Add(g.retryFor)
	for said := false; ; said = true {
		try, cancel := context.WithTimeout(ctx, max(time.Until(until), 10*time.Second))
		st, err := postgres.Open(try, address, postgres.Options{Logger: logger})
		cancel()
		if !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil || time.Now().After(until) {
			return st, DatabaseError(err)
		}
		if !said {
			g.Note(cmd, "%v. Trying until %s.", err, until.Format(time.TimeOnly))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// DatabaseError gives errors of opening a database their exit code.
func DatabaseError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, postgres.ErrURL):
		return Usage(err)
	case errors.Is(err, postgres.ErrMissing):
		return Exit(ExitNotFound, err)
	case errors.Is(err, postgres.ErrForeign):
		return Exit(ExitDamaged, err)
	case errors.Is(err, postgres.ErrNewerFormat), errors.Is(err, postgres.ErrOlderFormat), errors.Is(err, postgres.ErrUnsafe):
		return Exit(ExitUnsupported, err)
	case errors.Is(err, postgres.ErrDenied):
		return &tuner.RemoteError{Code: tuner.Denied, Message: err.Error()}
	default:
		return err
	}
}

// lent is a store that stays open when its borrower closes it.
type lent struct{ Unbacked }

func (lent) Close() error { return nil }

// Unbacked is a database for a service, whose backups are not a file.
type Unbacked struct {
	*postgres.Store
	NoBackup
}

// onDatabase returns the service over a database. The connections stay open while the
// command runs. A study is read again after a pause, because other processes write too.
func (g *Globals) onDatabase(cmd *cobra.Command, address string, o tuner.Options) *shared.Service {
	var st *postgres.Store
	s := shared.New(func(ctx context.Context) (_ tuner.Service, err error) {
		if st == nil {
			if st, err = g.OpenDatabase(ctx, cmd, address, o.Logger); err != nil {
				st = nil
				return nil, err
			}
		}
		return tuner.Open(lent{Unbacked{Store: st}}, o), nil
	})
	s.Closed = func() error {
		if st == nil {
			return nil
		}
		return st.Close()
	}
	return s
}

// Backuper makes a store a [tuner.Backuper].
type Backuper struct{ *bolt.Store }

// Backup implements tuner.Backuper.
func (b Backuper) Backup(ctx context.Context, w io.Writer) error {
	_, err := b.Store.Backup(ctx, w)
	return err
}

// NoBackup explains how to make a backup of a database.
type NoBackup struct{}

// Backup implements tuner.Backuper.
func (NoBackup) Backup(context.Context, io.Writer) error {
	return fmt.Errorf("a backup of a database: %w; use pg_dump or the database's own tools, or tuner copy to a file", tuner.ErrUnsupported)
}
