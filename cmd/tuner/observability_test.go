package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

// registered are the names of all metrics of a server.
func registered(t *testing.T) []string {
	t.Helper()
	metrics := server.NewServiceMetrics()
	tn := tuner.Open(memory.New(), tuner.Options{Observer: metrics.Observer()})
	t.Cleanup(func() { tn.Close() })
	srv, err := server.New(tn, server.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := metrics.Register(srv.Registry(), tn, nil, "v1"); err != nil {
		t.Fatal(err)
	}
	if _, err := newBackupMetrics(srv.Registry()); err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		srv.Registry().Describe(descs)
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
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	text, err := os.ReadFile("../../deploy/grafana.json")
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile("../../deploy/alerts.yaml"); err == nil {
		err = yaml.Unmarshal(text, &rules)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			exprs = append(exprs, r.Expr)
		}
	}
	return exprs
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
