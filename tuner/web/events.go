package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

const (
	// newsEvery is the shortest time between two messages to a page.
	newsEvery = 250 * time.Millisecond
	// maxNews is the number of trials or reports from which on a message names none, and
	// the page loads them as columns.
	maxNews = 500
	// retryAfter is how long browsers wait before they connect again.
	retryAfter = 2 * time.Second
)

// news is a message to the page. It names what changed, and the page asks for it.
type news struct {
	Position uint64         `json:"position"`
	State    string         `json:"state"`
	Events   map[string]int `json:"events"`           // how many of each kind
	Trials   []int64        `json:"trials,omitempty"` // changed, without those that only reported
	Reports  []reported     `json:"reports,omitempty"`
	Reload   bool           `json:"reload,omitempty"` // too many for a list
}

// reported is an intermediate value of a running trial.
type reported struct {
	Trial  int64              `json:"trial"`
	Step   int64              `json:"step"`
	Values map[string]float64 `json:"values"`
}

// add notes an event.
func (n *news) add(m *pb.WatchResponse) {
	if n.Events == nil {
		n.Events = make(map[string]int)
	}
	n.Position, n.State = m.GetPosition(), m.GetStudyState().String()
	n.Events[m.GetEvent()]++
	t := m.GetTrial()
	if t == nil || n.Reload {
		return
	}
	if r := t.GetReports(); len(r) > 0 {
		for _, v := range r {
			values := make(map[string]float64, len(v.GetValues()))
			for name, x := range v.GetValues() {
				if !math.IsNaN(x) && !math.IsInf(x, 0) { // JSON has neither
					values[name] = x
				}
			}
			n.Reports = append(n.Reports, reported{t.GetNumber(), v.GetStep(), values})
		}
	} else if !slices.Contains(n.Trials, t.GetNumber()) {
		n.Trials = append(n.Trials, t.GetNumber())
	}
	if len(n.Trials) > maxNews || len(n.Reports) > maxNews {
		n.Reload, n.Trials, n.Reports = true, nil, nil
	}
}

// events sends server-sent events about a study, a few each second at most.
func (f *Face) events(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	after, err := position(r)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	name := "studies/" + r.PathValue("study")
	admitted, err := f.pipe.Admit(ctx, callerOf(r), pb.Tuner_Watch_FullMethodName)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	stream, err := pb.NewTunerClient(f.pipe.Conn()).Watch(admitted, &pb.WatchRequest{Parent: name, After: after})
	if err != nil {
		f.fail(w, r, err)
		return
	}
	arrived := make(chan *pb.WatchResponse)
	ended := make(chan error, 1)
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				ended <- err
				return
			}
			select {
			case arrived <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	select { // an error has a status of HTTP
	case err := <-ended:
		f.fail(w, r, err)
		return
	case <-time.After(firstWait):
	case <-ctx.Done():
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for proxies of nginx
	w.WriteHeader(http.StatusOK)
	out := &lines{w: w, control: http.NewResponseController(w), timeout: f.writeTimeout}
	out.write("", nil, fmt.Sprintf("retry: %d\n\n", retryAfter.Milliseconds()))
	out.flush()
	f.tell(ctx, out, arrived, ended)
}

// tell writes what arrives until it ends.
func (f *Face) tell(ctx context.Context, out *lines, arrived <-chan *pb.WatchResponse, ended <-chan error) {
	quiet := time.NewTicker(f.silence)
	defer quiet.Stop()
	var pending news
	var due <-chan time.Time
	for out.err == nil {
		select {
		case m := <-arrived:
			pending.add(m)
			if due == nil {
				due = time.After(newsEvery)
			}
			continue
		case <-due:
			data, err := json.Marshal(pending)
			if err != nil {
				f.log.Error("news have no form in JSON", "error", err)
				return
			}
			out.write(fmt.Sprintf("id: %d\ndata: ", pending.Position), data, "\n\n")
			pending, due = news{}, nil
			quiet.Reset(f.silence)
		case <-quiet.C:
			out.write("", nil, ":\n\n")
		case err := <-ended:
			if !errors.Is(err, io.EOF) {
				a, _ := wire.ReadError(err)
				data, _ := json.Marshal(map[string]string{"code": fmt.Sprint(a.Err.Code), "message": a.Err.Message})
				out.write("event: end\ndata: ", data, "\n\n")
				out.flush()
			}
			return
		case <-ctx.Done():
			return
		}
		out.flush()
	}
}

// position is the position of the log after which a page wants events. A browser that
// connects again says which message it had last.
func position(r *http.Request) (uint64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	after, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, wire.NewStatus(codes.InvalidArgument, tuner.Invalid,
			fmt.Sprintf("after: %.50q is no position of a log; it must be a whole number from 0", text)).Err()
	}
	return after, nil
}
