package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// errStopping is the cause of ended streams when the server stops.
var errStopping = errors.New("the server is stopping")

// Server serves a [tuner.Service] over gRPC. It can serve once.
type Server struct {
	options  Options
	log      *slog.Logger
	metrics  *metrics
	methods  map[string]wire.Method
	auth     *authenticator
	rates    *rates // by token or certificate
	failures *rates // of authentication, by address
	writes   *rates // bytes of changes, by token or certificate
	bytes    *bytesInFlight
	recheck  time.Duration // recheckInterval, except in tests
	inFlight atomic.Int64
	calls    tally // running calls by token or certificate
	studies  tally // running unary calls by study
	watches  tally // by token or certificate
	watched  tally // watches by study
	backups  tally

	healthWatches tally // by address
	connections   *connections
	notices       notices

	auditFile slog.Handler // nil for none, and set before serving
	grpc      *grpc.Server
	handlers  *handlers
	health    *health.Server
	pipe      *Pipe // nil unless something asked for it

	stopping context.Context // ends when streams must end
	stop     context.CancelFunc
	turns    *turns
	served   atomic.Bool

	readiness        sync.Mutex
	serving, unready bool
}

// New returns a server of a service. It reads certificates and tokens, and reports all
// errors in the options.
func New(service tuner.Service, o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("options of the server: %w", err)
	}
	o = o.withDefaults()
	s := &Server{
		options: o, log: o.Logger, methods: methods(), recheck: recheckInterval, health: health.NewServer(),
		studies: tally{each: "calls-per-study"}, watches: tally{each: "watches-per-token", all: "watches"}, watched: tally{each: "watches-per-study"},
		backups: tally{all: "backups"}, healthWatches: tally{each: "health-watches-per-address", all: "health-watches"},
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	var err error
	if s.metrics, err = newMetrics(o.Registry, s.methods); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	s.bytes = newBytesInFlight(o.Limits.MaxInFlightBytes, o.Memory, s.metrics.inFlightBytes.Set)
	s.turns = newTurns()
	s.rates = newRates(o.Limits.Rate, o.Limits.Burst, 2*MaxTokens)
	s.writes = newRates(o.Limits.WriteRate, int(16*o.Limits.WriteRate), 2*MaxTokens)
	s.connections = newConnections(o.Limits, s.metrics.connections, s.notice)
	s.failures = newRates(o.Limits.AuthFailureRate, int(o.Limits.AuthFailureRate), 10_000)
	s.auth, err = newAuthenticator(o, func(err error) {
		s.log.Error("reloading the tokens failed, so the old ones stay in use", "error", err)
	})
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	options, err := s.grpcOptions()
	if err != nil {
		return nil, err
	}
	s.handlers = &handlers{service: service, server: s}
	s.grpc = grpc.NewServer(options...)
	s.grpc.RegisterService(s.handlers.desc(), s.handlers)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	if o.Reflection {
		reflection.Register(s.grpc)
	}
	if err := checkComplete(s.grpc.GetServiceInfo(), s.methods); err != nil {
		return nil, err
	}
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	return s, nil
}

// Options returns the server's options with the defaults filled in.
func (s *Server) Options() Options { return s.options }

// Registry returns the server's metrics. You can register the service's own there.
func (s *Server) Registry() *prometheus.Registry { return s.options.Registry }

func (s *Server) grpcOptions() ([]grpc.ServerOption, error) {
	options := append(s.options.Limits.connectionOptions(),
		grpc.InTapHandle(s.gate),
		grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream),
		grpc.ForceServerCodecV2(newCodec(s.bytes)),
		grpc.MaxRecvMsgSize(s.options.Limits.MaxRecvBytes),
		grpc.MaxSendMsgSize(s.options.Limits.MaxSendBytes),
	)
	config, err := s.tlsConfig()
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	return options, err
}

// connectionOptions are the limits of connections over the network.
func (l Limits) connectionOptions() []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.MaxHeaderListSize(uint32(l.MaxHeaderBytes)),
		grpc.ConnectionTimeout(l.ConnectTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: l.MinPingInterval, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: l.MaxIdle, MaxConnectionAge: l.MaxAge, MaxConnectionAgeGrace: l.MaxAgeGrace,
			Time: l.PingInterval, Timeout: l.PingTimeout,
		}),
	}
	if l.MaxStreams >= 0 {
		options = append(options, grpc.MaxConcurrentStreams(uint32(l.MaxStreams)))
	}
	return options
}

// Serve serves until ctx ends, on a listener, or on Options.Address if it is nil, and on
// Options.MetricsAddress. It then stops as the package documentation says and returns nil.
// If serving fails, it stops likewise and returns the error. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) (err error) {
	o := &Opened{Listener: l}
	defer o.Close()
	if l == nil {
		if o.Listener, err = s.Listen(); err != nil {
			return err
		}
	}
	if err := s.openRest(o); err != nil {
		return err
	}
	return s.ServeOn(ctx, o)
}

// ServeOn is [Server.Serve] with what [Listen] opened, which it closes. A caller serves
// the further listeners itself.
func (s *Server) ServeOn(ctx context.Context, o *Opened) error {
	defer o.Close()
	if s.served.Swap(true) {
		return errors.New("a server serves once")
	}
	if err := s.checkExposure(o.Listener.Addr().String(), remote(o.Listener)); err != nil {
		return err
	}
	if o.audit != nil {
		s.auditFile = slog.NewJSONHandler(o.audit, nil)
	}
	metricsCtx, stopMetrics := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	running := 1
	s.log.Info("serving", "address", o.Listener.Addr().String(), "tls", s.options.tls(), "authentication", s.options.closed(), "max_memory", s.options.Memory.Bytes())
	go func() { ended <- s.grpc.Serve(&limitedListener{o.Listener, s.connections}) }()
	go s.connections.reap(s.stopping)
	if o.Metrics != nil {
		running++
		s.log.Info("serving metrics", "address", o.Metrics.Addr().String())
		go func() { ended <- s.serveMetrics(metricsCtx, o.Metrics) }()
	}
	s.setServing()
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
		running--
	}
	s.shutDown()
	stopMetrics()
	for range running {
		if e := <-ended; !errors.Is(e, grpc.ErrServerStopped) { // it was stopped before it began
			err = errors.Join(err, e)
		}
	}
	return err
}

// SetReady tells the server whether its store answers, which it does at first. While it does
// not, health checks answer NOT_SERVING. Calls are served all the same.
func (s *Server) SetReady(ready bool) {
	s.readiness.Lock()
	defer s.readiness.Unlock()
	s.unready = !ready
	s.showHealth()
}

// showHealth sets what health checks answer. The lock is held.
func (s *Server) showHealth() {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if s.serving && !s.unready {
		status = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus(pb.Tuner_ServiceDesc.ServiceName, status)
}

func (s *Server) setServing() {
	s.readiness.Lock()
	s.serving = true
	s.showHealth()
	s.readiness.Unlock()
	if s.options.OnServing != nil {
		s.options.OnServing()
	}
}

// stopper is a gRPC server, or the pipe.
type stopper interface {
	GracefulStop()
	Stop()
}

// each stops the gRPC server of the network and the pipe, both at once.
func (s *Server) each(do func(stopper)) {
	var all sync.WaitGroup
	all.Go(func() { do(s.grpc) })
	if s.pipe != nil {
		all.Go(func() { do(s.pipe) })
	}
	all.Wait()
}

// shutDown answers NOT_SERVING, waits a little, accepts no more calls, ends streams and
// waits for running calls. It ends those that do not finish in time.
func (s *Server) shutDown() {
	s.log.Info("stopping", "calls", s.inFlight.Load())
	s.health.Shutdown()
	time.Sleep(s.options.DrainDelay)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.each(stopper.GracefulStop)
	}()
	s.connections.cutSilent(false)
	s.stop()
	select {
	case <-done:
	case <-time.After(s.options.StopTimeout):
		s.log.Warn("calls did not finish in time", "calls", s.inFlight.Load())
		s.connections.cutSilent(true)
		go s.each(stopper.Stop) // the pipe waits for its calls
		select {
		case <-done:
		case <-time.After(s.options.StopTimeout):
			s.log.Error("calls do not end though their time is up; going without them", "calls", s.inFlight.Load())
		}
	}
	s.log.Info("stopped")
}
