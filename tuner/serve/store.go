package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/bolt/backups"
	"github.com/bkbtuner/bkb/store/lease"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/artifacts"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/cluster"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
)

// opened is the store of a server, with what the server asks of it.
type opened struct {
	store.Store
	file   *bolt.Store   // nil for a database
	member *lease.Member // nil for a file
	base   *postgres.Store
	bytes  func() (server.StoreBytes, error)
	files  *artifacts.Folder // nil for none
}

// openFile opens the file once no other process uses it.
func (c *Config) openFile(ctx context.Context, mustExist bool) (*opened, error) {
	o := bolt.Options{MustExist: mustExist, MaxSize: c.MaxFile, LockTimeout: c.LockTimeout, Logger: c.Server.Logger}
	st, err := bolt.OpenWhenFree(ctx, c.File, o, c.waiting)
	if err != nil {
		return nil, err
	}
	return &opened{Store: st, file: st, files: artifacts.Beside(c.File, c.ArtifactQuota), bytes: func() (server.StoreBytes, error) {
		s, err := st.Status(context.Background())
		return server.StoreBytes{Used: s.UsedBytes, Free: s.FreeBytes, Limit: s.MaxSize}, err
	}}, nil
}

// openDatabase opens the database, and makes this process one of its servers.
func (c *Config) openDatabase(ctx context.Context) (*opened, error) {
	logger := c.Server.Logger
	st, err := postgres.OpenWithin(ctx, c.Database, postgres.Options{Logger: logger}, c.RetryFor, func(err error, until time.Time) {
		c.notice(fmt.Sprintf("%v. Trying until %s.", err, until.Format(time.TimeOnly)))
	})
	if err != nil {
		return nil, err
	}
	m, err := lease.Join(ctx, st, lease.Options{Address: c.Advertise, TTL: c.Takeover, Logger: logger})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	if err := c.checkOthers(ctx, st, m.ID()); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	var files *artifacts.Folder
	if c.Artifacts != "" {
		files = artifacts.New(filepath.Join(c.Artifacts, st.Identity().Store), c.ArtifactQuota)
	}
	return &opened{Store: m, member: m, base: st, files: files, bytes: func() (server.StoreBytes, error) {
		ctx, cancel := context.WithTimeout(context.Background(), bytesPatience)
		defer cancel()
		n, err := st.Bytes(ctx)
		return server.StoreBytes{Used: n, Free: -1, Limit: -1}, err // the database knows neither
	}}, nil
}

// bytesPatience is how long a scrape of the metrics waits for the database.
const bytesPatience = 200 * time.Millisecond

// tellReadiness keeps health checks right about the database until ctx ends.
func (o *opened) tellReadiness(ctx context.Context, logger *slog.Logger, set func(ready bool)) {
	if o.base == nil {
		return
	}
	was := true
	o.base.Probe(ctx, func(err error) {
		ready := err == nil && o.member.Alive()
		switch {
		case was && !ready:
			logger.Warn("the database does not answer or the lease of this server is over, so health checks answer NOT_SERVING", "error", err)
		case !was && ready:
			logger.Info("the database answers again, and so do health checks")
		}
		was = ready
		set(ready)
	})
}

// failure is why the file failed, or nil.
func (o *opened) failure() error {
	if o.file == nil {
		return nil
	}
	return o.file.Failure()
}

// watch calls fatal when the file has failed, or when other servers have taken over the
// studies of this one.
func (o *opened) watch(ctx context.Context, fatal context.CancelCauseFunc) {
	var failed, buried <-chan struct{}
	if o.file != nil {
		failed = o.file.Failed()
	}
	if o.member != nil {
		buried = o.member.Buried()
	}
	select {
	case <-failed:
		fatal(o.file.Failure())
	case <-buried:
		fatal(o.member.Err())
	case <-ctx.Done():
	}
}

// checkOthers refuses this server if it and one that was there before cannot forward calls
// to each other. If that one does not renew its lease, for example because it was killed, it
// waits for the lease's end.
func (c *Config) checkOthers(ctx context.Context, shared store.Shared, self store.ServerID) error {
	servers, err := shared.Servers(ctx)
	if err != nil {
		return err
	}
	for _, v := range servers {
		if v.ID >= self || v.Address != "" && c.Advertise != "" {
			continue
		}
		c.notice(fmt.Sprintf("Waiting up to %v to see whether server %d of the database is alive.", v.TTL, v.ID))
		gone, err := store.Outlive(ctx, shared, v)
		if err != nil {
			return err
		}
		if !gone {
			return wrong("Advertise %q: server %d, with the address %q, uses this database too, and servers of one database must reach each other; start each of them with Advertise, such as tuner-1.example.org:7070, or stop the other one", c.Advertise, v.ID, v.Address)
		}
	}
	return nil
}

// spread returns the service for all callers, over the local one, and the number of calls
// that it forwarded to other servers.
func (c *Config) spread(local *engine.Engine, m *lease.Member) (svc tuner.Service, forwarded func() int64) {
	if m == nil {
		return local, func() int64 { return 0 }
	}
	o := c.Server
	options := client.Options{
		Plaintext: o.CertFile == "", CAFile: o.ClientCAFile, CertFile: o.CertFile, KeyFile: o.KeyFile,
		RetryFor: -1, MaxRecvBytes: o.Limits.MaxSendBytes, MaxSendBytes: o.Limits.MaxRecvBytes,
	}
	all := cluster.New(local, m, cluster.Options{
		Dial:      func(address string) (tuner.Service, error) { return client.Dial(address, options) },
		Forwarded: server.Forwarded, PassOn: server.PassOn, Logger: o.Logger,
	})
	return all, all.Forwarded
}

// registerCluster adds the metrics of a server among others.
func registerCluster(r prometheus.Registerer, m *lease.Member, forwarded func() int64) error {
	alive := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tuner_server_alive", Help: "1 while the server may answer, and 0 while its lease on the database is over.",
	}, func() float64 {
		if m == nil || m.Alive() {
			return 1
		}
		return 0
	})
	calls := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "tuner_forwarded_total", Help: "Calls that were forwarded to other servers of the database.",
	}, func() float64 { return float64(forwarded()) })
	return errors.Join(r.Register(alive), r.Register(calls))
}

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
