package data

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/store/bolt/backups"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
