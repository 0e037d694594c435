package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/spf13/cobra"
)

func newCheck(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE|URL]",
		Short: "Check a file or a database for damage",
		Long: `Check verifies everything in a file or database and prints OK with counts, or each
fault.

It checks the checksum and place of every record, names, and the rules of the log of each
study, and the pages of a file. No other process may use the file meanwhile. A database
may be in use. For a database it also says what an acknowledged trial survives.`,
		Example: "  tuner check\n  tuner check backup.db\n  tuner check postgres://tuner@db.example.org/tuner",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := g.offlinePlace(cmd, args)
			if err != nil {
				return err
			}
			if postgres.IsAddress(path) {
				return g.checkDatabase(cmd, path)
			}
			return check(cmd.Context(), cmd.OutOrStdout(), path)
		},
	}
}

// offlineFile is the file of a command, from its argument or from --db.
func (g *globals) offlineFile(cmd *cobra.Command, args []string) (string, error) {
	if err := g.offline(cmd); err != nil {
		return "", err
	}
	if len(args) > 0 {
		return args[0], nil
	}
	if err := g.onFile(cmd, "name a file"); err != nil {
		return "", err
	}
	return g.file(), nil
}

// offlinePlace is offlineFile for commands that also work on a database.
func (g *globals) offlinePlace(cmd *cobra.Command, args []string) (string, error) {
	if err := g.offline(cmd); err != nil {
		return "", err
	}
	if err := g.exclusive(); err != nil {
		return "", err
	}
	if len(args) == 0 && g.database() != "" {
		return g.database(), nil
	}
	return g.offlineFile(cmd, args)
}

func check(ctx context.Context, out io.Writer, path string) error {
	report, err := bolt.Check(ctx, path, &verify.Options{Summaries: tuner.CheckSummary})
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
		if _, err := fmt.Fprintln(out, clean(p.String())); err != nil {
			return err
		}
	}
	return &statusError{exitDamaged, fmt.Errorf("%s is damaged: %d problems; %s", place, len(r.Problems)+r.More, remedy)}
}

// offlineError is fileError for commands that need exclusive use of a file.
func offlineError(err error, path string) error {
	if errors.Is(err, bolt.ErrInUse) {
		return &tuner.RemoteError{Code: tuner.Unavailable, Message: err.Error() + "; stop the server first, or use a backup (tuner --server … backup FILE)"}
	}
	return fileError(err, path)
}

func newCompact(g *globals) *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use:   "compact [FILE]",
		Short: "Reclaim space from deleted data",
		Long: `Compact rewrites the file without the space of deleted data.

The copy is checked, compared with the original, and put in its place in one step. No
other process may use the file meanwhile.`,
		Example: "  tuner compact\n  tuner compact --keep old.db",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := g.offlineFile(cmd, args)
			if err != nil {
				return err
			}
			logger := g.logger(cmd, slog.LevelWarn)
			var before, after int64
			err = g.awaitLock(cmd.Context(), cmd, func(turn time.Duration) (err error) {
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

func newBackup(g *globals) *cobra.Command {
	var habit backupHabit
	cmd := &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Copy a file that is in use",
		Long: `Backup writes a consistent copy of all studies to a new file (- for stdout), and checks
it. It also copies the file of a server.

With --to it writes a backup into a directory, under a name with the time, and removes the
oldest backups beyond --keep. With --every it repeats this until Ctrl-C. A file with the
name of a backup is complete and was checked. Use tuner restore to restore it.`,
		Example: "  tuner backup monday.db\n  tuner --server localhost:7070 backup - | gzip > monday.db.gz\n  tuner --server localhost:7070 backup --every 5m --keep 24 --to backups",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (habit.dir != "") {
				return usagef("name either a file for the copy or a directory with --to")
			}
			if err := habit.check(); err != nil {
				return err
			}
			if habit.dir != "" {
				return habit.command(cmd, g)
			}
			return g.with(cmd, mustExist, func(ctx context.Context, svc tuner.Service) error {
				if args[0] == "-" {
					return svc.Backup(ctx, cmd.OutOrStdout())
				}
				if err := backup(ctx, svc, args[0]); err != nil {
					return err
				}
				g.note(cmd, "Wrote %s.", args[0])
				return nil
			})
		},
	}
	habit.flags(cmd.Flags(), "")
	cmd.Flags().SortFlags = false
	return cmd
}

// backup writes a file that is complete and sound, or no file.
func backup(ctx context.Context, svc tuner.Service, path string) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists, and a backup overwrites nothing; remove it, or choose another name", path)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	w := bufio.NewWriterSize(temp, 1<<20)
	if err := svc.Backup(ctx, w); err != nil {
		temp.Close()
		return err
	}
	if err := errors.Join(w.Flush(), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := check(ctx, io.Discard, temp.Name()); err != nil {
		return fmt.Errorf("the copy is damaged: %w", err)
	}
	return os.Link(temp.Name(), path)
}
