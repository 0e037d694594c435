package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/katib"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// katibFace holds the flags of a service for Katib.
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
	// Katib gives a suggestion service 100 MiB unless its configuration says otherwise.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40)
	}
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
