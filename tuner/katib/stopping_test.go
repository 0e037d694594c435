package katib

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	pb "github.com/bkbtuner/bkb/proto/katib"
)

// manager is Katib's DB manager with the values of one metric.
type manager struct {
	pb.UnimplementedDBManagerServer
	values map[string][]string // by trial
	calls  int
}

func (m *manager) GetObservationLog(_ context.Context, r *pb.GetObservationLogRequest) (*pb.GetObservationLogReply, error) {
	m.calls++
	values, ok := m.values[r.TrialName]
	if !ok {
		return nil, errors.New("there is no such trial")
	}
	log := &pb.ObservationLog{}
	for _, v := range values {
		log.MetricLogs = append(log.MetricLogs, &pb.MetricLog{Metric: &pb.Metric{Name: "other", Value: "9"}}, &pb.MetricLog{Metric: &pb.Metric{Name: r.MetricName, Value: v}})
	}
	return &pb.GetObservationLogReply{ObservationLog: log}, nil
}

// TestRules takes the median of the values of succeeded trials at a step.
func TestRules(t *testing.T) {
	db := &manager{values: map[string][]string{
		"a": {"9", "1", "0"}, "b": {"9", "2", "0"}, "c": {"9", "4", "0"}, "d": {"9", "8"}, "short": {"9"}, "word": {"9", "unavailable"}, "nan": {"9", "nan"},
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterDBManagerServer(server, db)
	go server.Serve(l)
	defer server.Stop()

	var s EarlyStopping
	rules := func(e *pb.Experiment, trials ...string) ([]*pb.EarlyStoppingRule, error) {
		r := &pb.GetEarlyStoppingRulesRequest{Experiment: e, DbManagerAddress: l.Addr().String(), Trials: []*pb.Trial{
			{Name: "running", Status: &pb.TrialStatus{Condition: pb.TrialStatus_RUNNING}},
			{Name: "stopped", Status: &pb.TrialStatus{Condition: pb.TrialStatus_EARLYSTOPPED}},
		}}
		for _, name := range trials {
			r.Trials = append(r.Trials, &pb.Trial{Name: name, Status: &pb.TrialStatus{Condition: pb.TrialStatus_SUCCEEDED}})
		}
		reply, err := s.GetEarlyStoppingRules(t.Context(), r)
		return reply.GetEarlyStoppingRules(), err
	}
	e := bowl(func(s *pb.ExperimentSpec) {
		s.EarlyStopping = &pb.EarlyStoppingSpec{AlgorithmName: "medianstop", AlgorithmSettings: []*pb.EarlyStoppingSetting{{Name: "start_step", Value: "2"}}}
	})
	for _, c := range []struct {
		trials string
		value  string
	}{
		{"", ""}, {"a b", ""}, {"a b short word nan", ""}, {"c a b", "2"}, {"c a b short word nan", "2"}, {"d c b a", "3"},
	} {
		got, err := rules(e, strings.Fields(c.trials)...)
		switch {
		case err != nil:
			t.Errorf("%q: %v", c.trials, err)
		case c.value == "" && len(got) > 0, c.value != "" && (len(got) != 1 || got[0].Value != c.value || got[0].Name != "loss" || got[0].StartStep != 2 || got[0].Comparison != pb.ComparisonType_GREATER):
			t.Errorf("%q: %v, want %q", c.trials, got, c.value)
		}
	}
	if db.calls != len(db.values) {
		t.Errorf("%d trials were read by %d calls", len(db.values), db.calls)
	}
	e.Spec.Objective.Type = pb.ObjectiveType_MAXIMIZE
	if got, err := rules(e, "a", "b", "c"); err != nil || len(got) != 1 || got[0].Comparison != pb.ComparisonType_LESS {
		t.Error(got, err)
	}
	_, err = rules(e, "a", "missing")
	wantStatus(t, err, codes.Unavailable, "the metrics of trial missing cannot be read")
	e.Spec.Objective.Type = pb.ObjectiveType_UNKNOWN
	_, err = rules(e, "a")
	wantStatus(t, err, codes.InvalidArgument, "spec.objective.type UNKNOWN: must be minimize or maximize")
}

func TestStoppingSettings(t *testing.T) {
	var s EarlyStopping
	for _, c := range []struct{ name, value, want string }{
		{"start_step", "1", ""},
		{"min_trials_required", "2", ""},
		{"start_step", "0", `start_step "0": must be a whole number of at least 1`},
		{"min_trials_required", "1.5", `min_trials_required "1.5": must be`},
		{"patience", "1", `patience "1": is not a setting; use min_trials_required or start_step`},
	} {
		_, err := s.ValidateEarlyStoppingSettings(t.Context(), &pb.ValidateEarlyStoppingSettingsRequest{
			EarlyStopping: &pb.EarlyStoppingSpec{AlgorithmSettings: []*pb.EarlyStoppingSetting{{Name: c.name, Value: c.value}}},
		})
		if c.want != "" {
			wantStatus(t, err, codes.InvalidArgument, c.want)
		} else if err != nil {
			t.Error(c, err)
		}
	}
	twice := &pb.EarlyStoppingSetting{Name: "start_step", Value: "2"}
	_, err := s.ValidateEarlyStoppingSettings(t.Context(), &pb.ValidateEarlyStoppingSettingsRequest{
		EarlyStopping: &pb.EarlyStoppingSpec{AlgorithmSettings: []*pb.EarlyStoppingSetting{twice, twice}},
	})
	wantStatus(t, err, codes.InvalidArgument, "is given twice")
}

// api is the part of the API server that has trials. It refuses changes of old versions.
type api struct {
	t         *testing.T
	conflicts int // changes by others that come first
	version   int
	status    map[string]any
	patches   int
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"message":"Unauthorized"}`)
		return
	}
	const at = "/apis/kubeflow.org/v1beta1/namespaces/team/trials/bowl-3"
	object := func() map[string]any {
		return map[string]any{"metadata": map[string]any{"resourceVersion": string(rune('0' + a.version))}, "status": a.status}
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Path == at:
		json.NewEncoder(w).Encode(object())
	case r.Method == http.MethodPatch && r.URL.Path == at+"/status" && r.Header.Get("Content-Type") == "application/merge-patch+json":
		var patch struct {
			Metadata struct{ ResourceVersion string }
			Status   map[string]any
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			a.t.Error(err)
		}
		if a.conflicts > 0 {
			a.conflicts--
			a.version++
		}
		if patch.Metadata.ResourceVersion != string(rune('0'+a.version)) {
			w.WriteHeader(http.StatusConflict)
			return
		}
		a.patches++
		a.version++
		for key, v := range patch.Status { // as a merge patch does
			a.status[key] = v
		}
		json.NewEncoder(w).Encode(object())
	default:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"message":"trials.kubeflow.org \"bowl-4\" not found"}`)
	}
}

// TestStop adds a condition to a trial, once, and keeps the rest of its status.
func TestStop(t *testing.T) {
	running := map[string]any{"type": "Running", "status": "True", "reason": "TrialRunning"}
	a := &api{t: t, conflicts: 2, status: map[string]any{"startTime": "2026-03-01T12:30:00Z", "conditions": []any{running}}}
	server := httptest.NewTLSServer(a)
	defer server.Close()
	dir := t.TempDir()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := InCluster(dir); err == nil || !strings.Contains(err.Error(), "not in a pod") {
		t.Error(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", at.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", at.Port())
	if _, err := InCluster(dir); err == nil || !strings.Contains(err.Error(), "service account") {
		t.Error(err)
	}
	write("namespace", "team")
	write("ca.crt", "none")
	if _, err := InCluster(dir); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Error(err)
	}
	write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	c, err := InCluster(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.client.CloseIdleConnections()
	write("token", "old\n")
	s := EarlyStopping{Stop: c.Stop}
	stop := func(name string) error {
		_, err := s.SetTrialStatus(t.Context(), &pb.SetTrialStatusRequest{TrialName: name})
		return err
	}
	wantStatus(t, stop("bowl-3"), codes.Unavailable, "401 Unauthorized: Unauthorized")
	write("token", "secret\n") // Kubernetes renews it
	for range 2 {
		if err := stop("bowl-3"); err != nil {
			t.Fatal(err)
		}
	}
	wantStatus(t, stop("bowl-4"), codes.Unavailable, `"bowl-4" not found`)
	wantStatus(t, stop("../pods"), codes.Unavailable, "not the name of a trial")
	wantStatus(t, stop(""), codes.Unavailable, "not the name of a trial")
	conditions, _ := a.status["conditions"].([]any)
	if a.patches != 1 || a.status["startTime"] == nil || len(conditions) != 2 {
		t.Fatalf("%d patches, %v", a.patches, a.status)
	}
	first, _ := conditions[0].(map[string]any)
	last, _ := conditions[1].(map[string]any)
	if first["type"] != "Running" || last["type"] != "EarlyStopped" || last["status"] != "True" || last["lastTransitionTime"] == "" {
		t.Errorf("%v", conditions)
	}
}
