package torture

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// attacked is the real program with tokens, where others can reach it by TCP.
type attacked struct {
	*serving
	log           *syncBuffer
	admin, worker wire.Token
}

// attack starts a server to attack. It has the study s.
func attack(t *testing.T, flags ...string) *attacked {
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if a.serving, err = serveAt(t, filepath.Join(folder, "tuner.db"), address, a.log, nil, append(flags, "--tokens", tokens)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.kill)
	if _, err := pb.NewTunerClient(plain(t, address)).CreateStudy(showing(t.Context(), a.admin), &pb.CreateStudyRequest{StudyId: "s", Spec: &pb.StudySpec{
		Space:      `{"version":1,"parameters":{"x":{"type":"float","low":0.0,"high":1.0}}}`,
		Objectives: []*pb.Objective{{Name: "loss", Direction: pb.Direction_DIRECTION_MINIMIZE}},
		Proposer:   &pb.Component{Name: "random"},
	}}); err != nil {
		t.Fatal(err)
	}
	return a
}

func showing(ctx context.Context, token wire.Token) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token.Reveal())
}

// others has an admin call during an attack, over a connection from before it and over
// new ones, and fails if a call does. It logs the worst wait.
func (a *attacked) others(t *testing.T, during func()) {
	t.Helper()
	old := plain(t, a.address)
	call := func(conn pb.TunerClient) time.Duration {
		ctx, cancel := context.WithTimeout(showing(t.Context(), a.admin), 20*time.Second)
		defer cancel()
		begun := time.Now()
		if _, err := conn.GetStudy(ctx, &pb.GetStudyRequest{Name: "studies/s"}); err != nil {
			t.Errorf("an admin's call during the attack: %v", err)
		}
		return time.Since(begun)
	}
	call(pb.NewTunerClient(old))
	during()
	var worst time.Duration
	n := 0
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end) && !t.Failed(); n += 2 {
		worst = max(worst, call(pb.NewTunerClient(old)), call(pb.NewTunerClient(plain(t, a.address))))
		time.Sleep(20 * time.Millisecond)
	}
	figures(t, "%d calls of an admin during the attack, the worst wait %.0f ms", n, worst.Seconds()*1000)
}

// bitten fails unless the log says that a limit was reached.
func (a *attacked) bitten(t *testing.T, limit string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(a.log.String(), "limit="+limit+" ") {
			return
		}
	}
	t.Errorf("the log does not say that the limit %s was reached:\n%s", limit, a.log.String())
}

// TestHealthWatchFlood: callers without a token who watch the health of a server on
// thousands of streams take nobody's place.
func TestHealthWatchFlood(t *testing.T) {
	a := attack(t)
	a.others(t, func() {
		var group sync.WaitGroup
		for range 33 {
			conn := plain(t, a.address)
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
	if answer, err := healthpb.NewHealthClient(plain(t, a.address)).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil || answer.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("a health check: %v, %v", answer, err)
	}
}

// TestIdleConnections: callers without a token who open thousands of connections, from
// several addresses, silent ones and such that begin to speak HTTP/2, take nobody's place.
func TestIdleConnections(t *testing.T) {
	a := attack(t)
	a.others(t, func() {
		for i := range 2200 {
			from := 2
			if i >= 700 {
				from += i % 8
			}
			d := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(from))}}
			c, err := d.DialContext(t.Context(), "tcp", a.address)
			if err != nil {
				lacking(t, "connection %d cannot be opened: %v", i, err)
			}
			t.Cleanup(func() { _ = c.Close() })
			if i%2 == 0 {
				_, _ = c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
			}
		}
	})
	a.bitten(t, "strangers-per-address")
	a.bitten(t, "strangers")
}

// TestWatchesOfOneToken: a worker that opens more watches than the server has for all
// leaves some to others, and to admins more than to workers.
func TestWatchesOfOneToken(t *testing.T) {
	a := attack(t)
	a.others(t, func() {
		refused := make(chan error, 1200)
		for i := range 10 {
			c := pb.NewTunerClient(plain(t, a.address))
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
		stream, err := pb.NewTunerClient(plain(t, a.address)).Watch(showing(t.Context(), a.admin), &pb.WatchRequest{Parent: "studies/s"})
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			t.Errorf("an admin's watch: %v", err)
		}
	})
	a.bitten(t, "watches-per-token")
}

// TestReportFlood: a worker that reports without pause fills its study and nothing else;
// its trials can still be told, and other studies go on.
func TestReportFlood(t *testing.T) {
	a := attack(t, "--max-study-bytes", "20000000")
	before := memoryMB(t, a.cmd.Process.Pid)
	c := pb.NewTunerClient(plain(t, a.address))
	create := func(name string) {
		t.Helper()
		if _, err := c.CreateStudy(showing(t.Context(), a.admin), &pb.CreateStudyRequest{StudyId: name, Spec: &pb.StudySpec{
			Space:      `{"version":1,"parameters":{"x":{"type":"float","low":0.0,"high":1.0}}}`,
			Objectives: []*pb.Objective{{Name: "loss", Direction: pb.Direction_DIRECTION_MINIMIZE}},
			Proposer:   &pb.Component{Name: "random"},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	create("flooded")
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
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "at most 20000000 in one study (tuner serve --max-study-bytes)") {
			t.Errorf("after %d trials: %v", told, err)
		}
		figures(t, "the study was full after %d trials, memory went from %.0f to %.0f MB", told, before, memoryMB(t, a.cmd.Process.Pid))
	})
	a.bitten(t, "study-bytes")
	if _, err := c.Ask(showing(t.Context(), a.worker), &pb.AskRequest{Parent: "studies/s"}); err != nil {
		t.Errorf("asking another study: %v", err)
	}
}

// TestConnectionChurn: callers without a token who open connections without pause, from
// the address that others have too, do not keep these from calling over new connections.
func TestConnectionChurn(t *testing.T) {
	a := attack(t)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var opened atomic.Int64
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
				_, _ = c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
				opened.Add(1)
				if open = append(open, c); len(open) == 200 {
					_ = open[0].Close()
					open = open[1:]
				}
			}
		})
	}
	var worst time.Duration
	n := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end) && !t.Failed(); n++ {
		c, err := client.Dial(a.address, client.Options{Plaintext: true, Token: a.admin})
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
	figures(t, "%d calls of an admin over new connections from the address of an attacker who opened %d in 3 s, the worst wait %.0f ms", n, opened.Load(), worst.Seconds()*1000)
}
