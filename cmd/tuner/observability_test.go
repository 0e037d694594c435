package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/bkbtuner/bkb/store/bolt/backups"
	"github.com/bkbtuner/bkb/tuner/serve"
	"github.com/bkbtuner/bkb/tuner/server"
)

// registered are the names of all metrics of a server.
func registered(t *testing.T) []string {
	t.Helper()
	dir, registry := t.TempDir(), prometheus.NewRegistry()
	ctx, stop := context.WithCancel(t.Context())
	err := serve.Run(ctx, serve.Config{
		File: filepath.Join(dir, "tuner.db"), HTTP: "127.0.0.1:0",
		Server:  server.Options{Address: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0", Registry: registry},
		Backups: backups.Plan{Dir: dir, Every: time.Hour}, MetricsStudies: true, OnServing: func(serve.Ready) { stop() },
	})
	if err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descs)
		close(descs)
	}()
	var names []string
	for d := range descs {
		names = append(names, regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())[1])
	}
	return names
}

// deployed are the expressions of the dashboard and of the alert rules.
func deployed(t *testing.T) (exprs []string) {
	t.Helper()
	for file, decode := range map[string]func([]byte, any) error{"../../deploy/grafana.json": json.Unmarshal, "../../deploy/alerts.yaml": yaml.Unmarshal} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var all any
		if err := decode(text, &all); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		before := len(exprs)
		exprs = append(exprs, under(all, "expr")...)
		if len(exprs) == before {
			t.Fatalf("%s has no expression", file)
		}
	}
	return exprs
}

// under lists the texts with a key, wherever they are, as in panels within rows.
func under(v any, key string) (texts []string) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if text, ok := e.(string); ok && k == key {
				texts = append(texts, text)
			}
			texts = append(texts, under(e, key)...)
		}
	case []any:
		for _, e := range v {
			texts = append(texts, under(e, key)...)
		}
	}
	return texts
}

// TestDeployNamesMetrics checks that the dashboard and the alert rules are well formed and use
// only metrics that a server has.
func TestDeployNamesMetrics(t *testing.T) {
	names := registered(t)
	suffix := regexp.MustCompile(`_(bucket|sum|count)$`)
	exprs := deployed(t)
	if len(exprs) < 15 {
		t.Fatalf("only %d expressions", len(exprs))
	}
	for _, e := range exprs {
		used := regexp.MustCompile(`tuner_[a-z_]+`).FindAllString(e, -1)
		if len(used) == 0 {
			t.Errorf("%s uses no metric of the server", e)
		}
		for _, name := range used {
			if !slices.Contains(names, name) && !slices.Contains(names, suffix.ReplaceAllString(name, "")) {
				t.Errorf("%s: the server has no metric %s, but %s", e, name, strings.Join(names, " "))
			}
		}
	}
}

// TestDeployParses checks that Prometheus can load the alert rules and run the expressions of
// the dashboard. Its parser is too large a dependency for a test.
func TestDeployParses(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool of Prometheus is not in PATH; the Debian package prometheus has it")
	}
	check := func(file string) ([]byte, error) {
		return exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput()
	}
	if out, err := check("../../deploy/alerts.yaml"); err != nil {
		t.Errorf("deploy/alerts.yaml: %v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", "testdata/alerts_test.yaml").CombinedOutput(); err != nil {
		t.Errorf("testdata/alerts_test.yaml: %v\n%s", err, out)
	}
	rules := func(exprs ...string) string {
		var list []map[string]string
		for i, e := range exprs {
			list = append(list, map[string]string{"record": fmt.Sprintf("expression:%d", i), "expr": e})
		}
		text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "all", "rules": list}}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	if out, err := check(rules(deployed(t)...)); err != nil {
		t.Errorf("deploy: %v\n%s", err, out)
	}
	if out, err := check(rules("a > 0.9 * ignoring(kind) b")); err == nil {
		t.Errorf("promtool accepts matching of labels with a number:\n%s", out)
	}
}

// TestServeMetrics scrapes a server with all faces and one trial. It has all metrics that
// docs/deploy.md lists, and answers probes at the same address.
func TestServeMetrics(t *testing.T) {
	dir := shortDir(t)
	c := startChild(t, dir, nil, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--metrics-studies", "--backup-to", "backups", "--backup-every", "1h")
	tuner := func(args ...string) {
		t.Helper()
		var stderr bytes.Buffer
		if status := run(t.Context(), append([]string{"--server", c.state.GRPC}, args...), strings.NewReader(""), io.Discard, &stderr); status != 0 {
			t.Fatalf("%v: status %d, %s", args, status, &stderr)
		}
	}
	space := filepath.Join(dir, "space.yaml")
	if err := os.WriteFile(space, []byte("parameters: {lr: {type: float, low: 0, high: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tuner("create-study", "digits", "--space", space, "--minimize", "loss")
	tuner("ask", "digits")
	tuner("tell", "digits", "0", "0.5")
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	get := func(path string) string {
		t.Helper()
		r, err := (&http.Client{Transport: transport}).Get("http://" + c.state.Metrics + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, r.Status, err)
		}
		return string(text)
	}
	if text := get("/healthz"); text != "ok\n" {
		t.Errorf("/healthz: %q", text)
	}
	if text := get("/readyz"); text != "SERVING\n" {
		t.Errorf("/readyz: %q", text)
	}
	page, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Metrics\n")
	table, _, _ = strings.Cut(table, "\n## ")
	listed := regexp.MustCompile("`(tuner_[a-z_]+)`").FindAllStringSubmatch(table, -1)
	if len(listed) < 30 {
		t.Fatalf("docs/deploy.md lists %d metrics", len(listed))
	}
	text := get("/metrics")
	has := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (tuner_\w+) `).FindAllStringSubmatch(text, -1) {
		has[m[1]] = true
	}
	for _, m := range listed {
		if !has[m[1]] {
			t.Errorf("docs/deploy.md lists %s, which the server does not have", m[1])
		}
		delete(has, m[1])
	}
	for name := range has {
		if !slices.ContainsFunc(listed, func(m []string) bool { return m[1] == name }) {
			t.Errorf("docs/deploy.md does not list %s", name)
		}
	}
	for _, want := range []string{`tuner_study_trials{state="completed",study="digits"} 1`, `tuner_suggestions_total{phase="start"} 1`, `tuner_ui_requests_total{code="200",route="/api/studies/{study}/columns"} 0`, "tuner_ui_sessions 0"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, parent := range []string{"00-" + trace + "-00f067aa0ba902b7-01", "malformed\n"} {
		t.Setenv("TRACEPARENT", parent)
		tuner("pause", "digits")
	}
	for _, args := range [][]string{{"resume", "digits"}, {"finish", "digits"}, {"delete-study", "digits", "--yes"}} {
		tuner(args...)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	c.ends(t)
	log := c.stderr.String()
	for _, method := range []string{"CreateStudy", "PauseStudy", "FinishStudy", "DeleteStudy"} {
		if want := "audit who=anybody what=" + method + " on=studies/digits from=127.0.0.1"; !strings.Contains(log, want) {
			t.Errorf("the log has no line %s:\n%s", want, log)
		}
	}
	if strings.Count(log, "trace_id="+trace) != 1 {
		t.Errorf("the log does not have the trace of one call:\n%s", log)
	}
}
