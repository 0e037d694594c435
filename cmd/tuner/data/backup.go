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
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/bolt/backups"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// BackupHabit are the flags of regular backups.
type BackupHabit struct {
	Dir    string
	Every  time.Duration
	keep   int
	prefix string // of the flags
}

func (h *BackupHabit) Flags(f *pflag.FlagSet, prefix string) {
	h.prefix = prefix
	f.StringVar(&h.Dir, prefix+"to", "", "`directory` for backups, created if missing")
	f.DurationVar(&h.Every, prefix+"every", 0, "time between two backups, such as 5m")
	f.IntVar(&h.keep, prefix+"keep", 0, "number of backups to keep, 0 for all")
}

func (h *BackupHabit) Check() error {
	switch {
	case h.Every < 0:
		return cli.Usagef("--%severy must not be negative", h.prefix)
	case h.Every > 0 && h.Every < time.Second:
		return cli.Usagef("--%severy %s: must be at least 1s", h.prefix, h.Every)
	case h.keep < 0:
		return cli.Usagef("--%skeep must not be negative", h.prefix)
	case h.Dir == "" && (h.Every > 0 || h.keep > 0):
		return cli.Usagef("--%severy and --%skeep need a directory: --%sto", h.prefix, h.prefix, h.prefix)
	default:
		return nil
	}
}

// command is tuner backup --to.
func (h *BackupHabit) command(cmd *cobra.Command, g *cli.Globals) error {
	k := &backups.Keeper{
		Dir: h.Dir, Keep: h.keep, Every: h.Every, Logger: g.Logger(cmd, slog.LevelInfo),
		Write: func(ctx context.Context, w io.Writer) error { // other processes use the file in between
			return g.With(cmd, cli.MustExist, func(_ context.Context, svc tuner.Service) error { return svc.Backup(ctx, w) })
		},
	}
	if g.Address() == "" && g.Database() == "" {
		k.Size = sizeOf(g.File())
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

func sizeOf(path string) func() int64 {
	return func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
}

// backupMetrics are those of backups beside a server.
type backupMetrics struct {
	tries      *prometheus.CounterVec // by result
	last, size prometheus.Gauge
}

// NewBackupMetrics registers the metrics of backups.
func NewBackupMetrics(r prometheus.Registerer) (backupMetrics, error) {
	tries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tuner_backups_total", Help: "Backups made beside the server, by result: ok or failed.",
	}, []string{"result"})
	last := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tuner_backup_last_success_timestamp_seconds", Help: "Start of the last successful backup in Unix time, 0 if there was none since the server started.",
	})
	size := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tuner_backup_last_bytes", Help: "Size of the last successful backup in bytes.",
	})
	for _, c := range []prometheus.Collector{tries, last, size} {
		if err := r.Register(c); err != nil {
			return backupMetrics{}, fmt.Errorf("metrics: %w", err)
		}
	}
	tries.WithLabelValues("ok")
	tries.WithLabelValues("failed")
	return backupMetrics{tries, last, size}, nil
}

// Serve makes backups beside a server until ctx ends. Then it closes done.
func (h *BackupHabit) Serve(ctx context.Context, st *bolt.Store, path string, logger *slog.Logger, r prometheus.Registerer) (done <-chan struct{}, err error) {
	over := make(chan struct{})
	if h.Dir == "" {
		close(over)
		return over, nil
	}
	m, err := NewBackupMetrics(r)
	if err != nil {
		return nil, err
	}
	k := &backups.Keeper{
		Dir: h.Dir, Keep: h.keep, Every: h.Every, Logger: logger, Size: sizeOf(path),
		Write: func(ctx context.Context, w io.Writer) error { _, err := st.Backup(ctx, w); return err },
		Done: func(b backups.Backup, err error) {
			if err != nil {
				m.tries.WithLabelValues("failed").Inc()
				return
			}
			m.tries.WithLabelValues("ok").Inc()
			m.last.Set(float64(b.Time.UnixNano()) / 1e9)
			m.size.Set(float64(b.Bytes))
		},
	}
	go func() {
		defer close(over)
		_ = k.Run(ctx) // it logs failures
	}()
	return over, nil
}

func newBackup(g *cli.Globals) *cobra.Command {
	var habit BackupHabit
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
			if (len(args) == 1) == (habit.Dir != "") {
				return cli.Usagef("name either a file for the copy or a directory with --to")
			}
			if err := habit.Check(); err != nil {
				return err
			}
			if habit.Dir != "" {
				return habit.command(cmd, g)
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
	habit.Flags(cmd.Flags(), "")
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
