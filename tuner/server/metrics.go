package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
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
	where := s.options.MetricsAddress
	if where == "" {
		return nil, nil
	}
	a, err := parseAddress(where)
	if err == nil && a.remote && !s.options.MetricsAllowRemote {
		return nil, optionError("refusing to serve metrics on %s, because other machines can reach it; listen on 127.0.0.1, or allow it with MetricsAllowRemote", where)
	}
	var l net.Listener
	if err == nil {
		l, err = a.listen()
	}
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return l, nil
}

// ServiceMetrics are metrics of an engine and its store. Give the engine the Observer,
// and register them when the server has its registry.
type ServiceMetrics struct {
	// Observer is for the options of an Engine.
	Observer tuner.Observer

	all     []prometheus.Collector
	byStudy bool
}

// NewServiceMetrics returns metrics that have counted nothing. With byStudy there are also
// metrics that have the names of studies as labels, for [maxLabelled] studies.
func NewServiceMetrics(byStudy bool) *ServiceMetrics {
	suggestions := counters("tuner_suggestions_total", "Suggestions handed out, by phase.", "phase")
	events := counters("tuner_trials_total", "Stored events of studies and trials, by event.", "event")
	fallbacks := counter("tuner_fallbacks_total", "Suggestions that are random because the proposer failed or was late.")
	expiries := counter("tuner_lease_expiries_total", "Leases that ended because the worker did not call.")
	prepared := counter("tuner_prepared_used_total", "Asks that got a suggestion made in advance.")
	propose := histogram("tuner_propose_seconds", "How long asks waited for new suggestions.", secondBuckets)
	refit := histogram("tuner_model_refit_seconds", "How long making a model event took.", secondBuckets)
	inducing := histogram("tuner_inducing_points", "Inducing points of the first objective in new model events.", prometheus.ExponentialBuckets(4, 2, 10))
	commit := histogram("tuner_commit_seconds", "How long commits to the store took.", secondBuckets)
	batch := histogram("tuner_commit_batch", "Events in one commit of a study.", prometheus.ExponentialBuckets(1, 4, 7))
	// A scrape has these series from the start, so that rates over the first events are right.
	for _, phase := range []string{study.PhaseStart, study.PhaseModel, study.PhaseExploit, study.PhaseExplore, study.PhaseRepeat, study.PhaseEvolve, study.PhaseFallback} {
		suggestions.WithLabelValues(phase)
	}
	for _, kind := range []string{"created", "started", "told", "expired"} {
		events.WithLabelValues(kind)
	}
	observer := tuner.Observer{
		Stored: func(kind, phase string) {
			events.WithLabelValues(kind).Inc()
			switch {
			case kind == "expired":
				expiries.Inc()
			case phase != "":
				suggestions.WithLabelValues(phase).Inc()
			}
			if phase == study.PhaseFallback {
				fallbacks.Inc()
			}
		},
		Proposed: func(took time.Duration, wasPrepared bool) {
			propose.Observe(took.Seconds())
			if wasPrepared {
				prepared.Inc()
			}
		},
		Refitted: func(took time.Duration, inducingPoints int) {
			refit.Observe(took.Seconds())
			inducing.Observe(float64(inducingPoints))
		},
		Committed: func(took time.Duration, n int) {
			commit.Observe(took.Seconds())
			batch.Observe(float64(n))
		},
	}
	return &ServiceMetrics{observer, []prometheus.Collector{suggestions, events, fallbacks, expiries, prepared, propose, refit, inducing, commit, batch}, byStudy}
}

// StoreBytes are sizes of a store. A negative limit means none.
type StoreBytes struct{ Used, Free, Limit int64 }

// Register adds the metrics to a registry, with those of the loaded studies, of the store,
// and of the build. store, if not nil, returns the sizes of the store.
func (m *ServiceMetrics) Register(r prometheus.Registerer, loaded func() []tuner.Study, store func() (StoreBytes, error), version string) error {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tuner_build_info", Help: "1, with the version of the program as labels.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	return register(r, append(m.all, build, &gauges{loaded, store, m.byStudy})...)
}

// gauges are read when they are scraped.
type gauges struct {
	loaded  func() []tuner.Study
	store   func() (StoreBytes, error)
	byStudy bool
}

// maxLabelled is the largest number of studies whose names are labels. Names are data of
// users, and there can be any number of them.
const maxLabelled = 100

var (
	runningDesc = prometheus.NewDesc("tuner_running_trials", "Running trials of the studies in memory.", nil, nil)
	studiesDesc = prometheus.NewDesc("tuner_studies", "Studies in memory, by state.", []string{"state"}, nil)
	storeDesc   = prometheus.NewDesc("tuner_store_bytes", "Bytes of the store: used, free, and limit if there is one.", []string{"kind"}, nil)
	trialsDesc  = prometheus.NewDesc("tuner_study_trials", "Trials of a study in memory, by state.", []string{"study", "state"}, nil)
	bestDesc    = prometheus.NewDesc("tuner_study_best", "Best measured value of a study in memory with one objective.", []string{"study", "objective"}, nil)
	leftOutDesc = prometheus.NewDesc("tuner_studies_unlabelled", "Studies in memory that have no metrics of their own, because there are too many.", nil, nil)
)

func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	out <- runningDesc
	out <- studiesDesc
	out <- storeDesc
	if g.byStudy {
		out <- trialsDesc
		out <- bestDesc
		out <- leftOutDesc
	}
}

func (g *gauges) Collect(out chan<- prometheus.Metric) {
	loaded := g.loaded()
	running, studies := 0, make(map[study.Status]int)
	for _, s := range loaded {
		running += s.Counts[study.Running]
		studies[s.Status]++
	}
	out <- constant(runningDesc, float64(running))
	for s := study.StatusActive; s <= study.StatusFinished; s++ {
		out <- constant(studiesDesc, float64(studies[s]), s.String())
	}
	if g.byStudy {
		collectStudies(out, loaded)
	}
	if g.store == nil {
		return
	}
	b, err := g.store()
	if err != nil {
		return // the store is closing or has failed, which has an alert of its own
	}
	for kind, n := range map[string]int64{"used": b.Used, "free": b.Free, "limit": b.Limit} {
		if n >= 0 {
			out <- constant(storeDesc, float64(n), kind)
		}
	}
}

func constant(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// collectStudies sends metrics of single studies, those that are active and then those that
// come first by name.
func collectStudies(out chan<- prometheus.Metric, loaded []tuner.Study) {
	slices.SortFunc(loaded, func(a, b tuner.Study) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), strings.Compare(a.Name, b.Name))
	})
	out <- constant(leftOutDesc, float64(max(0, len(loaded)-maxLabelled)))
	for _, s := range loaded[:min(len(loaded), maxLabelled)] {
		for state := study.Queued; state <= study.Pruned; state++ {
			out <- constant(trialsDesc, float64(s.Counts[state]), s.Name, state.String())
		}
		if s.BestMeasured.Values != nil {
			out <- constant(bestDesc, s.BestMeasured.Values[0], s.Name, s.Spec.Objectives[0].Name)
		}
	}
}
