package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
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

// Check refuses two places for the studies, and one that the command cannot use.
func (g *Globals) Check(cmd *cobra.Command) error {
	var flags []string
	for _, f := range []struct{ name, value string }{{"--db", g.Db}, {"--server", g.Server}, {"--store", g.Store}} {
		if f.value != "" {
			flags = append(flags, f.name)
		}
	}
	to := Place(cmd.Annotations[connectKey])
	switch {
	case len(flags) > 1:
		return Usagef("%s and %s exclude each other", flags[0], flags[1])
	case g.Server != "" && (to == ToFile || to == ToPlace):
		return Usagef("%s works on a file; leave --server out", cmd.CommandPath())
	}
	return nil
}

// OnFile refuses a database for commands that work on files. instead says what to do.
func (g *Globals) OnFile(cmd *cobra.Command, instead string) error {
	if g.Database() != "" {
		return Usagef("%s works on a file, not on a database; %s", cmd.CommandPath(), instead)
	}
	return nil
}

// NotePassword warns of an address with a password on the command line.
func (g *Globals) NotePassword(cmd *cobra.Command, address string) {
	if postgres.HasPassword(address) && address != os.Getenv("TUNER_STORE") {
		g.Note(cmd, "Other users of this machine can see the password on the command line. Put it into a file for PGPASSFILE, or the address into TUNER_STORE.")
	}
}

// OpenDatabase opens the store in a database. While it cannot be reached it tries again
// for --retry-for.
func (g *Globals) OpenDatabase(ctx context.Context, cmd *cobra.Command, address string, logger *slog.Logger) (*postgres.Store, error) {
	g.NotePassword(cmd, address)
	st, err := postgres.OpenWithin(ctx, address, postgres.Options{Logger: logger}, g.RetryFor, func(err error, until time.Time) {
		g.Note(cmd, "%v. Trying until %s.", err, until.Format(time.TimeOnly))
	})
	return st, DatabaseError(err)
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
type lent struct{ *postgres.Store }

func (lent) Close() error { return nil }

// onDatabase returns the service over a database. The connections stay open while the
// command runs. A study is read again after a pause, because other processes write too.
func (g *Globals) onDatabase(cmd *cobra.Command, address string, o engine.Options) *shared.Service {
	var st *postgres.Store
	s := shared.New(func(ctx context.Context) (_ tuner.Service, err error) {
		if st == nil {
			if st, err = g.OpenDatabase(ctx, cmd, address, o.Logger); err != nil {
				st = nil
				return nil, err
			}
		}
		return engine.Open(lent{st}, o), nil
	})
	s.Closed = func() error {
		if st == nil {
			return nil
		}
		return st.Close()
	}
	return s
}
