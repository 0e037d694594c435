package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// stream answers a call with a line for each message.
func (f *Face) stream(w http.ResponseWriter, r *http.Request, path string, m method, request proto.Message) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s, err := f.open(ctx, path, request)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	next := make(chan received)
	go receive(ctx, s, m, next)
	var got received
	arrived := true
	select {
	case got = <-next:
		if got.err != nil && !errors.Is(got.err, io.EOF) {
			f.fail(w, r, got.err) // with the status of HTTP for it
			return
		}
	case <-time.After(firstWait):
		arrived = false
	case <-ctx.Done(): // the caller left
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	out := &lines{w: w, control: http.NewResponseController(w), timeout: f.writeTimeout}
	quiet := time.NewTicker(f.silence)
	defer quiet.Stop()
	for {
		switch {
		case !arrived:
		case errors.Is(got.err, io.EOF):
			return
		case got.err != nil:
			out.write(`{"error":`, statusJSON(f.statusOf(r, got.err)), "}\n")
			return
		default:
			out.write(`{"result":`, got.message, "}\n")
		}
		if out.flush(); out.err != nil {
			return
		}
		select {
		case got = <-next:
			arrived = true
			quiet.Reset(f.silence)
		case <-quiet.C:
			arrived = false
			out.write("", nil, "\n")
		case <-ctx.Done():
			return
		}
	}
}

// open begins a stream. It returns when the server has accepted or refused it.
func (f *Face) open(ctx context.Context, path string, request proto.Message) (grpc.ClientStream, error) {
	s, err := f.pipe.Conn().NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, path)
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := s.CloseSend(); err != nil {
		return nil, err
	}
	_, err = s.Header() // nil without an error if there is none: RecvMsg says why
	return s, err
}

// received is a message in JSON, or the end of a stream.
type received struct {
	message []byte
	err     error
}

// receive hands on what a stream brings, up to its end or that of ctx.
func receive(ctx context.Context, s grpc.ClientStream, m method, to chan<- received) {
	for {
		var got received
		message := m.answer.New().Interface()
		if got.err = s.RecvMsg(message); got.err == nil {
			got.message, got.err = encode(message)
		}
		select {
		case to <- got:
		case <-ctx.Done():
			return
		}
		if got.err != nil {
			return
		}
	}
}

// lines writes lines until one fails.
type lines struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	err     error
}

func (l *lines) write(before string, data []byte, after string) {
	if l.err == nil {
		l.err = inPieces(l.w, append(append([]byte(before), data...), after...), l.timeout)
	}
}

// flush sends the lines written so far.
func (l *lines) flush() {
	if l.err == nil {
		l.err = errors.Join(l.control.SetWriteDeadline(time.Now().Add(l.timeout)), l.control.Flush())
	}
}
