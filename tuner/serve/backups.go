package serve

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/bolt/backups"
)

// backUp makes backups of the file until ctx ends. Then it closes done.
func (c *Config) backUp(ctx context.Context, st *bolt.Store, r prometheus.Registerer) (done <-chan struct{}, err error) {
	over := make(chan struct{})
	if c.Backups.Dir == "" {
		close(over)
		return over, nil
	}
	k := &backups.Keeper{Plan: c.Backups, Logger: c.Server.Logger, Size: backups.SizeOf(c.File), Write: st.Backup}
	if k.Done, err = backupMetrics(r, k.Newest()); err != nil {
		close(over)
		return over, err
	}
	go func() {
		defer close(over)
		_ = k.Run(ctx) // it logs failures
	}()
	return over, nil
}

// backupMetrics registers the metrics of backups, the newest of which is there already. done
// counts a try.
func backupMetrics(r prometheus.Registerer, newest time.Time) (done func(backups.Backup, error), err error) {
	tries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tuner_backups_total", Help: "Backups made beside the server, by result: ok or failed.",
	}, []string{"result"})
	last := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tuner_backup_last_success_timestamp_seconds", Help: "Start of the last successful backup in Unix time, also of an earlier server, 0 if there is none.",
	})
	size := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tuner_backup_last_bytes", Help: "Size of the last successful backup in bytes.",
	})
	for _, c := range []prometheus.Collector{tries, last, size} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	tries.WithLabelValues("ok")
	tries.WithLabelValues("failed")
	if !newest.IsZero() {
		last.Set(float64(newest.UnixMilli()) / 1e3)
	}
	return func(b backups.Backup, err error) {
		if err != nil {
			tries.WithLabelValues("failed").Inc()
			return
		}
		tries.WithLabelValues("ok").Inc()
		last.Set(float64(b.Time.UnixMilli()) / 1e3)
		size.Set(float64(b.Bytes))
	}, nil
}
