package data

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/bolt/backups"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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

// BackupFlags adds the flags of regular backups, whose names begin with a prefix.
func BackupFlags(f *pflag.FlagSet, p *backups.Plan, prefix string) {
	f.StringVar(&p.Dir, prefix+"to", "", "`directory` for backups, created if missing")
	f.DurationVar(&p.Every, prefix+"every", 0, "time between two backups, such as 5m")
	f.IntVar(&p.Keep, prefix+"keep", 0, "number of backups to keep, 0 for all")
}

// habit are the flags of regular backups.
type habit struct{ backups.Plan }

func (h *habit) check() error {
	if err := h.Check(); err != nil {
		return cli.Usagef("%s", strings.NewReplacer("Every", "--every", "Keep", "--keep", "Dir", "--to").Replace(err.Error()))
	}
	return nil
}

// command is tuner backup --to.
func (h *habit) command(cmd *cobra.Command, g *cli.Globals) error {
	k := &backups.Keeper{
		Plan: h.Plan, Logger: g.Logger(cmd, slog.LevelInfo),
		Write: func(ctx context.Context, w io.Writer) error { // other processes use the file in between
			return g.With(cmd, cli.MustExist, func(_ context.Context, svc tuner.Service) error { return svc.Backup(ctx, w) })
		},
	}
	if g.Address() == "" && g.Database() == "" {
		k.Size = backups.SizeOf(g.File())
	}
	if h.Every > 0 {
		return k.Run(cmd.Context())
	}
	b, err := k.Once(cmd.Context())
	if err != nil {
		return err
	}
	g.Note(cmd, "Wrote %s: %d studies, %d events, %d bytes.", b.Path, b.Report.Studies, b.Report.Events, b.Bytes)
	return nil
}

func newBackup(g *cli.Globals) *cobra.Command {
	var h habit
	cmd := &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Copy a file that is in use",
		Long: `Backup writes a consistent copy of all studies to a new file (- for stdout), and checks
it. It also copies the file of a server.

With --to it writes a backup into a directory, under a name with the time, and removes the
oldest backups beyond --keep. With --every it repeats this until Ctrl-C. A file with the
name of a backup is complete and was checked. Use tuner restore to restore it.`,
		Example: "  tuner backup monday.db\n  tuner --server localhost:7070 backup - | gzip > monday.db.gz\n  tuner --server localhost:7070 backup --every 5m --keep 24 --to backups",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (h.Dir != "") {
				return cli.Usagef("name either a file for the copy or a directory with --to")
			}
			if err := h.check(); err != nil {
				return err
			}
			if h.Dir != "" {
				return h.command(cmd, g)
			}
			return g.With(cmd, cli.MustExist, func(ctx context.Context, svc tuner.Service) error {
				if args[0] == "-" {
					return svc.Backup(ctx, cmd.OutOrStdout())
				}
				if err := backup(ctx, svc, args[0]); err != nil {
					return err
				}
				g.Note(cmd, "Wrote %s.", args[0])
				return nil
			})
		},
	}
	BackupFlags(cmd.Flags(), &h.Plan, "")
	return cmd
}

// backup writes a file that is complete and sound, or no file.
func backup(ctx context.Context, svc tuner.Service, path string) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists, and a backup overwrites nothing; remove it, or choose another name", path)
	}
	atomicfile.Sweep(path)
	temp, err := atomicfile.New(path, 0o600)
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

func newRestore(g *cli.Globals) *cobra.Command {
	var o bolt.RestoreOptions
	cmd := &cobra.Command{
		Use:   "restore BACKUP...",
		Short: "Restore a backup",
		Long: `Restore checks a backup, copies it, checks the copy, and puts it in the place of the
file (--db) in one step. Of several backups of one store it takes the latest.

It refuses to replace an existing file, unless --force is given. With --force the old
file is kept under another name, which restore prints. Restore always refuses a file
that a server or another process has open. With --dry-run it checks everything, says
what it would do, and changes nothing.`,
		Example: "  tuner restore --dry-run backups/tuner-1a2b3c4d-20261122T052501.123Z.db\n  tuner restore --force backups/tuner-*.db",
		Args:    cli.Between(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := g.OnFile(cmd, "restore it with the tools that made the backup, or use tuner copy"); err != nil {
				return err
			}
			from, err := backups.Latest(args, time.Now())
			if err != nil {
				return cli.Usage(err)
			}
			path := g.File()
			o.LockTimeout = min(g.LockTimeout, bolt.DefaultLockTimeout)
			r, err := bolt.Restore(cmd.Context(), from, path, o)
			if err != nil {
				return restoreError(err, from)
			}
			return restored(cmd, g, from, path, o, r)
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "check only, without a change")
	cmd.Flags().BoolVar(&o.Force, "force", false, "replacement of an existing file, which is kept under another name")
	return cmd
}

// restored reports the result of a restore or of a dry run.
func restored(cmd *cobra.Command, g *cli.Globals, from, path string, o bolt.RestoreOptions, r bolt.Restored) error {
	verb := "Restored"
	if o.DryRun {
		verb = "Would restore"
	}
	out := cmd.OutOrStdout()
	if _, err := fmt.Fprintf(out, "%s %s from %s: %d studies, %d trials, %d events, %d bytes, store %s, written by %s\n", verb, path, from,
		r.Backup.Studies, r.Backup.Trials, r.Backup.Events, r.Backup.FileBytes, r.Backup.Identity.Store[:8], cli.Clean(r.Backup.Identity.Writer)); err != nil {
		return err
	}
	switch {
	case o.DryRun && r.Replaces && !o.Force:
		return fmt.Errorf("%s exists: without --dry-run this would be refused; --force replaces it and keeps it under another name", path)
	case o.DryRun && r.Replaces:
		g.Note(cmd, "%s exists and would be kept under another name.", path)
	case r.Kept != "":
		g.Note(cmd, "The old file is now %s.", r.Kept)
	}
	return nil
}

func restoreError(err error, path string) error {
	if errors.Is(err, bolt.ErrMissing) {
		return cli.Exit(cli.ExitNotFound, err)
	}
	return offlineError(err, path)
}
