package web

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"google.golang.org/protobuf/proto"
)

// stream answers a call with a line for each message.
func (f *Face) stream(w http.ResponseWriter, r *http.Request, path string, request proto.Message) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	next := make(chan received)
	go f.receive(ctx, path, request, next)
	var got received
	select {
	case got = <-next:
	case <-ctx.Done(): // the caller left
		return
	}
	if got == (received{}) { // a message or an error may follow at once
		select {
		case got = <-next:
		case <-time.After(firstWait):
		case <-ctx.Done():
			return
		}
	}
	if got.err != nil && !errors.Is(got.err, io.EOF) {
		f.fail(w, r, got.err) // with the status of HTTP for it
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	out := &lines{w: w, control: http.NewResponseController(w), timeout: f.writeTimeout}
	quiet := time.NewTicker(f.silence)
	defer quiet.Stop()
	for {
		switch {
		case errors.Is(got.err, io.EOF):
			return
		case got.err != nil:
			out.write(`{"error":`, statusJSON(f.statusOf(r, got.err)), "}\n")
			return
		case got.message != nil:
			out.write(`{"result":`, *got.message, "}\n")
		}
		if out.flush(); out.err != nil {
			return
		}
		select {
		case got = <-next:
			quiet.Reset(f.silence)
		case <-quiet.C:
			got = received{}
			out.write("", nil, "\n")
		case <-ctx.Done():
			return
		}
	}
}

// received is a message in JSON, or the end of a stream. Without either, the server has accepted
// the call.
type received struct {
	message *[]byte
	err     error
}

// receive hands on what a stream brings, up to its end or that of ctx.
func (f *Face) receive(ctx context.Context, path string, request proto.Message, to chan<- received) {
	hand := func(got received) error {
		select {
		case to <- got:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := f.pipe.Stream(ctx, path, request, func(m proto.Message) error {
		if m == nil {
			return hand(received{})
		}
		data, err := encode(m)
		if err != nil {
			return err
		}
		return hand(received{message: &data})
	})
	_ = hand(received{err: cmp.Or(err, io.EOF)})
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
