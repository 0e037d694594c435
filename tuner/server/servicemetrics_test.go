package server_test

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestServiceMetrics runs trials until there is a model, with an expired lease, and compares
// the metrics with what was done.
func TestServiceMetrics(t *testing.T) {
	m := server.NewServiceMetrics(false)
	now := time.Unix(1_800_000_000, 0)
	tn := engine.Open(memory.New(), engine.Options{Observer: m.Observer, Now: func() time.Time { return now }})
	defer tn.Close()
	r := prometheus.NewRegistry()
	if err := m.Register(r, tn.Loaded, func() (server.StoreBytes, error) { return server.StoreBytes{Used: 5, Free: 7, Limit: -1}, nil }, "v1"); err != nil {
		t.Fatal(err)
	}
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	spec := study.Spec{
		Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: 1, Lease: time.Minute, MaxRetries: 1,
		Proposer: study.Component{Name: propose.BKB},
	}
	if _, err := tn.CreateStudy(t.Context(), "s", study.Create{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	const trials = 15
	for i := range trials {
		asked, err := tn.Ask(t.Context(), "s", study.Ask{New: true})
		if err != nil {
			t.Fatal(err)
		}
		if i == 3 { // its worker is not heard of again
			now = now.Add(time.Hour)
			continue
		}
		if _, err := tn.Tell(t.Context(), "s", study.Tell{Trial: asked.Trials[0].Number, Outcome: study.Measured("loss", float64(i))}); err != nil {
			t.Fatal(err)
		}
	}
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	got := make(map[string]float64) // histograms by their count
	for _, m := range regexp.MustCompile(`(?m)^(tuner_[a-z_]+?)(?:_count)?(?:\{[a-z]+="([^"]*)".*\})? ([0-9.e+-]+)$`).FindAllStringSubmatch(answer.Body.String(), -1) {
		name := m[1]
		if m[2] != "" && name != "tuner_build_info" {
			name += "/" + m[2]
		}
		n, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = n
	}
	suggestions := got["tuner_suggestions_total/start"] + got["tuner_suggestions_total/model"] + got["tuner_suggestions_total/exploit"] + got["tuner_suggestions_total/explore"]
	for name, want := range map[string]float64{
		"tuner_trials_total/created": 1, "tuner_trials_total/told": trials - 1, "tuner_trials_total/expired": 1, "tuner_lease_expiries_total": 1,
		"tuner_fallbacks_total": 0, "tuner_prepared_used_total": 0, "tuner_build_info": 1, "tuner_studies/active": 1, "tuner_studies/paused": 0,
		"tuner_store_bytes/used": 5, "tuner_store_bytes/free": 7, "tuner_running_trials": 0,
		"tuner_trials_total/started": trials, "tuner_propose_seconds": suggestions,
		"tuner_model_refit_seconds": got["tuner_trials_total/anchored"], "tuner_inducing_points": got["tuner_trials_total/anchored"],
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if _, limited := got["tuner_store_bytes/limit"]; limited || got["tuner_trials_total/anchored"] < 1 || got["tuner_suggestions_total/start"] < 2 || suggestions != trials-1 || got["tuner_commit_seconds"] < trials || got["tuner_commit_batch"] != got["tuner_commit_seconds"] {
		t.Errorf("the metrics are %v", fmt.Sprint(got))
	}
}

// TestStudyMetrics has more studies than have metrics of their own.
func TestStudyMetrics(t *testing.T) {
	m := server.NewServiceMetrics(true)
	tn := engine.Open(memory.New(), engine.Options{Observer: m.Observer})
	defer tn.Close()
	r := prometheus.NewRegistry()
	if err := m.Register(r, tn.Loaded, nil, "v1"); err != nil {
		t.Fatal(err)
	}
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}}
	for i := range 103 {
		name := fmt.Sprintf("s%03d", i)
		if _, err := tn.CreateStudy(t.Context(), name, study.Create{Spec: spec}); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // one that is over comes last
			if _, err := tn.Finish(t.Context(), name, study.Finish{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, v := range []float64{0.5, 0.25, 0.75} {
		if _, err := tn.Ask(t.Context(), "s001", study.Ask{New: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := tn.Tell(t.Context(), "s001", study.Tell{Trial: i, Outcome: study.Measured("loss", v)}); err != nil {
			t.Fatal(err)
		}
	}
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text := answer.Body.String()
	for _, want := range []string{
		"\ntuner_studies_unlabelled 3\n", `tuner_study_trials{state="completed",study="s001"} 3`, `tuner_study_trials{state="running",study="s001"} 0`,
		`tuner_study_best{objective="loss",study="s001"} 0.25`, `study="s100"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	for _, not := range []string{`study="s000"`, `study="s101"`, `tuner_study_best{objective="loss",study="s002"}`} {
		if strings.Contains(text, not) {
			t.Errorf("the metrics have %s", not)
		}
	}
}
