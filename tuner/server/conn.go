package server

import (
	"cmp"
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// Conn is a connection through the pipe on behalf of a caller. Each call passes the gate.
func (p *Pipe) Conn(c Caller) grpc.ClientConnInterface { return pipeConn{p, c} }

type pipeConn struct {
	pipe   *Pipe
	caller Caller
}

func (c pipeConn) Invoke(ctx context.Context, method string, request, answer any, _ ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, err := c.pipe.Admit(ctx, c.caller, method)
	if err != nil {
		return err
	}
	return c.pipe.Call(ctx, method, request.(proto.Message), func(m proto.Message) error {
		proto.Merge(answer.(proto.Message), m)
		return nil
	})
}

// NewStream implements [grpc.ClientConnInterface], for methods with one request.
func (c pipeConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	admitted, err := c.pipe.Admit(ctx, c.caller, method)
	if err != nil {
		return nil, err
	}
	return &connStream{ctx: admitted, pipe: c.pipe, method: method, answers: make(chan proto.Message), ended: make(chan struct{})}, nil
}

// connStream is the client's end of a stream of answers. It ends with ctx at the latest.
type connStream struct {
	ctx     context.Context
	pipe    *Pipe
	method  string
	answers chan proto.Message
	ended   chan struct{}
	err     error // once ended is closed
}

func (s *connStream) Context() context.Context     { return s.ctx }
func (s *connStream) Header() (metadata.MD, error) { return metadata.MD{}, nil }
func (s *connStream) Trailer() metadata.MD         { return nil }
func (s *connStream) CloseSend() error             { return nil }

// SendMsg implements [grpc.ClientStream]. It begins the call.
func (s *connStream) SendMsg(request any) error {
	go func() {
		defer close(s.ended)
		s.err = s.pipe.Stream(s.ctx, s.method, request.(proto.Message), func(m proto.Message) error {
			if m == nil { // the server has accepted the call
				return nil
			}
			select {
			case s.answers <- m:
				return nil
			case <-s.ctx.Done():
				return s.ctx.Err()
			}
		})
	}()
	return nil
}

func (s *connStream) RecvMsg(into any) error {
	select {
	case m := <-s.answers:
		proto.Merge(into.(proto.Message), m)
		return nil
	case <-s.ended:
		return cmp.Or(s.err, io.EOF)
	}
}
