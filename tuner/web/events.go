package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

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
