//go:build otel

package main

import (
	"context"
	"encoding/hex"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// spans is a collector that keeps the names of spans with their traces.
type spans struct {
	collector.UnimplementedTraceServiceServer
	mu  sync.Mutex
	all []string
}

func (s *spans) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, about := range r.ResourceSpans {
		for _, scope := range about.ScopeSpans {
			for _, span := range scope.Spans {
				s.all = append(s.all, span.Name+" "+hex.EncodeToString(span.TraceId)+" "+about.Resource.String())
			}
		}
	}
	return new(collector.ExportTraceServiceResponse), nil
}

// TestOpenTelemetry starts a server that sends its spans to a collector. The span of a call
// over HTTP belongs to the trace of its caller.
func TestOpenTelemetry(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var got spans
	g := grpc.NewServer()
	collector.RegisterTraceServiceServer(g, &got)
	go func() { _ = g.Serve(l) }()
	defer g.Stop()
	dir := shortDir(t)
	c := startChild(t, dir, func(cmd *exec.Cmd) {
		cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+l.Addr().String(), "OTEL_SERVICE_NAME=ours")
	}, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	t.Setenv("TRACEPARENT", "00-"+trace+"-00f067aa0ba902b7-01")
	if status := run(t.Context(), []string{"--server", c.state.GRPC, "studies"}, strings.NewReader(""), os.Stderr, os.Stderr); status != 0 {
		t.Fatalf("status %d", status)
	}
	list(t, dir, c.state.HTTP)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	c.ends(t)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got.mu.Lock()
		all := strings.Join(got.all, "\n")
		got.mu.Unlock()
		if strings.Count(all, "tuner.v1.Tuner/ListStudies ") >= 2 && strings.Count(all, "ListStudies "+trace) == 1 && strings.Contains(all, "ours") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the collector has\n%s\nthe log has\n%s", all, c.stderr)
		}
	}
}
