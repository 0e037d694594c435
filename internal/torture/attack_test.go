//go:build linux

package torture

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/bkbtuner/bkb/internal/freeport"
	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// attacked is the real program with tokens, listening on TCP.
type attacked struct {
	*serving
	log           *syncBuffer
	admin, worker wire.Token
	authority     *wiretest.Authority // nil without TLS
}

// overBoth runs an attack on a server without TLS and on one with it. Everyday tests leave
// out the second where the attack is on what lies above TLS.
func overBoth(t *testing.T, above bool, f func(t *testing.T, secure bool)) {
	heavy(t)
	t.Run("plain", func(t *testing.T) { f(t, false) })
	t.Run("TLS", func(t *testing.T) {
		if above && !long() {
			t.Skip("takes seconds, and differs from the test without TLS only by the encryption; make torture and make torture-ci run it")
		}
		f(t, true)
	})
}

// long says that the tests run at full size.
func long() bool { return os.Getenv("BKB_LONG") != "" }

// while is how long an attack lasts, longer at full size.
func while(everyday, full time.Duration) time.Duration {
	if long() {
		return full
	}
	return everyday
}

// attack starts a server to attack. It has the study s.
func attack(t *testing.T, secure bool, flags ...string) *attacked {
	t.Helper()
	heavy(t)
	folder := evidence(t, seed(t))
	a := &attacked{log: new(syncBuffer)}
	tokens := filepath.Join(folder, "tokens.json")
	for role, token := range map[server.Role]*wire.Token{server.RoleAdmin: &a.admin, server.RoleWorker: &a.worker} {
		var err error
		if *token, _, err = server.AddToken(tokens, server.Scope{Role: role}, "", time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if secure {
		a.authority = wiretest.NewAuthority(t)
		pair := a.authority.Issue(t, "server", "127.0.0.1")
		flags = append(flags, "--cert", pair.CertFile, "--key", pair.KeyFile)
	}
	var err error
	if a.serving, err = serveAt(t, filepath.Join(folder, "tuner.db"), freeport.Address(t), a.log, nil, append(flags, "--tokens", tokens)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.kill)
	a.create(t, "s")
	return a
}

// create makes a study.
func (a *attacked) create(t *testing.T, name string) {
	t.Helper()
	if _, err := a.dial(t).CreateStudy(showing(t.Context(), a.admin), &pb.CreateStudyRequest{StudyId: name, Spec: &pb.StudySpec{
		Space:      `{"version":1,"parameters":{"x":{"type":"float","low":0.0,"high":1.0}}}`,
		Objectives: []*pb.Objective{{Name: "loss", Direction: pb.Direction_DIRECTION_MINIMIZE}},
		Proposer:   &pb.Component{Name: "random"},
	}}); err != nil {
		t.Fatal(err)
	}
}

// connect opens a connection with gRPC's default limits.
func (a *attacked) connect(t *testing.T) *grpc.ClientConn {
	t.Helper()
	if a.authority == nil {
		return plain(t, a.address)
	}
	return connect(t, a.address, credentials.NewTLS(a.tls(t)))
}

func (a *attacked) tls(t *testing.T) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(a.authority.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	config.RootCAs.AppendCertsFromPEM(pem)
	return config
}

// dial returns a client over its own connection.
func (a *attacked) dial(t *testing.T) pb.TunerClient {
	t.Helper()
	return pb.NewTunerClient(a.connect(t))
}

func showing(ctx context.Context, token wire.Token) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token.Reveal())
}

// others calls as an admin during an attack, over an old connection and over new ones,
// and fails if a call does. It logs the longest wait.
func (a *attacked) others(t *testing.T, during func()) {
	t.Helper()
	old := a.dial(t)
	call := func(conn pb.TunerClient) time.Duration {
		ctx, cancel := context.WithTimeout(showing(t.Context(), a.admin), time.Minute)
		defer cancel()
		begun := time.Now()
		if _, err := conn.GetStudy(ctx, &pb.GetStudyRequest{Name: "studies/s"}); err != nil {
			t.Errorf("an admin's call during the attack: %v", err)
		}
		return time.Since(begun)
	}
	call(old)
	during()
	var worst time.Duration
	n := 0
	for end := time.Now().Add(while(500*time.Millisecond, 2*time.Second)); time.Now().Before(end) && !t.Failed(); n += 2 {
		worst = max(worst, call(old), call(a.dial(t)))
		time.Sleep(20 * time.Millisecond)
	}
	figures(t, "%d calls of an admin during the attack, the worst wait %.0f ms", n, worst.Seconds()*1000)
}

// bitten fails unless the log says that a limit was reached.
func (a *attacked) bitten(t *testing.T, limit string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(a.log.String(), "limit="+limit+" ") {
			return
		}
	}
	t.Errorf("the log does not say that the limit %s was reached:\n%s", limit, a.log.String())
}

// TestHealthWatchFlood has callers without a token watch the health of a server on
// thousands of streams. They leave others their place, even if the server allows fewer
// calls at once than health watches.
func TestHealthWatchFlood(t *testing.T) { overBoth(t, true, healthWatchFlood) }

func healthWatchFlood(t *testing.T, secure bool) {
	a := attack(t, secure, "--max-calls", "24")
	a.others(t, func() {
		var group sync.WaitGroup
		for range 33 {
			conn := a.connect(t)
			for range 128 {
				group.Go(func() {
					stream, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
					if err == nil {
						_, _ = stream.Recv()
					}
				})
			}
		}
		group.Wait()
	})
	a.bitten(t, "health-watches-per-address")
	if answer, err := healthpb.NewHealthClient(a.connect(t)).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil || answer.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("a health check: %v, %v", answer, err)
	}
}

// TestIdleConnections has callers without a token open thousands of connections, from
// several addresses. They leave others their place. Half of the connections are silent,
// and the other half begins HTTP/2 or has finished the TLS handshake.
func TestIdleConnections(t *testing.T) { overBoth(t, false, idleConnections) }

func idleConnections(t *testing.T, secure bool) {
	a := attack(t, secure)
	a.others(t, func() {
		for i := range 2200 {
			from := 2
			if i >= 700 {
				from += i % 8
			}
			d := net.Dialer{Timeout: time.Minute, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(from))}}
			c, err := d.DialContext(t.Context(), "tcp", a.address)
			if err != nil {
				lacking(t, "connection %d cannot be opened: %v", i, err)
			}
			t.Cleanup(func() { _ = c.Close() })
			if i%2 == 0 {
				a.begin(t, c)
			}
		}
	})
	a.bitten(t, "strangers-per-address")
	a.bitten(t, "strangers")
}

// begin begins HTTP/2 on a connection, or does the TLS handshake. The handshake may
// fail because the server closes the connection.
func (a *attacked) begin(t *testing.T, c net.Conn) {
	if a.authority == nil {
		_, _ = c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		return
	}
	config := a.tls(t)
	config.NextProtos = []string{"h2"}
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_ = tls.Client(c, config).HandshakeContext(t.Context())
}

// TestWatchesOfOneToken has a worker open more watches than the server allows in total.
// It leaves some to other workers, and more to admins.
func TestWatchesOfOneToken(t *testing.T) { overBoth(t, true, watchesOfOneToken) }

func watchesOfOneToken(t *testing.T, secure bool) {
	a := attack(t, secure)
	a.others(t, func() {
		refused := make(chan error, 1200)
		for i := range 10 {
			c := a.dial(t)
			for range 120 {
				stream, err := c.Watch(showing(t.Context(), a.worker), &pb.WatchRequest{Parent: "studies/s"})
				if err == nil {
					_, err = stream.Recv()
				}
				if err != nil {
					refused <- fmt.Errorf("connection %d: %w", i, err)
				}
			}
		}
		if n := len(refused); n != 1000 {
			t.Errorf("%d of 1200 watches were refused, want 1000", n)
		} else if err := <-refused; !strings.Contains(err.Error(), "at most 200 watches at once with one token (tuner serve --max-watches-per-token)") {
			t.Errorf("a watch was refused with %v", err)
		}
		stream, err := a.dial(t).Watch(showing(t.Context(), a.admin), &pb.WatchRequest{Parent: "studies/s"})
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			t.Errorf("an admin's watch: %v", err)
		}
	})
	a.bitten(t, "watches-per-token")
}

// TestReportFlood has a worker report without pause. It fills only its own study. Its
// trials can still be told, and other studies continue. The study may hold 5 MB, or 20 MB
// if BKB_LONG is set.
func TestReportFlood(t *testing.T) { overBoth(t, true, reportFlood) }

func reportFlood(t *testing.T, secure bool) {
	limit := "5000000"
	if long() {
		limit = "20000000"
	}
	a := attack(t, secure, "--max-study-bytes", limit)
	before := memoryMB(t, a.cmd.Process.Pid)
	c := a.dial(t)
	a.create(t, "flooded")
	a.others(t, func() {
		ctx := showing(t.Context(), a.worker)
		var err error
		told := 0
		for err == nil && told < 100 {
			var asked *pb.AskResponse
			if asked, err = c.Ask(ctx, &pb.AskRequest{Parent: "studies/flooded", Worker: "w"}); err != nil {
				break
			}
			trial := asked.Trials[0]
			for step := 0; step < 10_000 && err == nil; step += 500 {
				_, err = c.Report(ctx, &pb.ReportRequest{Name: trial.Name, Epoch: trial.Epoch, Reports: largeReports(step, 500, 16)})
			}
			_, tellErr := c.Tell(ctx, &pb.TellRequest{Name: trial.Name, Epoch: trial.Epoch, Outcome: &pb.Outcome{State: pb.TrialState_TRIAL_STATE_INFEASIBLE}})
			if tellErr != nil {
				t.Errorf("telling a trial of a full study: %v", tellErr)
			}
			told++
		}
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "one study may hold "+limit+" (tuner serve --max-study-bytes)") {
			t.Errorf("after %d trials: %v", told, err)
		}
		figures(t, "the study was full after %d trials, memory went from %.0f to %.0f MB", told, before, memoryMB(t, a.cmd.Process.Pid))
	})
	a.bitten(t, "study-bytes")
	if _, err := c.Ask(showing(t.Context(), a.worker), &pb.AskRequest{Parent: "studies/s"}); err != nil {
		t.Errorf("asking another study: %v", err)
	}
}

// TestConnectionChurn has callers without a token open connections without pause. Other
// callers from the same address can still call over new connections.
func TestConnectionChurn(t *testing.T) { overBoth(t, false, connectionChurn) }

func connectionChurn(t *testing.T, secure bool) {
	a := attack(t, secure)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var opened atomic.Int64
	hello := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	if secure { // the beginning of a handshake of 512 bytes
		hello = []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc")
	}
	for range 4 {
		group.Go(func() {
			var open []net.Conn
			defer func() {
				for _, c := range open {
					_ = c.Close()
				}
			}()
			for ctx.Err() == nil {
				c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", a.address)
				if err != nil {
					continue
				}
				if _, err := c.Write(hello); err != nil {
					_ = c.Close()
					continue
				}
				opened.Add(1)
				if open = append(open, c); len(open) == 200 {
					_ = open[0].Close()
					open = open[1:]
				}
			}
		})
	}
	o := client.Options{Plaintext: !secure, Token: a.admin}
	if secure {
		o.CAFile = a.authority.CAFile
	}
	var worst time.Duration
	n := 0
	lasts := while(300*time.Millisecond, 3*time.Second)
	for end := time.Now().Add(lasts); time.Now().Before(end) && !t.Failed(); n++ {
		c, err := client.Dial(a.address, o)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := c.Study(t.Context(), "s"); err != nil {
			t.Errorf("a call over a new connection: %v", err)
		}
		worst = max(worst, time.Since(begun))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	figures(t, "%d calls of an admin over new connections from the address of an attacker who opened %d in %s, the worst wait %.0f ms", n, opened.Load(), lasts, worst.Seconds()*1000)
}

// TestPipelining has 200 connections of one token send requests over HTTP without waiting
// for the answers, while an admin calls. Some name a path that does not exist, or no token.
func TestPipelining(t *testing.T) {
	if !long() {
		t.Skip("takes seconds, and TestPace of tuner/web tries the limit by a clock of its own; CI, make torture and make torture-ci run it")
	}
	overBoth(t, true, pipelining)
}

func pipelining(t *testing.T, secure bool) {
	address := freeport.Address(t)
	a := attack(t, secure, "--http", address)
	const body = `{"name":"studies/s"}`
	var answers atomic.Int64
	a.others(t, func() {
		for i := range 200 {
			var c net.Conn
			var err error
			if secure {
				c, err = tls.Dial("tcp", address, a.tls(t))
			} else {
				c, err = net.Dial("tcp", address)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			line, token := "POST /tuner.v1.Tuner/GetStudy", "Authorization: Bearer "+a.worker.Reveal()+"\r\n"
			switch i % 4 {
			case 1:
				token = ""
			case 2:
				line = "POST /nothing/here"
			case 3:
				line = "GET /readyz"
			}
			request := fmt.Sprintf("%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", line, address, token, len(body), body)
			go func() {
				for _, err := c.Write([]byte(strings.Repeat(request, 32))); err == nil; _, err = c.Write([]byte(strings.Repeat(request, 32))) {
				}
			}()
			go func() {
				buffer := make([]byte, 64<<10)
				for {
					n, err := c.Read(buffer)
					answers.Add(int64(bytes.Count(buffer[:n], []byte("HTTP/1.1 "))))
					if err != nil {
						return
					}
				}
			}()
		}
		time.Sleep(time.Second)
	})
	figures(t, "%d answers over HTTP", answers.Load())
	if answers.Load() == 0 {
		t.Error("nothing was answered: this was no attack")
	}
}
