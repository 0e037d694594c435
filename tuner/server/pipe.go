package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/grpc/test/bufconn"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// Pipe leads into the server from within the process, for faces in other protocols such as
// package web. The calls on it have the permissions, limits, log lines and metrics of
// calls over gRPC.
//
// Calls with one answer run on the caller's goroutine, see direct. Streams end at a gRPC
// server of the pipe's own, with the same handlers and interceptors, so that limits of one
// connection do not limit all its callers together. The gate of both is [Pipe.Admit], which
// the face calls before it reads a body. Admit gives each call a number, which travels in
// the metadata and leads to the caller's identity, address and certificate. The gRPC server
// of the network does not read that number.
type Pipe struct {
	server   *Server
	grpc     *grpc.Server
	listener *bufconn.Listener
	conn     *grpc.ClientConn
	direct   *direct
	last     atomic.Uint64
	admitted sync.Map // of admission, by number
}

// admission is a call that passed the gate.
type admission struct {
	peer    *peer.Peer
	headers metadata.MD
	id      identity
}

// let adds to the context of a call what the gate and all behind it go by.
func (a admission) let(ctx context.Context) context.Context {
	return context.WithValue(metadata.NewIncomingContext(peer.NewContext(ctx, a.peer), a.headers), identityKey{}, a.id)
}

// Caller is what a face knows of a caller.
type Caller struct {
	Addr          net.Addr             // of the connection, as a listener of [Pipe.Guard] has it
	TLS           *tls.ConnectionState // nil without TLS
	Authorization []string             // the headers of this name
	TraceParent   []string             // the headers of this name
}

const (
	admissionKey = "tuner-admission"
	pipeBytes    = 256 << 10 // one direction's buffer
)

// Pipe returns the server's pipe, which works while the server serves. It must be called
// before [Server.Serve].
func (s *Server) Pipe() (*Pipe, error) {
	if s.pipe != nil {
		return s.pipe, nil
	}
	if s.served.Load() {
		return nil, errors.New("the pipe must be made before the server serves")
	}
	p := &Pipe{server: s, listener: bufconn.Listen(pipeBytes)}
	conn, err := grpc.NewClient("passthrough:///pipe",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return p.listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(s.options.Limits.MaxSendBytes)),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, err
	}
	p.conn, p.direct = conn, newDirect(p)
	p.grpc = s.newGRPC(append(s.callOptions(), grpc.InTapHandle(p.gate)))
	s.pipe = p
	return p, nil
}

// Conn is the connection for calls with a context of [Pipe.Admit].
func (p *Pipe) Conn() grpc.ClientConnInterface { return p.direct }

// Admit passes a call through the gate and returns the context for it. The context that
// it is given must end with the call.
func (p *Pipe) Admit(ctx context.Context, c Caller, method string) (context.Context, error) {
	a := admission{peer: &peer.Peer{Addr: c.Addr}, headers: metadata.MD{"authorization": c.Authorization, wire.TraceHeader: c.TraceParent}}
	if c.TLS != nil {
		a.peer.AuthInfo = credentials.TLSInfo{State: *c.TLS}
	}
	gated, err := p.server.gate(a.let(ctx), &tap.Info{FullMethodName: method})
	if err != nil {
		return nil, err
	}
	a.id, _ = identityOf(gated)
	number := strconv.FormatUint(p.last.Add(1), 10)
	p.admitted.Store(number, a)
	context.AfterFunc(ctx, func() { p.admitted.Delete(number) })
	return metadata.NewOutgoingContext(ctx, metadata.Pairs(admissionKey, number)), nil
}

// Reserve reserves memory for a request of so many bytes, or refuses its call, which
// [Pipe.Admit] must have admitted with ctx. A face decodes a request before gRPC counts
// it. The memory is reserved until leave is called.
func (p *Pipe) Reserve(ctx context.Context, bytes int64) (leave func(), err error) {
	if bytes <= smallRequest {
		return func() {}, nil
	}
	ctx, err = p.enter(ctx)
	if err != nil {
		return nil, err
	}
	return p.server.enterMemory(ctx, inflated(bytes, p.server.options.Memory))
}

// enter turns the context of a caller into that of its call in the server.
func (p *Pipe) enter(ctx context.Context) (context.Context, error) {
	out, _ := metadata.FromOutgoingContext(ctx)
	return p.let(ctx, out.Get(admissionKey))
}

// gate lets in the calls that [Pipe.Admit] admitted.
func (p *Pipe) gate(ctx context.Context, _ *tap.Info) (context.Context, error) {
	return p.let(ctx, metadata.ValueFromIncomingContext(ctx, admissionKey))
}

// let adds what is known of a call with these numbers to its context.
func (p *Pipe) let(ctx context.Context, numbers []string) (context.Context, error) {
	for _, number := range numbers {
		if a, ok := p.admitted.Load(number); ok {
			return a.(admission).let(ctx), nil
		}
	}
	return nil, status.Error(codes.Canceled, "the call ended before it began")
}

// GracefulStop refuses new calls and waits for those that run.
func (p *Pipe) GracefulStop() {
	p.direct.close()
	p.grpc.GracefulStop()
	p.direct.running.Wait()
}

// Stop ends the calls that run.
func (p *Pipe) Stop() {
	p.direct.close()
	p.direct.stop()
	p.grpc.Stop()
}

// Guard returns a listener for a face. It has the limits on connections and the
// certificates of the server's own, and is refused where those would be.
func (p *Pipe) Guard(l net.Listener) (net.Listener, error) {
	s := p.server
	if err := s.checkExposure(l.Addr().String(), remote(l)); err != nil {
		return nil, err
	}
	config, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	l = s.held.over(&limitedListener{l, s.connections})
	if config != nil {
		l = tls.NewListener(l, config)
	}
	return l, nil
}

// Probes adds GET /healthz, which answers while the process does, and GET /readyz, which
// tells whether the server serves. They need no permission.
func (p *Pipe) Probes(mux *http.ServeMux) { p.server.probes(mux) }

// Panicked logs and counts a panic of a face, and returns the error for the caller.
func (p *Pipe) Panicked(value any) error { return p.server.panicked(context.Background(), value) }
