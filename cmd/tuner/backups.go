package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/backups"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// backupHabit are the flags of regular backups.
type backupHabit struct {
	dir    string
	every  time.Duration
	keep   int
	prefix string // of the flags
}

func (h *backupHabit) flags(f *pflag.FlagSet, prefix string) {
	h.prefix = prefix
	f.StringVar(&h.dir, prefix+"to", "", "`directory` for backups, created if missing")
	f.DurationVar(&h.every, prefix+"every", 0, "time between two backups, such as 5m")
	f.IntVar(&h.keep, prefix+"keep", 0, "number of backups to keep, 0 for all")
}

func (h *backupHabit) check() error {
	switch {
	case h.every < 0:
		return usagef("--%severy must not be negative", h.prefix)
	case h.every > 0 && h.every < time.Second:
		return usagef("--%severy %s: must be at least 1s", h.prefix, h.every)
	case h.keep < 0:
		return usagef("--%skeep must not be negative", h.prefix)
	case h.dir == "" && (h.every > 0 || h.keep > 0):
		return usagef("--%severy and --%skeep need a directory: --%sto", h.prefix, h.prefix, h.prefix)
	default:
		return nil
	}
}

// command is tuner backup --to.
func (h *backupHabit) command(cmd *cobra.Command, g *globals) error {
	k := &backups.Keeper{
		Dir: h.dir, Keep: h.keep, Every: h.every, Logger: g.logger(cmd, slog.LevelInfo),
		Write: func(ctx context.Context, w io.Writer) error { // other processes use the file in between
			return g.with(cmd, mustExist, func(_ context.Context, svc tuner.Service) error { return svc.Backup(ctx, w) })
		},
	}
	if g.address() == "" && g.database() == "" {
		k.Size = sizeOf(g.file())
	}
	if h.every > 0 {
		return k.Run(cmd.Context())
	}
	b, err := k.Once(cmd.Context())
	if err != nil {
		return err
	}
	g.note(cmd, "Wrote %s: %d studies, %d events, %d bytes.", b.Path, b.Report.Studies, b.Report.Events, b.Bytes)
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

// newBackupMetrics registers the metrics of backups.
func newBackupMetrics(r prometheus.Registerer) (backupMetrics, error) {
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

// serve makes backups beside a server until ctx ends. Then it closes done.
func (h *backupHabit) serve(ctx context.Context, st *bolt.Store, path string, logger *slog.Logger, r prometheus.Registerer) (done <-chan struct{}, err error) {
	over := make(chan struct{})
	if h.dir == "" {
		close(over)
		return over, nil
	}
	m, err := newBackupMetrics(r)
	if err != nil {
		return nil, err
	}
	k := &backups.Keeper{
		Dir: h.dir, Keep: h.keep, Every: h.every, Logger: logger, Size: sizeOf(path),
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

func newRestore(g *globals) *cobra.Command {
	var o bolt.RestoreOptions
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Restore a backup",
		Long: `Restore checks a backup, copies it, checks the copy, and puts it in the place of the
file (--db) in one step.

It refuses to replace an existing file, unless --force is given. With --force the old
file is kept under another name, which restore prints. Restore always refuses a file
that a server or another process has open. With --dry-run it checks everything, says
what it would do, and changes nothing.`,
		Example: "  tuner restore --dry-run backups/tuner-1a2b3c4d-20261122T052501.123Z.db",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := g.offline(cmd); err != nil {
				return err
			}
			if err := g.onFile(cmd, "restore it with the tools that made the backup, or use tuner copy"); err != nil {
				return err
			}
			path := g.file()
			o.LockTimeout = min(g.lockTimeout, bolt.DefaultLockTimeout)
			r, err := bolt.Restore(cmd.Context(), args[0], path, o)
			if err != nil {
				return restoreError(err, args[0])
			}
			return restored(cmd, g, args[0], path, o, r)
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "check only, without a change")
	cmd.Flags().BoolVar(&o.Force, "force", false, "replacement of an existing file, which is kept under another name")
	return cmd
}

// restored reports the result of a restore or of a dry run.
func restored(cmd *cobra.Command, g *globals, from, path string, o bolt.RestoreOptions, r bolt.Restored) error {
	verb := "Restored"
	if o.DryRun {
		verb = "Would restore"
	}
	out := cmd.OutOrStdout()
	if _, err := fmt.Fprintf(out, "%s %s from %s: %d studies, %d trials, %d events, %d bytes, store %s, written by %s\n", verb, path, from,
		r.Backup.Studies, r.Backup.Trials, r.Backup.Events, r.Backup.FileBytes, r.Backup.Identity.Store[:8], clean(r.Backup.Identity.Writer)); err != nil {
		return err
	}
	switch {
	case o.DryRun && r.Replaces && !o.Force:
		return fmt.Errorf("%s exists: without --dry-run this would be refused; --force replaces it and keeps it under another name", path)
	case o.DryRun && r.Replaces:
		g.note(cmd, "%s exists and would be kept under another name.", path)
	case r.Kept != "":
		g.note(cmd, "The old file is now %s.", r.Kept)
	}
	return nil
}

func restoreError(err error, path string) error {
	if errors.Is(err, bolt.ErrMissing) {
		return &statusError{exitNotFound, err}
	}
	return offlineError(err, path)
}
