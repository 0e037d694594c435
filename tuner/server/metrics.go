package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// metrics are the metrics of the server itself. Labels have few values. The method is
// one of the table of methods, or "other".
type metrics struct {
	requests      *prometheus.CounterVec // by method and code
	seconds       *prometheus.HistogramVec
	inFlight      prometheus.Gauge
	inFlightBytes prometheus.Gauge
	watches       prometheus.Gauge
	connections   prometheus.Gauge
	authFailures  *prometheus.CounterVec // by reason
	limited       *prometheus.CounterVec // by limit
	panics        prometheus.Counter
	insecure      prometheus.Gauge
	auditFailures prometheus.Counter

	methods map[string]wire.Method
}

func newMetrics(r prometheus.Registerer, methods map[string]wire.Method) (*metrics, error) {
	m := &metrics{
		requests:      counters("tuner_requests_total", "Calls that ended, by method and gRPC code.", "method", "code"),
		inFlight:      gauge("tuner_in_flight_requests", "Calls under way, streams included."),
		inFlightBytes: gauge("tuner_in_flight_bytes", "Bytes of the requests under way."),
		watches:       gauge("tuner_watches", "Watch streams under way."),
		connections:   gauge("tuner_connections", "Open connections."),
		authFailures:  counters("tuner_auth_failures_total", "Calls refused because the caller is unknown or lacks permission, by reason.", "reason"),
		limited:       counters("tuner_limited_total", "Calls refused because of a limit, by limit.", "limit"),
		panics:        counter("tuner_panics_total", "Calls that ended in a panic."),
		insecure:      gauge("tuner_insecure_remote", "1 if other machines can reach the server without encryption or authentication."),
		auditFailures: counter("tuner_audit_failures_total", "Lines that could not be written to the audit file."),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tuner_request_seconds", Help: "How long calls took, by method.", Buckets: append(slices.Clone(secondBuckets), 30, 60),
		}, []string{"method"}),
		methods: methods,
	}
	// A scrape has these series from the start, so that alerts see the first failure.
	for method := range methods {
		m.requests.WithLabelValues(method, codes.OK.String())
	}
	for _, reason := range []string{"none", "unknown", "expired", "malformed", "scope", "name"} {
		m.authFailures.WithLabelValues(reason)
	}
	m.limited.WithLabelValues("rate")
	return m, register(r, m.requests, m.seconds, m.inFlight, m.inFlightBytes, m.watches, m.connections,
		m.authFailures, m.limited, m.panics, m.insecure, m.auditFailures)
}

// secondBuckets are the bounds of histograms of times.
var secondBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func register(r prometheus.Registerer, all ...prometheus.Collector) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

// label returns the label of a method, so that callers cannot make up labels.
func (m *metrics) label(method string) string {
	if m.methods[method].Need == 0 {
		return "other"
	}
	return method
}

func (m *metrics) count(method string, code codes.Code) {
	m.requests.WithLabelValues(m.label(method), code.String()).Inc()
}

// probes adds GET /healthz, which answers while the process does, and GET /readyz, which
// tells whether the server serves. They need no permission.
func (s *Server) probes(mux *http.ServeMux) {
	answer := func(w http.ResponseWriter, code int, text string) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		fmt.Fprintln(w, text)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		h, err := s.health.Check(r.Context(), &healthpb.HealthCheckRequest{})
		if err != nil || h.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			answer(w, http.StatusServiceUnavailable, healthpb.HealthCheckResponse_NOT_SERVING.String())
			return
		}
		answer(w, http.StatusOK, h.GetStatus().String())
	})
}

// serveMetrics serves /metrics and the probes until ctx ends. Errors of scrapes are logged.
func (s *Server) serveMetrics(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.options.Registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	s.probes(mux)
	loopback := OnLoopback(l)
	h := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if loopback && !ThisMachine(r.Host) {
				http.Error(w, fmt.Sprintf("metrics on loopback are for localhost or an IP address only, not for the host %.100q", r.Host), http.StatusMisdirectedRequest)
				return
			}
			mux.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
	stop := context.AfterFunc(ctx, func() { h.Close() })
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// OnLoopback tells whether only programs of this machine reach a listener by TCP.
func OnLoopback(l net.Listener) bool {
	a, ok := l.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// ThisMachine tells whether a Host is localhost or an IP address. A page of another site can
// have a name of its own lead to this machine, but not change the Host.
func ThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil
}

// listenMetrics listens on the metrics address. It returns nil if there is none.
func (s *Server) listenMetrics() (net.Listener, error) {
	a, err := s.metricsAddress()
	if err != nil || a == (address{}) {
		return nil, err
	}
	l, err := a.listen()
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return l, nil
}

// metricsAddress is the address of the metrics, and empty if there is none.
func (s *Server) metricsAddress() (address, error) {
	where := s.options.MetricsAddress
	if where == "" {
		return address{}, nil
	}
	a, err := parseAddress(where)
	if err != nil {
		return address{}, fmt.Errorf("metrics: %w", err)
	}
	if a.remote && !s.options.MetricsAllowRemote {
		return address{}, optionError("refusing to serve metrics on %s, because other machines can reach it; listen on 127.0.0.1, or allow it with MetricsAllowRemote", where)
	}
	return a, nil
}
