package server

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/optuna"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// optunaPage is the page about Optuna's storage.
var optunaPage = cli.Group{Title: "Optuna", See: "tuner help optuna"}

// optunaFace are the flags of a server for Optuna.
type optunaFace struct {
	address string
	stale   time.Duration

	listener net.Listener // nil without the flag
	face     *optuna.Face
	work     sync.WaitGroup
}

func (o *optunaFace) flags(f *pflag.FlagSet) {
	f.StringVar(&o.address, "optuna", "", "`host:port` or unix:path for Optuna's GrpcStorageProxy, without TLS and tokens")
	f.DurationVar(&o.stale, "optuna-stale", 0, "time without a change after which a running trial of Optuna fails (default never)")
}

// check refuses flags that have no effect.
func (o *optunaFace) check() error {
	switch {
	case o.stale < 0:
		return cli.Usagef("--optuna-stale %s: must be positive, such as 24h", o.stale)
	case o.stale > 0 && o.address == "":
		return cli.Usagef("--optuna-stale needs --optuna, such as --optuna 127.0.0.1:13000")
	}
	return nil
}

// options adds to the options of the service what the face needs.
func (o *optunaFace) options(s *tuner.Options) {
	if o.address != "" {
		s.Foreign = optuna.NewState
	}
}

// open prepares the face before the server serves on the listener.
func (o *optunaFace) open(srv *server.Server, svc *tuner.Tuner, listener net.Listener, logger *slog.Logger) error {
	if o.address == "" {
		return nil
	}
	o.listener = listener
	options := srv.Options()
	o.face = optuna.New(svc, optuna.Options{Memory: options.Memory, Logger: logger})
	if options.TokenFile != "" || options.ClientCAFile != "" {
		logger.Warn("clients of Optuna send no token, so every process on this machine can change the studies of Optuna", "address", addressText(o.listener))
	}
	return srv.Host(server.Guest{Name: "optuna", Service: &pb.StorageService_ServiceDesc, Handler: o.face, Subject: optuna.Subject}, o.listener)
}

// where is the address in the ready file.
func (o *optunaFace) where() string {
	if o.listener == nil {
		return ""
	}
	return addressText(o.listener)
}

// note is the line about Optuna beside the one about gRPC.
func (o *optunaFace) note() string {
	if o.listener == nil {
		return ""
	}
	return "\nListening for Optuna on " + o.where()
}

// serve fails stale trials until ctx ends.
func (o *optunaFace) serve(ctx context.Context) {
	if o.face != nil && o.stale > 0 {
		o.work.Go(func() { o.face.FailStale(ctx, o.stale) })
	}
}

func NewOptunaTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "optuna",
		Short: "Optuna's storage on a server",
		Long: `With tuner serve --optuna, scripts and dashboards of Optuna use the file of the server
as their storage, through Optuna's GrpcStorageProxy. See docs/optuna.md.

Optuna's clients send no token and use no TLS. So every process on this machine can
read and change the studies of Optuna, and no other studies. From other machines,
use a tunnel such as ssh -L.`,
		Example: "  tuner serve --optuna 127.0.0.1:13000",
	}
	var s serving
	cli.FlagGroup(cmd, optunaPage, s.optuna.flags)
	return cmd
}
