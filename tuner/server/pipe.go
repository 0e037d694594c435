package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// Pipe leads into the server from within the process, for faces in other protocols such as
// package web. A call runs on the caller's goroutine. It passes the same interceptors and
// handlers as a call over gRPC, so it has the same permissions, limits, log lines and metrics.
// Its gate is [Pipe.Admit], which the face calls before it reads a body.
type Pipe struct {
	server  *Server
	unary   map[string]grpc.MethodHandler // by full name
	streams map[string]grpc.StreamHandler
	ended   context.Context
	end     context.CancelFunc // ends the calls that run

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// Caller is what a face knows of a caller.
type Caller struct {
	Addr          net.Addr             // of the connection, as a listener of [Pipe.Guard] has it
	TLS           *tls.ConnectionState // nil without TLS
	Authorization []string             // the headers of this name
	TraceParent   []string             // the headers of this name
}

// Pipe returns the server's pipe, which works while the server serves. It must be called
// before [Server.Serve].
func (s *Server) Pipe() (*Pipe, error) {
	if s.pipe != nil {
		return s.pipe, nil
	}
	if s.served.Load() {
		return nil, errors.New("the pipe must be made before the server serves")
	}
	p := &Pipe{server: s, unary: make(map[string]grpc.MethodHandler), streams: make(map[string]grpc.StreamHandler)}
	p.ended, p.end = context.WithCancel(context.Background())
	desc := s.handlers.desc()
	for _, m := range desc.Methods {
		p.unary["/"+desc.ServiceName+"/"+m.MethodName] = m.Handler
	}
	for _, m := range desc.Streams {
		p.streams["/"+desc.ServiceName+"/"+m.StreamName] = m.Handler
	}
	s.pipe = p
	return p, nil
}

// Admit passes a call through the gate and returns the context for it. The context that
// it is given must end with the call.
func (p *Pipe) Admit(ctx context.Context, c Caller, method string) (context.Context, error) {
	from := &peer.Peer{Addr: c.Addr}
	if c.TLS != nil {
		from.AuthInfo = credentials.TLSInfo{State: *c.TLS}
	}
	headers := metadata.MD{"authorization": c.Authorization, wire.TraceHeader: c.TraceParent}
	return p.server.gate(metadata.NewIncomingContext(peer.NewContext(ctx, from), headers), &tap.Info{FullMethodName: method})
}

// Reserve reserves memory for a request of so many bytes, or refuses its call, which
// [Pipe.Admit] must have admitted with ctx. A face decodes a request before it is counted.
// The memory is reserved until leave is called.
func (p *Pipe) Reserve(ctx context.Context, bytes int64) (leave func(), err error) {
	if bytes <= smallRequest {
		return func() {}, nil
	}
	return p.server.enterMemory(ctx, inflated(bytes, p.server.options.Memory))
}

// Call makes a call with one answer, with a context of [Pipe.Admit]. use gets the answer, while
// the call still has its place within the limits. So a face can take long to write it in its own
// form.
func (p *Pipe) Call(ctx context.Context, method string, request proto.Message, use func(proto.Message) error) error {
	handler, ok := p.unary[method]
	if !ok {
		return unknownMethod(method)
	}
	ctx, end, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	used := func(ctx context.Context, _ any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return p.server.unary(ctx, request, info, func(ctx context.Context, request any) (any, error) {
			answer, err := next(ctx, request)
			if err == nil {
				err = p.checkAnswer(answer)
			}
			if err == nil {
				err = use(answer.(proto.Message))
			}
			return answer, err
		})
	}
	_, err = handler(p.server.handlers, ctx, func(any) error { return p.pass(request, request) }, used)
	return err
}

// Streams tells whether a method has a stream of answers.
func (p *Pipe) Streams(method string) bool { return p.streams[method] != nil }

// Stream makes a call with a stream of answers. send gets each of them. Before the first one,
// it gets nil once the server has accepted the call.
func (p *Pipe) Stream(ctx context.Context, method string, request proto.Message, send func(proto.Message) error) error {
	handler, ok := p.streams[method]
	if !ok {
		return unknownMethod(method)
	}
	ctx, end, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	begin := sync.OnceValue(func() error { return send(nil) })
	return p.server.stream(p.server.handlers, &pipeStream{ctx, p, request, begin, send}, &grpc.StreamServerInfo{FullMethod: method, IsServerStream: true}, handler)
}

func unknownMethod(method string) error {
	return status.Errorf(codes.Unimplemented, "unknown method %.100q", method)
}

// pass counts a request and copies it for a handler, if that does not use it itself.
func (p *Pipe) pass(request proto.Message, into any) error {
	size, most := proto.Size(request), p.server.options.Limits.MaxRecvBytes
	if size > most {
		return tooLong("request", size, most, "send it in parts")
	}
	if p.server.bytes.take(into, size) && into != request { // or else the chain refuses it
		proto.Merge(into.(proto.Message), request)
	}
	return nil
}

// checkAnswer refuses an answer that is too long.
func (p *Pipe) checkAnswer(answer any) error {
	size, most := proto.Size(answer.(proto.Message)), p.server.options.Limits.MaxSendBytes
	if size > most {
		return tooLong("answer", size, most, "ask for a part")
	}
	return nil
}

// tooLong refuses a message as gRPC would.
func tooLong(what string, size, most int, remedy string) error {
	return wire.Exhausted(fmt.Sprintf("the %s has %d bytes, more than the limit of %d bytes, so %s", what, size, most, remedy), 0).Err()
}

// pipeStream is the server's end of a stream of answers.
type pipeStream struct {
	ctx     context.Context
	pipe    *Pipe
	request proto.Message // nil once it is received
	begin   func() error
	send    func(proto.Message) error
}

func (s *pipeStream) Context() context.Context     { return s.ctx }
func (s *pipeStream) SetHeader(metadata.MD) error  { return nil }
func (s *pipeStream) SendHeader(metadata.MD) error { return s.begin() }
func (s *pipeStream) SetTrailer(metadata.MD)       {}

func (s *pipeStream) RecvMsg(into any) error {
	if s.request == nil {
		return io.EOF
	}
	request := s.request
	s.request = nil
	return s.pipe.pass(request, into)
}

func (s *pipeStream) SendMsg(answer any) error {
	if err := cmp.Or(s.begin(), s.pipe.checkAnswer(answer), s.ctx.Err()); err != nil {
		return err
	}
	return s.send(answer.(proto.Message))
}

// begin counts a call that runs until end is called, or refuses it if the server stops.
func (p *Pipe) begin(ctx context.Context) (in context.Context, end func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, wire.NewStatus(codes.Unavailable, tuner.Unavailable, errStopping.Error()).Err()
	}
	p.running.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(p.ended, cancel)
	return ctx, func() { stop(); cancel(); p.running.Done() }, nil
}

// GracefulStop refuses new calls and waits for those that run.
func (p *Pipe) GracefulStop() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.running.Wait()
}

// Stop ends the calls that run.
func (p *Pipe) Stop() {
	p.end()
	p.GracefulStop()
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
	l = &limitedListener{l, s.connections}
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
