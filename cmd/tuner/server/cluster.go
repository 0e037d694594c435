package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/store/lease"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/cluster"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// serversPage is the page about several servers of one database.
var serversPage = cli.Group{Title: "Several servers", See: "tuner help servers"}

// clusterFace are the flags of a server that shares its database with others.
type clusterFace struct {
	advertise string
	takeover  time.Duration

	member *lease.Member    // nil for a file
	all    *cluster.Service // nil for a file
}

func (c *clusterFace) flags(f *pflag.FlagSet) {
	f.StringVar(&c.advertise, "advertise", "", "`host:port` where other servers of the database reach this one")
	f.DurationVar(&c.takeover, "takeover", lease.DefaultTTL, "time after which others take over the studies of a server that died")
}

// check refuses flags that have no effect, and servers that could not trust each other.
func (c *clusterFace) check(cmd *cobra.Command, database bool, o server.Options, optuna string) error {
	switch {
	case !database && c.advertise != "":
		return cli.Usagef("--advertise needs a database that servers share; give --store postgres://…")
	case !database && cmd.Flags().Changed("takeover"):
		return cli.Usagef("--takeover has no effect on a file; leave it out, or give --store postgres://…")
	case c.takeover < lease.MinTTL || c.takeover > lease.MaxTTL:
		return cli.Usagef("--takeover %v: must be %v to %v", c.takeover, lease.MinTTL, lease.MaxTTL)
	case c.advertise == "":
		return nil
	case optuna != "":
		return cli.Usagef("--optuna works with one server only, because Optuna's calls are not forwarded; leave out --advertise, or serve Optuna from a server with a file")
	}
	host, port, err := net.SplitHostPort(c.advertise)
	if ip := net.ParseIP(host); err != nil || host == "" || port == "" || port == "0" || ip != nil && ip.IsUnspecified() {
		return cli.Usagef("--advertise %q: must be host:port by which other servers reach this one, such as tuner-1.example.org:7070", c.advertise)
	}
	return c.checkTrust(o)
}

// checkTrust refuses servers that cannot identify each other.
func (c *clusterFace) checkTrust(o server.Options) error {
	const remedy = "add --cert, --key, --client-ca, and --client-scope NAME=peer for the names in the certificates of the servers"
	if o.CertFile == "" {
		if o.TokenFile != "" || o.ClientCAFile != "" {
			return cli.Usagef("--advertise needs TLS to forward the calls of known callers; %s", remedy)
		}
		return nil // every caller is an admin
	}
	for _, scope := range o.ClientScopes {
		if scope.Role == server.RolePeer && o.ClientCAFile != "" {
			return nil
		}
	}
	return cli.Usagef("--advertise needs the other servers' certificates to have the scope peer; %s", remedy)
}

// join makes this process one of the servers of a database.
func (c *clusterFace) join(ctx context.Context, st *postgres.Store, logger *slog.Logger) (*opened, error) {
	m, err := lease.Join(ctx, cli.Unbacked{Store: st}, lease.Options{Address: c.advertise, TTL: c.takeover, Logger: logger})
	if err != nil {
		return nil, err
	}
	c.member = m
	c.warn(ctx, logger)
	o := openedDatabase(st)
	o.Store = unbackedMember{Member: m}
	return o, nil
}

// warn says if calls cannot be forwarded between this server and another.
func (c *clusterFace) warn(ctx context.Context, logger *slog.Logger) {
	servers, err := c.member.Servers(ctx)
	if err != nil {
		return // calls will report it
	}
	for _, v := range servers {
		if v.ID != c.member.ID() && !v.Expired && (v.Address == "" || c.advertise == "") {
			logger.Warn("another server uses this database, and calls are not forwarded between the two; start both with --advertise", "server", v.ID, "address", v.Address)
		}
	}
}

// service is the service for all callers, over the local one.
func (c *clusterFace) service(local *tuner.Tuner, o server.Options, logger *slog.Logger) tuner.Service {
	if c.member == nil {
		return local
	}
	options := client.Options{
		Plaintext: o.CertFile == "", CAFile: o.ClientCAFile, CertFile: o.CertFile, KeyFile: o.KeyFile,
		RetryFor: -1, MaxRecvBytes: o.Limits.MaxSendBytes, MaxSendBytes: o.Limits.MaxRecvBytes,
	}
	c.all = cluster.New(local, c.member, cluster.Options{
		Dial:      func(address string) (cluster.Node, error) { return client.Dial(address, options) },
		Forwarded: server.Forwarded, PassOn: server.PassOn, Logger: logger,
	})
	return c.all
}

// register adds the metrics of a server among others.
func (c *clusterFace) register(r *prometheus.Registry) error {
	alive := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tuner_server_alive", Help: "1 while the server may answer, and 0 while its lease on the database is over.",
	}, func() float64 {
		if c.member == nil || c.member.Alive() {
			return 1
		}
		return 0
	})
	forwarded := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "tuner_forwarded_total", Help: "Calls that were forwarded to other servers of the database.",
	}, func() float64 {
		if c.all == nil {
			return 0
		}
		return float64(c.all.Forwarded())
	})
	return errors.Join(r.Register(alive), r.Register(forwarded))
}

// watch calls fatal when other servers have taken over the studies of this one.
func (c *clusterFace) watch(ctx context.Context, fatal context.CancelCauseFunc) {
	if c.member == nil {
		return
	}
	go func() {
		select {
		case <-c.member.Buried():
			fatal(cli.Exit(cli.ExitBuried, c.member.Err()))
		case <-ctx.Done():
		}
	}()
}

// unbackedMember is a database for the service of one of several servers.
type unbackedMember struct {
	*lease.Member
	cli.NoBackup
}

func NewServersTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "Several servers of one database",
		Long: `Several servers can serve one PostgreSQL database. Each answers every call, and clients
can use any of them or a load balancer. A study has one server at a time, and the
others forward its calls there. If a server dies, the others take over its studies.
See docs/deploy.md.

Servers on other machines need TLS and client certificates with the scope peer. They
use --cert and --key as their own, and --client-ca for the certificates of the others.`,
		Example: `  tuner serve --store postgres://tuner@db1,db2/tuner --listen 0.0.0.0:7070 \
    --advertise tuner-1.example.org:7070 --cert server.pem --key server.key \
    --tokens tokens.json --client-ca ca.pem \
    --client-scope tuner-1.example.org=peer \
    --client-scope tuner-2.example.org=peer`,
	}
	var s serving
	cli.FlagGroup(cmd, serversPage, s.cluster.flags)
	return cmd
}
