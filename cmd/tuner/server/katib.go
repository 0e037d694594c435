package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	pb "github.com/bkbtuner/bkb/proto/katib"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/katib"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// maxKatibBytes is the longest request of Katib, which has all trials of an experiment. Katib
// keeps the suggestions of an experiment in one object of at most 1.5 MiB.
const maxKatibBytes = 64 << 20

// katibFace holds the flags of a service for Katib.
type katibFace struct {
	listen, stopping string
	options          katib.Options
}

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
		fs.StringVar(&k.listen, "listen", "127.0.0.1:6789", "`host:port` for suggestions, empty for none")
		fs.StringVar(&k.stopping, "early-stopping", "", "`host:port` for early stopping, such as 0.0.0.0:6788 (default none)")
		fs.StringVar(&k.options.Prefix, "prefix", "katib.", "`text` before the name of an Experiment in the name of its study")
		fs.DurationVar(&k.options.Lease, "lease", katib.DefaultLease, "longest time of a trial")
		g.ProposeFlag(fs)
	})
	return cmd
}

func (k *katibFace) check() error {
	switch {
	case k.listen == "" && k.stopping == "":
		return cli.Usagef("--listen is empty and there is no --early-stopping, so there is nothing to serve; give one of them")
	case k.options.Lease <= 0:
		return cli.Usagef("--lease %s: must be above 0, such as %s", k.options.Lease, katib.DefaultLease)
	}
	return nil
}

func (k *katibFace) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service) error {
	logger := g.Logger(cmd, slog.LevelWarn)
	k.options.Logger = logger
	// Katib gives a suggestion service 100 MiB unless its configuration says otherwise.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40)
	}
	var faces []*katibServer
	defer func() {
		for _, f := range faces {
			f.listener.Close() // a second time unless an error came before it served
		}
	}()
	if k.listen != "" {
		f, err := listenKatib("--listen", k.listen)
		if err != nil {
			return err
		}
		faces = append(faces, f)
		pb.RegisterSuggestionServer(f.grpc, katib.NewSuggestion(svc, k.options))
		g.Note(cmd, "Listening for Katib on %s", f.listener.Addr())
	}
	if k.stopping != "" {
		cluster, noCluster := katib.InCluster(katib.AccountDir)
		stop := func(context.Context, string) error { return noCluster }
		if noCluster == nil {
			stop = cluster.Stop
		} else {
			logger.Warn("trials cannot be marked as stopped early", "why", noCluster)
		}
		f, err := listenKatib("--early-stopping", k.stopping)
		if err != nil {
			return err
		}
		faces = append(faces, f)
		pb.RegisterEarlyStoppingServer(f.grpc, &katib.EarlyStopping{Stop: stop, Logger: logger})
		g.Note(cmd, "Listening for Katib's early stopping on %s", f.listener.Addr())
	}
	g.Note(cmd, "Hit Ctrl-C to quit.")
	return serveKatib(ctx, faces)
}

// katibServer is a gRPC server with its listener.
type katibServer struct {
	listener net.Listener
	grpc     *grpc.Server
}

// listenKatib listens on the address of a flag. The server answers Katib's probes.
func listenKatib(flag, address string) (*katibServer, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, cli.Usagef("%s %s: %v; give host:port with a free port", flag, address, err)
	}
	s := grpc.NewServer(grpc.MaxRecvMsgSize(maxKatibBytes))
	h := health.NewServer()
	h.SetServingStatus(katib.HealthService, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(s, h)
	return &katibServer{l, s}, nil
}

// serveKatib serves until ctx ends or a server fails. Calls under way get some time.
func serveKatib(ctx context.Context, faces []*katibServer) error {
	ended := make(chan error, len(faces))
	for _, f := range faces {
		go func() { ended <- f.grpc.Serve(f.listener) }()
	}
	var err error
	left := len(faces)
	select {
	case <-ctx.Done():
	case err = <-ended:
		left--
	}
	for _, f := range faces {
		late := time.AfterFunc(10*time.Second, f.grpc.Stop)
		f.grpc.GracefulStop()
		late.Stop()
	}
	for range left {
		err = errors.Join(err, <-ended)
	}
	return err
}
