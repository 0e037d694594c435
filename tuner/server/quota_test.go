package server_test

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// silent opens a connection and sends nothing.
func silent(t *testing.T, r *running) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// closed reports whether the server closes a connection.
func closed(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := io.Copy(io.Discard, c) // the server's settings may come first
	return err == nil || !strings.Contains(err.Error(), "timeout")
}

// TestStrangers checks that a connection on which no call has shown a token is closed
// to make way for a new one, or when it is idle. A connection with a token stays.
func TestStrangers(t *testing.T) {
	t.Parallel() // it waits more than it computes
	path := tokenPath(t)
	token := addToken(t, path, server.Scope{Role: server.RoleRead})
	var log syncBuffer
	r := start(t, withStudies(t), server.Options{TokenFile: path, Logger: log.logger(), Limits: server.Limits{
		MaxConnections: 3, MaxStrangers: 2, MaxStrangersPerAddress: -1, StrangerIdle: 2 * time.Second,
	}})
	known := r.connect(t)
	if got := get(as(t.Context(), token), known); got != codes.OK {
		t.Fatal(got)
	}
	strangers := []net.Conn{silent(t, r), silent(t, r), silent(t, r), silent(t, r)}
	if got := get(as(t.Context(), token), r.connect(t)); got != codes.OK {
		t.Errorf("a call over a new connection: %s", got)
	}
	for i, c := range strangers {
		if !closed(c) {
			t.Errorf("idle connection %d stays", i)
		}
	}
	if got := get(as(t.Context(), token), known); got != codes.OK {
		t.Errorf("a call over the old connection: %s", got)
	}
	if text := r.MetricsText(); !strings.Contains(text, `tuner_limited_total{limit="strangers"}`) {
		t.Errorf("metrics: %s", text)
	}
	r.eventually(t, "tuner_connections 2\n")
	if n := strings.Count(log.String(), "limit=strangers "); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
	if got := get(as(t.Context(), token), r.connect(t)); got != codes.OK {
		t.Errorf("a call over a third connection: %s", got)
	}
	if first := silent(t, r); !closed(silent(t, r)) || !closed(first) {
		t.Error("a connection too many stays although all others are known")
	}
}

// TestHealthDoesNotCount checks that health checks pass when there are too many calls.
// Health streams have a limit of their own.
func TestHealthDoesNotCount(t *testing.T) {
	g := newGated(withStudies(t))
	r := start(t, g, server.Options{Limits: server.Limits{MaxInFlight: 1, MaxHealthWatchesPerAddress: 2, MaxHealthWatches: 3}})
	h := healthpb.NewHealthClient(r.connect(t))
	ctx, cancel := context.WithCancel(t.Context())
	watch := func() error {
		s, err := h.Watch(ctx, &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = s.Recv()
		}
		return err
	}
	for range 2 {
		if err := watch(); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan codes.Code)
	conn := r.connect(t)
	go func() { done <- get(t.Context(), conn) }()
	<-g.entered // the one call that the limit allows
	if _, err := h.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("a health check beside too many calls: %v", err)
	}
	if err := watch(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "at most 2 health watches at once from one address (tuner serve --max-health-watches-per-address); use Health/Check") {
		t.Errorf("a health watch too many: %v", err)
	}
	close(g.leave)
	if got := <-done; got != codes.OK {
		t.Errorf("the call beside them: %s", got)
	}
	cancel()
}

// TestTokenQuotas checks the shares of calls and bytes for each token and study.
func TestTokenQuotas(t *testing.T) {
	path := tokenPath(t)
	worker, admin := addToken(t, path, server.Scope{Role: server.RoleWorker}), addToken(t, path, server.Scope{Role: server.RoleAdmin})
	call := func(t *testing.T, l server.Limits) (g *gated, try func(ctx context.Context) error) {
		g = newGated(withStudies(t))
		c := pb.NewTunerClient(start(t, g, server.Options{TokenFile: path, Limits: l}).connect(t))
		return g, func(ctx context.Context) error {
			_, err := c.GetStudy(ctx, &pb.GetStudyRequest{Name: "studies/mine"})
			return err
		}
	}
	refused := func(t *testing.T, err error, rule string) {
		t.Helper()
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), rule) {
			t.Errorf("%v, want %s", err, rule)
		}
	}
	for name, l := range map[string]struct {
		server.Limits
		rule string
	}{
		"calls of a token": {server.Limits{MaxInFlightPerToken: 1}, "at most 1 calls at once with one token (tuner serve --max-calls-per-token)"},
		"calls to a study": {server.Limits{MaxInFlightPerStudy: 1}, "at most 1 calls at once to one study (tuner serve --max-calls-per-study)"},
	} {
		t.Run(name, func(t *testing.T) {
			g, try := call(t, l.Limits)
			first := make(chan error)
			go func() { first <- try(as(t.Context(), worker)) }()
			<-g.entered
			refused(t, try(as(t.Context(), worker)), l.rule)
			close(g.leave)
			if err := <-first; err != nil {
				t.Error(err)
			}
			if err := try(as(t.Context(), worker)); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
	t.Run("the last tenth", func(t *testing.T) {
		g, try := call(t, server.Limits{MaxInFlight: 10})
		results := make(chan error, 10)
		for range 9 {
			go func() { results <- try(as(t.Context(), worker)) }()
			<-g.entered
		}
		refused(t, try(as(t.Context(), worker)), "a tenth of which are kept for admins (tuner serve --max-calls)")
		go func() { results <- try(as(t.Context(), admin)) }()
		<-g.entered
		close(g.leave)
		for range 10 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("bytes of a token", func(t *testing.T) {
		c := pb.NewTunerClient(start(t, withStudies(t), server.Options{TokenFile: path, Limits: server.Limits{WriteRate: 1000}}).connect(t))
		set := func() error {
			_, err := c.SetAttributes(as(t.Context(), worker), &pb.SetAttributesRequest{Name: "studies/mine/trials/0", Attributes: map[string]string{"a": strings.Repeat("x", 10_000)}})
			return err
		}
		if err := set(); err != nil {
			t.Error(err)
		}
		refused(t, set(), "bytes a second of changes with one token (tuner serve --write-rate)")
		if _, err := c.GetStudy(as(t.Context(), worker), &pb.GetStudyRequest{Name: "studies/mine"}); err != nil {
			t.Errorf("reading: %v", err)
		}
	})
}

// where makes a call and returns the client's end of its connection.
func where(t *testing.T, token wire.Token, c *grpc.ClientConn) string {
	t.Helper()
	var p peer.Peer
	if _, err := pb.NewTunerClient(c).GetStudy(as(t.Context(), token), &pb.GetStudyRequest{Name: "studies/mine"}, grpc.Peer(&p)); err != nil {
		t.Fatal(err)
	}
	return p.LocalAddr.String()
}

// TestHoarder checks that idle connections of one token, over HTTP/2 as over any face that
// shares the listener, do not shut out others. These take the place of the hoarder's, and an admin
// always finds one.
func TestHoarder(t *testing.T) {
	path := tokenPath(t)
	hoarder, worker := addToken(t, path, server.Scope{Role: server.RoleWorker}), addToken(t, path, server.Scope{Role: server.RoleWorker})
	admin := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	for name, l := range map[string]server.Limits{
		"per address": {MaxConnectionsPerAddress: 20},
		"in total":    {MaxConnections: 20},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, withStudies(t), server.Options{TokenFile: path, Limits: l})
			call := func(token wire.Token, c *grpc.ClientConn) {
				t.Helper()
				if _, err := pb.NewTunerClient(c).GetStudy(as(t.Context(), token), &pb.GetStudyRequest{Name: "studies/mine"}); err != nil {
					t.Fatal(err)
				}
			}
			honest := r.connect(t)
			before := where(t, worker, honest)
			var idle []*grpc.ClientConn
			for range 40 {
				c := r.connect(t)
				call(hoarder, c)
				idle = append(idle, c)
			}
			if after := where(t, worker, honest); after != before {
				t.Errorf("the connection of an honest worker, %s, was closed for a hoarder's", before)
			}
			for range 2 { // the tenth that is left
				call(admin, r.connect(t))
			}
			for range 3 {
				call(worker, r.connect(t))
			}
			r.eventually(t, "tuner_connections 19\n")
			call(hoarder, idle[0]) // its client dials again
		})
	}
}

// TestBusyHoarder checks that a connection on which a call runs is not closed for another.
// Where all are busy, the one that asks is.
func TestBusyHoarder(t *testing.T) {
	path := tokenPath(t)
	worker, admin := addToken(t, path, server.Scope{Role: server.RoleWorker}), addToken(t, path, server.Scope{Role: server.RoleAdmin})
	g := newGated(withStudies(t))
	r := start(t, g, server.Options{TokenFile: path, Limits: server.Limits{MaxConnections: 10}})
	answers := make(chan codes.Code)
	for range 9 {
		c := r.connect(t)
		go func() { answers <- get(as(t.Context(), worker), c) }()
		<-g.entered
	}
	ctx, cancel := context.WithTimeout(as(t.Context(), worker), 500*time.Millisecond)
	defer cancel()
	if got := get(ctx, r.connect(t)); got == codes.OK {
		t.Error("a tenth connection of a worker has a call")
	}
	last := r.connect(t)
	go func() { answers <- get(as(t.Context(), admin), last) }()
	<-g.entered
	close(g.leave)
	for range 10 {
		if got := <-answers; got != codes.OK {
			t.Errorf("a running call ended with %s", got)
		}
	}
}

// TestWorkerPool checks that 2,000 workers of one token on one machine keep their connections
// under the defaults, and says how long an admin's calls beside them take.
func TestWorkerPool(t *testing.T) {
	if os.Getenv("BKB_LONG") == "" {
		t.Skip("2,000 connections take some seconds; make test-ci opens them")
	}
	path := tokenPath(t)
	worker, admin := addToken(t, path, server.Scope{Role: server.RoleWorker}), addToken(t, path, server.Scope{Role: server.RoleAdmin})
	r := start(t, withStudies(t), server.Options{TokenFile: path, Limits: server.Limits{Rate: -1}})
	pool := make([]*grpc.ClientConn, 2000)
	for i := range pool {
		pool[i] = r.connect(t)
		where(t, worker, pool[i])
	}
	var waits []time.Duration
	for range 20 {
		began := time.Now()
		where(t, admin, r.connect(t))
		waits = append(waits, time.Since(began))
	}
	slices.Sort(waits)
	r.eventually(t, "tuner_connections 2020\n")
	t.Logf("an admin's first call beside %d idle connections takes %v, at most %v", len(pool), waits[len(waits)/2], waits[len(waits)-1])
}
