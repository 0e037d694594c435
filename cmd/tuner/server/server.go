// Package server has the commands that serve the studies, start workers and manage tokens.
package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/katib"
	"github.com/bkbtuner/bkb/tuner/mcp"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/serve"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return slices.Concat(
		cli.Connects(cli.ToPlace, newServe(g)),
		cli.Connects(cli.ToService, newUI(g), newMCP(g), newKatib(g)),
		[]*cobra.Command{newWorkers(g)},
		cli.Connects(cli.ToServer, newHealth(g)),
		[]*cobra.Command{newToken(g)},
	)
}

// Topics returns the help pages about servers.
func Topics() []*cobra.Command { return []*cobra.Command{newLimitsTopic(), newServersTopic()} }

func newLimitsTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Limits of a server",
		Long: `A server refuses what exceeds its limits. These are flags of tuner serve. A negative
number means no limit.

The limits of calls, watches and rates protect the clients from each other, and the last
tenth of each is for admins. The limits of bytes and reports protect the disk. Writes stop
16 MiB before --max-file.`,
		Example: "  tuner serve --rate 500 --max-file 17179869184",
	}
	var s serving
	s.addLimits(cmd)
	return cmd
}

func newServersTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "Several servers of one database",
		Long: `Several servers can serve one PostgreSQL database. Each answers every call, and clients
can use any of them or a load balancer. With --server A,B,C, or a name with several
addresses, they go to the next server when theirs is gone. A study has one server at a
time, and the others forward its calls there. If a server dies, the others take over its
studies. See docs/deploy.md.

Servers on other machines need TLS and client certificates with the scope peer. They
use --cert and --key as their own, and --client-ca for the certificates of the others.`,
		Example: `  tuner serve --store postgres://tuner@db1,db2/tuner --listen 0.0.0.0:7070 \
    --advertise tuner-1.example.org:7070 --cert server.pem --key server.key \
    --tokens tokens.json --client-ca ca.pem \
    --client-scope tuner-1.example.org=peer \
    --client-scope tuner-2.example.org=peer`,
	}
	var s serving
	s.addServers(cmd)
	return cmd
}

func newHealth(g *cli.Globals) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Probe a server",
		Long: `Health asks a server once whether it serves, and prints SERVING or NOT_SERVING.

It is for probes of Kubernetes, systemd and load balancers. It needs no token. The exit
code is 0 if the server serves, and another one in all other cases.`,
		Example: "  tuner --server localhost:7070 health\n  tuner --server node7:7070 --ca ca.pem health --timeout 1s",
		Args:    cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			address := g.Address()
			if address == "" {
				return cli.Usagef("health needs a server: name it with --server or in TUNER_SERVER")
			}
			if timeout <= 0 {
				return cli.Usagef("--timeout must be above 0")
			}
			c, err := g.Dial(cmd, address)
			if err != nil {
				return err
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			serving, err := c.Healthy(ctx)
			if err != nil {
				return err
			}
			if !serving {
				fmt.Fprintln(cmd.OutOrStdout(), "NOT_SERVING")
				return cli.Exit(cli.ExitFailure, fmt.Errorf("%s answers that it does not serve", address))
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "SERVING")
			return err
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "longest wait for the answer")
	return cmd
}

const defaultUI = "127.0.0.1:7071"

func newUI(g *cli.Globals) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the studies in a browser",
		Long: `Ui serves a page with the studies of the file, or of the server given with --server, to
browsers on this machine. It prints the address to open, and ends with Ctrl-C.

The address holds a key, because other users of the machine can reach the port too.
The page acts with the permissions of your token. It leaves the file to other commands
while it does not read it.

A server has the same page with tuner serve --http.`,
		Example: `  tuner ui
  tuner ui --server tuner.example.com:7070 --token-file token`,
		Args: cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runUI(cmd, g, address)
		},
	}
	cmd.Flags().StringVar(&address, "http", defaultUI, "`host:port` for the page, on this machine")
	return cmd
}

func runUI(cmd *cobra.Command, g *cli.Globals, address string) (err error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return cli.Usagef("--http %s: must be host:port on this machine, such as %s; for other machines use tuner serve --http", address, defaultUI)
	}
	svc, err := g.Open(cmd, cli.MustExist)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	if err := tryService(cmd.Context(), svc); err != nil { // before a browser shows it
		return err
	}
	err = serve.Page(cmd.Context(), svc, address, g.Connection(), strings.Fields(cli.Version())[0], g.Logger(cmd, slog.LevelWarn), func(url string) {
		fmt.Fprintln(cmd.OutOrStdout(), url)
	})
	return inFlags(err)
}

// tryService makes a cheap call. Not each token may list the studies.
func tryService(ctx context.Context, svc tuner.Service) error {
	if far, ok := svc.(server.Recogniser); ok {
		_, err := far.GetCaller(ctx)
		return err
	}
	_, _, err := svc.Studies(ctx, "", 1)
	return err
}

func newMCP(g *cli.Globals) *cobra.Command {
	var worker string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the studies to an agent",
		Long: `Mcp serves the studies of the file, the database or the server to an agent by the Model
Context Protocol, over stdin and stdout, until stdin ends. Agents such as Claude Code,
Cursor and VS Code start it themselves, see docs/agents.md.

Its tools create studies, ask, tell, report, show, predict and plot. They cannot delete.
tuner serve --http serves them too, under /mcp.`,
		Example: `  claude mcp add tuner -- tuner mcp --db ~/tuner.db
  tuner mcp --server tuner.example.org:7070 --token-file token`,
		Args: cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.With(cmd, cli.MayCreate, func(ctx context.Context, svc tuner.Service) error {
				cli.OutliveReaders(cmd)
				return mcp.Run(ctx, svc, cmd.InOrStdin(), cmd.OutOrStdout(), mcp.Options{Version: strings.Fields(cli.Version())[0], Worker: cmp.Or(worker, "agent-"+rand.Text()[:8])})
			})
		},
	}
	cmd.Flags().StringVar(&worker, "worker", "", "`name` under which the agent asks (default a random one)")
	g.ProposeFlag(cmd.Flags())
	return cmd
}

type katibFace struct{ katib.Config }

func newKatib(g *cli.Globals) *cobra.Command {
	var k katibFace
	cmd := &cobra.Command{
		Use:   "katib",
		Short: "Serve suggestions and early stopping to Katib",
		Long: `Katib serves the algorithms of Katib until Ctrl-C or SIGTERM. Katib starts it as the
container of an algorithm, see docs/katib.md. Katib runs the trials and counts them.

The studies are those of the file, the server or the database. The study of an
Experiment is named after it, behind --prefix. Nothing else may add trials to it. The
settings of the algorithm are random_state and the options of the proposer.

With --early-stopping it serves the median rule of Katib too, or alone with --listen "".
Only a pod can mark trials as stopped early.

Katib's clients have neither TLS nor tokens. Let only Katib's controller and the pods of
the trials reach the ports.`,
		Example: `  tuner katib --listen 0.0.0.0:6789 --server tuner.tuner.svc:7070 --ca ca.pem
  tuner katib --listen 0.0.0.0:6789 --db /opt/katib/data/tuner.db
  tuner katib --listen "" --early-stopping 0.0.0.0:6788`,
		Args: cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := k.check(); err != nil {
				return err
			}
			return g.With(cmd, cli.MayCreate, func(ctx context.Context, svc tuner.Service) error {
				return k.run(ctx, g, cmd, svc)
			})
		},
	}
	cli.FlagGroup(cmd, cli.Group{Title: "Katib"}, func(fs *pflag.FlagSet) {
		fs.StringVar(&k.Suggestions, "listen", "127.0.0.1:6789", "`host:port` for suggestions, empty for none")
		fs.StringVar(&k.EarlyStopping, "early-stopping", "", "`host:port` for early stopping, such as 0.0.0.0:6788 (default none)")
		fs.StringVar(&k.Options.Prefix, "prefix", "katib.", "`text` before the name of an Experiment in the name of its study")
		fs.DurationVar(&k.Options.Lease, "lease", katib.DefaultLease, "longest time of a trial")
		g.ProposeFlag(fs)
	})
	return cmd
}

func (k *katibFace) check() error {
	switch {
	case k.Suggestions == "" && k.EarlyStopping == "":
		return cli.Usagef("--listen is empty and there is no --early-stopping, so there is nothing to serve; give one of them")
	case k.Options.Lease <= 0:
		return cli.Usagef("--lease %s: must be above 0, such as %s", k.Options.Lease, katib.DefaultLease)
	}
	return nil
}

func (k *katibFace) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service) error {
	cli.OutliveReaders(cmd)
	memlimit.PaceCollector() // Katib gives a suggestion service 100 MiB by default
	k.Options.Logger = g.Logger(cmd, slog.LevelWarn)
	k.OnListening = func(what string, at net.Addr) { g.Note(cmd, "Listening for %s on %s", what, at) }
	g.Note(cmd, "Hit Ctrl-C to quit.")
	err := katib.Serve(ctx, svc, k.Config)
	if taken := (*katib.ListenError)(nil); errors.As(err, &taken) {
		flag := map[string]string{"Suggestions": "--listen", "EarlyStopping": "--early-stopping"}[taken.Field]
		return cli.Usagef("%s%s", flag, strings.TrimPrefix(taken.Error(), taken.Field))
	}
	return err
}
