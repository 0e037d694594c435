package server

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

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

// Describe implements [prometheus.Collector].
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

// Collect implements [prometheus.Collector].
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
