package server

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// direct runs the pipe's calls with one answer on the caller's goroutine. They go through
// the interceptors and count as bytes in flight, as those of a gRPC server. So the two
// transports of HTTP/2 and their goroutines cost a call nothing.
type direct struct {
	pipe        *Pipe
	methods     map[string]unary
	intercepted grpc.UnaryServerInterceptor
	ended       context.Context
	stop        context.CancelFunc // ends the calls that run

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// unary is a method with one answer.
type unary struct {
	service any
	desc    *grpc.MethodDesc
}

func newDirect(p *Pipe) *direct {
	s := p.server
	d := &direct{pipe: p, methods: make(map[string]unary), intercepted: inOrder(s.unaryChain())}
	d.ended, d.stop = context.WithCancel(context.Background())
	for service, desc := range map[any]*grpc.ServiceDesc{s.handlers: s.handlers.desc(), s.health: &healthpb.Health_ServiceDesc} {
		for i := range desc.Methods {
			d.methods["/"+desc.ServiceName+"/"+desc.Methods[i].MethodName] = unary{service, &desc.Methods[i]}
		}
	}
	return d
}

// inOrder returns an interceptor that calls others, the first one outermost.
func inOrder(all []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		for i := len(all) - 1; i >= 0; i-- {
			next := handler
			handler = func(ctx context.Context, request any) (any, error) { return all[i](ctx, request, info, next) }
		}
		return handler(ctx, request)
	}
}

// Invoke implements [grpc.ClientConnInterface]. The context must be of [Pipe.Admit].
func (d *direct) Invoke(ctx context.Context, method string, request, answer any, o ...grpc.CallOption) error {
	m, ok := d.methods[method]
	if !ok {
		return status.Errorf(codes.Unimplemented, "unknown method %.100q", method)
	}
	if !d.begin() {
		return wire.NewStatus(codes.Unavailable, tuner.Unavailable, errStopping.Error()).Err()
	}
	defer d.running.Done()
	ctx, err := d.pipe.enter(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ended, cancel)()
	limits := d.pipe.server.options.Limits
	size := proto.Size(request.(proto.Message))
	if size > limits.MaxRecvBytes {
		return tooLong("request", size, limits.MaxRecvBytes, "send it in parts")
	}
	got, err := m.desc.Handler(m.service, ctx, func(into any) error {
		if d.pipe.server.bytes.take(into, size) { // or else the chain refuses it
			proto.Merge(into.(proto.Message), request.(proto.Message))
		}
		return nil
	}, d.intercepted)
	if err != nil {
		return err
	}
	if size := proto.Size(got.(proto.Message)); size > limits.MaxSendBytes {
		return tooLong("answer", size, limits.MaxSendBytes, "ask for a part")
	}
	proto.Merge(answer.(proto.Message), got.(proto.Message))
	return nil
}

// NewStream implements [grpc.ClientConnInterface].
func (d *direct) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, o ...grpc.CallOption) (grpc.ClientStream, error) {
	return d.pipe.conn.NewStream(ctx, desc, method, o...)
}

// begin counts a call that runs, or returns false if the server stops.
func (d *direct) begin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.running.Add(1)
	}
	return !d.closed
}

// close refuses new calls.
func (d *direct) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// tooLong refuses a message as gRPC would.
func tooLong(what string, size, most int, remedy string) error {
	return wire.Exhausted(fmt.Sprintf("the %s has %d bytes, more than the limit of %d bytes, so %s", what, size, most, remedy), 0).Err()
}
