package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/spf13/cobra"
)

// checkDatabase is tuner check of a database.
func checkDatabase(g *cli.Globals, cmd *cobra.Command, address string) (err error) {
	st, err := g.OpenDatabase(cmd.Context(), cmd, address, g.Logger(cmd, slog.LevelWarn))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	report, err := st.Check(cmd.Context(), &verify.Options{Summaries: view.CheckSummary})
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

func newCheck(g *cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE|URL]",
		Short: "Check a file or a database for damage",
		Long: `Check verifies everything in a file or database and prints OK with counts, or each
fault.

It checks the checksum and place of every record, names, and the rules of the log of each
study, and the pages of a file. No other process may use the file meanwhile. A database
may be in use. For a database it also says what an acknowledged trial survives.`,
		Example: "  tuner check\n  tuner check backup.db\n  tuner check postgres://tuner@db.example.org/tuner",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := offlinePlace(g, cmd, args)
			if err != nil {
				return err
			}
			if postgres.IsAddress(path) {
				return checkDatabase(g, cmd, path)
			}
			return check(cmd.Context(), cmd.OutOrStdout(), path)
		},
	}
}

// offlineFile is the file of a command, from its argument or from --db.
func offlineFile(g *cli.Globals, cmd *cobra.Command, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	if err := g.OnFile(cmd, "name a file"); err != nil {
		return "", err
	}
	return g.File(), nil
}

// offlinePlace is offlineFile for commands that also work on a database.
func offlinePlace(g *cli.Globals, cmd *cobra.Command, args []string) (string, error) {
	if len(args) == 0 && g.Database() != "" {
		return g.Database(), nil
	}
	return offlineFile(g, cmd, args)
}

func check(ctx context.Context, out io.Writer, path string) error {
	report, err := bolt.Check(ctx, path, &verify.Options{Summaries: view.CheckSummary})
	if err != nil {
		return offlineError(err, path)
	}
	return printProblems(out, report.Report, path, report.FileBytes, "restore a backup (tuner restore), or export the readable studies (tuner export)")
}

// printProblems prints OK with counts, or each problem of a check and returns an error.
func printProblems(out io.Writer, r verify.Report, place string, bytes int64, remedy string) error {
	if r.OK() {
		_, err := fmt.Fprintf(out, "OK: %d studies, %d trials, %d events, %d bytes\n", r.Studies, r.Trials, r.Events, bytes)
		return err
	}
	for _, p := range r.Problems {
		if _, err := fmt.Fprintln(out, cli.Clean(p.String())); err != nil {
			return err
		}
	}
	return cli.Exit(cli.ExitDamaged, fmt.Errorf("%s is damaged: %d problems; %s", place, len(r.Problems)+r.More, remedy))
}

// offlineError is fileError for commands that need exclusive use of a file.
func offlineError(err error, path string) error {
	if errors.Is(err, bolt.ErrInUse) {
		return &tuner.RemoteError{Code: tuner.Unavailable, Message: err.Error() + "; stop the server first, or use a backup (tuner --server … backup FILE)"}
	}
	return cli.FileError(err, path)
}
