package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/lease"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/cluster"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
)

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
