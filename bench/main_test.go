package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/spf13/cobra"
)

// An interrupted experiment prints and writes its completed part, and exits as
// interrupted.
func TestBenchKeepsWhatIsDone(t *testing.T) {
	e := experiment.Experiment{Name: "half", Title: "Half", Source: "ours", Measure: func(ctx context.Context, _ *experiment.Env) (*report.Result, error) {
		r := &report.Result{}
		r.Table("done", "", report.Column{Name: "n"}).Add(7)
		return r, context.Canceled
	}}
	var out, errs bytes.Buffer
	cmd := &cobra.Command{Use: "bench"}
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	b := &benching{csv: t.TempDir(), console: console{format: "table"}}
	err := b.one(context.Background(), cmd, e)
	if !errors.Is(err, context.Canceled) || statusOf(err) != exitInterrupted {
		t.Errorf("%v, status %d", err, statusOf(err))
	}
	if !strings.Contains(out.String(), "n\n7\n") || !strings.Contains(errs.String(), "not complete") {
		t.Errorf("stdout %q, stderr %q", out.String(), errs.String())
	}
	if text, err := os.ReadFile(filepath.Join(b.csv, "half-done.csv")); err != nil || string(text) != "n\n7\n" {
		t.Errorf("%q, %v", text, err)
	}
	out.Reset()
	b.format, b.quiet = "json", true
	if err := b.one(context.Background(), cmd, e); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, want := range []string{`"experiment":"half"`, `"complete":false`, `"rows":[[7]]`, `"scale":"standard"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
}

// Ctrl-C ends a real experiment soon.
func TestBenchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := newBench()
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs([]string{"table5.1"})
	began := time.Now()
	if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

func TestBenchLine(t *testing.T) {
	p := &progressLine{name: "fig5.1"}
	for want, at := range map[string]experiment.Progress{
		"fig5.1  3/12  1m5s  BLESS": {Done: 3, Of: 12, What: "BLESS"},
		"fig5.1  1m5s  exact":       {What: "exact"},
	} {
		if got := p.line(at, 65*time.Second); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
