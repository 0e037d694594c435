package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
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

const (
	// lookEvery is the time between two looks at a study for a page. If a look takes long,
	// as in a file that is opened for it, the next waits 20 times as long, up to lookLazily.
	lookEvery  = 500 * time.Millisecond
	lookLazily = 5 * time.Second
	// retryAfter is how long browsers wait before they connect again.
	retryAfter = 2 * time.Second
)

// events sends a study as a server-sent event when it has changed, at most twice a second.
// The page then asks for the trials that changed. A Watch would cost a message for each
// event and page, which slows down asks.
func (f *Face) events(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	seen, err := position(r)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	uid, err := wholeNumber("uid", r.URL.Query().Get("uid"))
	if err != nil {
		f.fail(w, r, err)
		return
	}
	study, err := f.lookAt(ctx, r)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	if uid == 0 { // the page knows none
		uid = study.GetUid()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for proxies of nginx
	w.WriteHeader(http.StatusOK)
	out := &lines{w: w, control: http.NewResponseController(w), timeout: f.writeTimeout}
	out.write("", nil, fmt.Sprintf("retry: %d\n\n", retryAfter.Milliseconds()))
	spoke, wait := time.Now(), lookEvery
	for {
		switch {
		case study.GetUid() != uid || study.GetPosition() != seen: // another study may have the name now
			uid, seen = study.GetUid(), study.GetPosition()
			data, err := encode(study)
			if err != nil {
				f.log.Error("a study has no form in JSON", "study", study.GetName(), "error", err)
				return
			}
			out.write(fmt.Sprintf("id: %d\ndata: ", seen), data, "\n\n")
			spoke = time.Now()
		case time.Since(spoke) > f.silence:
			out.write("", nil, ":\n\n")
			spoke = time.Now()
		}
		if out.flush(); out.err != nil {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		begin := time.Now()
		next, err := f.lookAt(ctx, r)
		wait = max(lookEvery, min(20*time.Since(begin), lookLazily))
		switch {
		case status.Code(err) == codes.ResourceExhausted: // the rate of the token
			wait = lookLazily
		case err != nil:
			f.last(out, r, err)
			return
		default:
			study = next
		}
	}
}

// lookAt asks for a study as the caller. So a token that was revoked ends the events.
func (f *Face) lookAt(ctx context.Context, r *http.Request) (*pb.Study, error) {
	return ask[*pb.Study](ctx, f, callerOf(r), pb.Tuner_GetStudy_FullMethodName, &pb.GetStudyRequest{Name: "studies/" + r.PathValue("study")})
}

// last sends the error that ends the events.
func (f *Face) last(out *lines, r *http.Request, err error) {
	s := f.statusOf(r, err)
	data, err := json.Marshal(map[string]any{"code": s.Code(), "message": s.Message()})
	if err != nil {
		return
	}
	out.write("event: end\ndata: ", data, "\n\n")
	out.flush()
}

// position is the position of the log after which a page wants events. A browser that
// connects again says which event it had last.
func position(r *http.Request) (uint64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	return wholeNumber("after", text)
}

// wholeNumber reads a parameter, which is 0 if it is left out.
func wholeNumber(name, text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, wire.NewStatus(codes.InvalidArgument, tuner.Invalid,
			fmt.Sprintf("%s: %.50q must be a whole number from 0", name, text)).Err()
	}
	return n, nil
}
