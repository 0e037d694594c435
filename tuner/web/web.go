package web

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
)

const (
	// writeTimeout is for one piece of an answer, writePiece long.
	writeTimeout = 30 * time.Second
	writePiece   = 64 << 10
	// answerTimeout is for a whole answer of a handler that sets no other.
	answerTimeout = 2 * time.Minute
	// unreadTimeout is for the body of a request that is answered without reading it.
	unreadTimeout = time.Second
	// closeTimeout is for the last answers of a face that closes.
	closeTimeout = 2 * time.Second
	// gzipFrom is the size of the smallest answer that is compressed.
	gzipFrom = 4 << 10
	// silence is the longest time without a line in a stream, and firstWait that before
	// its header.
	silence   = 15 * time.Second
	firstWait = 100 * time.Millisecond
)

// Face serves a [server.Server] over HTTP. It serves once, while the server serves.
type Face struct {
	pipe    *server.Pipe
	limits  server.Limits
	log     *slog.Logger
	version string
	page    *page // nil if the face serves the calls alone
	key     string

	components tuner.Components
	agents     func(conn grpc.ClientConnInterface, w http.ResponseWriter, r *http.Request)

	http *http.Server

	sessions sessions

	decoding chan struct{} // one for each large body that is decoded

	silence, writeTimeout time.Duration // the constants but in tests
}

// Options are those of a face.
type Options struct {
	// Version is in a header of answers to callers who passed the gate.
	Version string
	// Components are offered to those who make a study.
	Components tuner.Components
	// Page adds the page for browsers.
	Page bool
	// Connection has the flags with which the commands that the page shows reach the studies.
	// {host} in it stands for the host of the page.
	Connection string
	// Agents, if not nil, answers requests of agents at /mcp on behalf of the caller of a
	// connection.
	Agents func(conn grpc.ClientConnInterface, w http.ResponseWriter, r *http.Request)
	// Key, if not empty, is what a browser must show before the face answers it. It guards
	// a server without tokens from other users of the machine.
	Key string
}

// New makes the face of a server that does not serve yet.
func New(s *server.Server, options Options) (*Face, error) {
	pipe, err := s.Pipe()
	if err != nil {
		return nil, err
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tuner_http_requests_total", Help: "Requests over HTTP, by status. Calls among them count in tuner_requests_total too, once they passed the gate.",
	}, []string{"code"})
	requests.WithLabelValues("200") // so that a scrape has it
	if err := s.Registry().Register(requests); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	o := s.Options()
	f := &Face{pipe: pipe, limits: o.Limits, log: o.Logger, version: options.Version, key: options.Key, components: options.Components, agents: options.Agents, decoding: make(chan struct{}, runtime.GOMAXPROCS(0)), silence: silence, writeTimeout: writeTimeout}
	if options.Page {
		if f.page, err = newPage(options.Connection); err != nil {
			return nil, err
		}
		if err := f.page.register(s.Registry(), &f.sessions); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	routes, err := f.routes()
	if err != nil {
		return nil, err
	}
	f.http = &http.Server{
		Handler:           promhttp.InstrumentHandlerCounter(requests, paced(f.recovered(routes))),
		ReadHeaderTimeout: o.Limits.ConnectTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       o.Limits.MaxIdle,
		MaxHeaderBytes:    o.Limits.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(context.WithValue(ctx, addrKey{}, c.RemoteAddr()), paceKey{}, new(pace))
		},
		Protocols: new(http.Protocols),
	}
	f.http.Protocols.SetHTTP1(true)
	return f, nil
}

// routes are the handlers by path.
func (f *Face) routes() (http.Handler, error) {
	compressed, err := gzhttp.NewWrapper(gzhttp.MinSize(gzipFrom), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+servicePath+"{method}", f.calls(compressed))
	mux.HandleFunc(servicePath+"{method}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", http.MethodPost)
		f.refuse(w, http.StatusMethodNotAllowed, wire.NewStatus(codes.Unimplemented, tuner.Unsupported,
			fmt.Sprintf("methods of the service are called with POST, not %.20q", r.Method)))
	})
	if f.agents != nil {
		mux.HandleFunc("POST "+agentsPath, f.ofAgents)
		mux.HandleFunc(agentsPath, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", http.MethodPost)
			f.refuse(w, http.StatusMethodNotAllowed, wire.NewStatus(codes.Unimplemented, tuner.Unsupported,
				fmt.Sprintf("agents send POST to %s, not %.20q", agentsPath, r.Method)))
		})
	}
	f.pipe.Probes(mux)
	mux.HandleFunc("/", f.noPath)
	if f.page != nil {
		f.page.routes(f, mux, compressed)
	}
	return f.visitor(mux), nil
}

// noPath answers a request for a path that does not exist.
func (f *Face) noPath(w http.ResponseWriter, r *http.Request) {
	f.refuse(w, http.StatusNotFound, wire.NewStatus(codes.Unimplemented, tuner.Unsupported,
		fmt.Sprintf("the path must be %sMETHOD, not %.100q", servicePath, r.URL.Path)))
}

// Serve answers the requests of a listener until [Face.Close], and returns nil then. It
// closes the listener.
func (f *Face) Serve(l net.Listener) error {
	defer l.Close()
	guarded, err := f.pipe.Guard(l)
	if err != nil {
		return err
	}
	f.http.Handler = unread(f.sameSite(server.OnLoopback(l), f.http.Handler))
	f.log.Info("serving HTTP", "address", l.Addr().String())
	if err := f.http.Serve(guarded); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close stops the face once the server has stopped. It waits a little for the last
// answers to be written.
func (f *Face) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if f.http.Shutdown(ctx) == nil {
		return nil
	}
	return f.http.Close()
}

// recovered answers a panic as the server does. If the answer has begun, it closes the
// connection, so that the caller does not take a part for the whole.
func (f *Face) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w}
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				err := f.pipe.Panicked(p)
				if a.code != 0 {
					panic(http.ErrAbortHandler)
				}
				f.fail(w, r, err)
			}
		}()
		next.ServeHTTP(a, r)
	})
}

// unread limits the wait for a body that next does not read. Go's server reads a little
// of it before it answers. If next reads the body, it sets a time of its own.
func unread(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTimeout))
		}
		next.ServeHTTP(w, r)
	})
}

type addrKey struct{}

// callerOf is what the gate goes by.
func callerOf(r *http.Request) server.Caller {
	addr, _ := r.Context().Value(addrKey{}).(net.Addr)
	return server.Caller{Addr: addr, TLS: r.TLS, Authorization: r.Header.Values("Authorization"), TraceParent: r.Header.Values("Traceparent")}
}

// sameSite refuses requests that a web page of another site made a browser send. The
// answers say nothing to such a page, because no header of CORS permits it to read them.
func (f *Face) sameSite(loopback bool, next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, h := range headers {
			w.Header().Set(h[0], h[1])
		}
		if loopback && !server.ThisMachine(r.Host) {
			f.refuse(w, http.StatusMisdirectedRequest, wire.NewStatus(codes.PermissionDenied, tuner.Denied,
				fmt.Sprintf("a server on loopback takes requests for localhost or an IP address only, not for the host %.100q", r.Host)))
			return
		}
		if err := origins.Check(r); err != nil {
			f.refuse(w, http.StatusForbidden, wire.NewStatus(codes.PermissionDenied, tuner.Denied,
				fmt.Sprintf("only web pages of %.100q may send this request, not those of %.100q", r.Host, r.Header.Get("Origin"))))
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" && strings.HasPrefix(r.URL.Path, "/api/") {
			f.refuse(w, http.StatusForbidden, wire.NewStatus(codes.PermissionDenied, tuner.Denied,
				fmt.Sprintf("only web pages of %.100q may send this request, and this one comes from another site", r.Host)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// headers are in each answer. A handler may replace Cache-Control.
var headers = [][2]string{
	{"X-Content-Type-Options", "nosniff"},
	{"Cache-Control", "no-store"},
	{"Content-Security-Policy", policy},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
}

// After paceBurst requests that no token's rate has counted, a connection gets one answer in
// paceEvery. Otherwise a few hundred connections that send without waiting for answers keep
// the processors from all other callers.
const (
	paceBurst = 20
	paceEvery = 100 * time.Millisecond
)

// pace is when the next such answer of a connection is due. It has one request at a time.
type pace struct{ due time.Time }

type paceKey struct{}

// paced answers requests at the pace of their connection.
func paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w}
		next.ServeHTTP(a, r)
		p, _ := r.Context().Value(paceKey{}).(*pace)
		if p == nil || a.code < http.StatusBadRequest && (r.URL.Path == agentsPath || strings.HasPrefix(r.URL.Path, servicePath)) {
			return
		}
		now := time.Now()
		if first := now.Add(-paceBurst * paceEvery); p.due.Before(first) {
			p.due = first
		}
		if p.due = p.due.Add(paceEvery); !p.due.After(now) {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(p.due.Sub(now)):
		case <-r.Context().Done():
		}
	})
}

// answer notes whether an answer has begun, and with which status.
type answer struct {
	http.ResponseWriter
	code int
}

func (a *answer) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(p []byte) (int, error) {
	a.code = cmp.Or(a.code, http.StatusOK)
	return a.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
