package katib

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "github.com/bkbtuner/bkb/proto/katib"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
)

// maxBytes is the longest request of Katib, which has all trials of an experiment. Katib
// keeps the suggestions of an experiment in one object of at most 1.5 MiB.
const maxBytes = 64 << 20

// maxCalls is the most calls at once. Katib's controller makes a few for each experiment.
const maxCalls = 256

// Config says where [Serve] listens. An empty address stands for none.
type Config struct {
	Suggestions, EarlyStopping string // host:port
	Options                    Options
	// OnListening is called with what is served at an address.
	OnListening func(what string, at net.Addr)
}

// ListenError refuses an address of a [Config].
type ListenError struct {
	Field, Address string
	Err            error
}

func (e *ListenError) Error() string {
	return fmt.Sprintf("%s %s: %v; give host:port with a free port", e.Field, e.Address, e.Err)
}

func (e *ListenError) Unwrap() error { return e.Err }

// Serve serves Katib until ctx ends or a server fails. Calls under way get some time then.
func Serve(ctx context.Context, svc tuner.Service, c Config) error {
	logger := c.Options.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options, guard := server.Strangers(ctx, server.Limits{MaxRecvBytes: maxBytes, MaxInFlightBytes: maxBytes, MaxInFlight: maxCalls}, logger)
	listen := func(field, address string) (*face, error) { return listen(field, address, options, guard) }
	var faces []*face
	defer func() {
		for _, f := range faces {
			f.listener.Close() // a second time unless an error came before it served
		}
	}()
	if c.Suggestions != "" {
		f, err := listen("Suggestions", c.Suggestions)
		if err != nil {
			return err
		}
		faces = append(faces, f)
		pb.RegisterSuggestionServer(f.grpc, NewSuggestion(svc, c.Options))
		c.OnListening("Katib", f.listener.Addr())
	}
	if c.EarlyStopping != "" {
		cluster, noCluster := InCluster(AccountDir)
		stop := func(context.Context, string) error { return noCluster }
		if noCluster == nil {
			stop = cluster.Stop
		} else {
			logger.Warn("trials cannot be marked as stopped early", "why", noCluster)
		}
		f, err := listen("EarlyStopping", c.EarlyStopping)
		if err != nil {
			return err
		}
		faces = append(faces, f)
		pb.RegisterEarlyStoppingServer(f.grpc, &EarlyStopping{Stop: stop, Logger: logger})
		c.OnListening("Katib's early stopping", f.listener.Addr())
	}
	return serve(ctx, faces)
}

// face is a gRPC server with its listener.
type face struct {
	listener net.Listener
	grpc     *grpc.Server
}

// listen listens on an address. The server answers Katib's probes.
func listen(field, address string, options []grpc.ServerOption, guard func(net.Listener) net.Listener) (*face, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, &ListenError{field, address, err}
	}
	s := grpc.NewServer(options...)
	h := health.NewServer()
	h.SetServingStatus(HealthService, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(s, h)
	return &face{guard(l), s}, nil
}

func serve(ctx context.Context, faces []*face) error {
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
