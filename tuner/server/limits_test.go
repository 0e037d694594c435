package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/artifacts"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// TestTooLarge checks that large messages are refused and the connection stays open.
func TestTooLarge(t *testing.T) {
	r := start(t, withStudies(t), server.Options{})
	conn := r.connect(t)
	c := pb.NewTunerClient(conn)
	_, err := c.Tell(t.Context(), &pb.TellRequest{Name: "studies/mine/trials/0", Outcome: &pb.Outcome{Message: strings.Repeat("x", 1<<20)}})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message of 1 MiB: %v", err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x", strings.Repeat("y", 16<<10))
	if got := get(ctx, conn); got == codes.OK {
		t.Error("headers of 16 KiB were taken")
	}
	if got := get(t.Context(), conn); got != codes.OK {
		t.Errorf("afterwards: %s", got)
	}
}

// gated is a service in which reads of studies wait.
type gated struct {
	tuner.Service
	entered chan struct{}
	leave   chan struct{}
}

func newGated(s tuner.Service) *gated {
	return &gated{Service: s, entered: make(chan struct{}, 100), leave: make(chan struct{})}
}

func (g *gated) Study(ctx context.Context, name string) (tuner.Study, error) {
	g.entered <- struct{}{}
	select {
	case <-g.leave:
		return g.Service.Study(ctx, name)
	case <-ctx.Done():
		return tuner.Study{}, ctx.Err()
	}
}

// TestBytesInFlight checks that one request too many is refused with a time to retry,
// and that nothing stays counted.
func TestBytesInFlight(t *testing.T) {
	g := newGated(withStudies(t))
	request := &pb.GetStudyRequest{Name: "studies/mine"}
	r := start(t, g, server.Options{Limits: server.Limits{MaxInFlightBytes: 3*proto.Size(request) + 1}})
	c := pb.NewTunerClient(r.connect(t))
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if _, err := c.GetStudy(t.Context(), request); err != nil {
				t.Error(err)
			}
		})
		<-g.entered
	}
	_, err := c.GetStudy(t.Context(), request)
	if a, _ := wire.ReadError(err); status.Code(err) != codes.ResourceExhausted || a.RetryAfter <= 0 {
		t.Errorf("the fourth: %v", err)
	}
	close(g.leave)
	group.Wait()
	for range 10 {
		if _, err := c.GetStudy(t.Context(), request); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		c.GetStudy(t.Context(), &pb.GetStudyRequest{Name: "nonsense"})
	}
	if text := r.MetricsText(); !strings.Contains(text, "tuner_in_flight_bytes 0\n") || !strings.Contains(text, `tuner_limited_total{limit="bytes"} 1`) {
		t.Errorf("metrics: %s", text)
	}
}

// TestCallsInFlight checks that calls and watches over their limits are refused.
func TestCallsInFlight(t *testing.T) {
	g := newGated(withStudies(t))
	r := start(t, g, server.Options{Limits: server.Limits{MaxInFlight: 2, MaxWatches: 1}})
	c := pb.NewTunerClient(r.connect(t))
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() { c.GetStudy(t.Context(), &pb.GetStudyRequest{Name: "studies/mine"}) })
		<-g.entered
	}
	if _, err := c.GetTrial(t.Context(), &pb.GetTrialRequest{Name: "studies/mine/trials/0"}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a third call: %v", err)
	}
	close(g.leave)
	group.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch := func() error {
		s, err := c.Watch(ctx, &pb.WatchRequest{Parent: "studies/mine"})
		if err == nil {
			_, err = s.Recv()
		}
		return err
	}
	if err := watch(); err != nil {
		t.Errorf("a watch: %v", err)
	}
	if err := watch(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a second watch: %v", err)
	}
}

// TestRates checks that each token has its own rate, and that failures have theirs.
func TestRates(t *testing.T) {
	path := tokenPath(t)
	one, two := addToken(t, path, server.Scope{Role: server.RoleRead}), addToken(t, path, server.Scope{Role: server.RoleRead})
	r := start(t, withStudies(t), server.Options{TokenFile: path, Limits: server.Limits{Rate: 1e-6, Burst: 3, AuthFailureRate: 1e-6}})
	conn := r.connect(t)
	for range 3 {
		if got := get(as(t.Context(), one), conn); got != codes.OK {
			t.Errorf("within the burst: %s", got)
		}
	}
	if got := get(as(t.Context(), one), conn); got != codes.ResourceExhausted {
		t.Errorf("beyond the burst: %s", got)
	}
	wrong := wire.NewToken("bkb_wrong")
	if got := get(as(t.Context(), wrong), conn); got != codes.Unauthenticated {
		t.Errorf("a first failure: %s", got)
	}
	if got := get(as(t.Context(), wrong), conn); got != codes.ResourceExhausted {
		t.Errorf("a second failure: %s", got)
	}
	if got := get(as(t.Context(), two), conn); got != codes.OK {
		t.Errorf("another token: %s", got)
	}
}

// curious is a service that returns the deadline of each call.
type curious struct {
	tuner.Service
	left chan time.Duration
}

func (s *curious) Study(ctx context.Context, name string) (tuner.Study, error) {
	end, _ := ctx.Deadline()
	s.left <- time.Until(end)
	return s.Service.Study(ctx, name)
}

func (s *curious) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	end, _ := ctx.Deadline()
	s.left <- time.Until(end)
	return s.Service.Ask(ctx, name, c)
}

// TestDefaultDeadlines checks that calls without a deadline get one, and asks a longer
// one.
func TestDefaultDeadlines(t *testing.T) {
	s := &curious{withStudies(t), make(chan time.Duration, 1)}
	r := start(t, s, server.Options{Limits: server.Limits{CallTimeout: time.Hour, AskTimeout: 3 * time.Hour}})
	conn := r.connect(t)
	get(t.Context(), conn)
	if left := <-s.left; left <= 0 || left > time.Hour {
		t.Errorf("a look has %s", left)
	}
	pb.NewTunerClient(conn).Ask(t.Context(), &pb.AskRequest{Parent: "studies/mine"})
	if left := <-s.left; left <= time.Hour || left > 3*time.Hour {
		t.Errorf("an ask has %s", left)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
	defer cancel()
	get(ctx, conn)
	if left := <-s.left; left <= 3*time.Hour {
		t.Errorf("a look of a patient caller has %s", left)
	}
}

// TestPages checks that lists too large for one message come in several pages.
func TestPages(t *testing.T) {
	service := wiretest.New(t)
	r := start(t, service, server.Options{Limits: server.Limits{MaxSendBytes: 2000, Rate: -1}})
	c := pb.NewTunerClient(r.connect(t))
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		if _, err := c.CreateStudy(t.Context(), createRequest(name)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ask(t.Context(), &pb.AskRequest{Parent: "studies/a", Worker: strings.Repeat("w", 100), New: true}); err != nil {
			t.Fatal(err)
		}
	}
	seen, pages := "", 0
	for token := ""; pages == 0 || token != ""; pages++ {
		p, err := c.ListStudies(t.Context(), &pb.ListStudiesRequest{PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Studies {
			seen += strings.TrimPrefix(s.Name, "studies/")
		}
		token = p.NextPageToken
	}
	if seen != "abcdefghij" || pages < 2 {
		t.Errorf("%d pages of studies with %q", pages, seen)
	}
	trials, pages := 0, 0
	for token := ""; pages == 0 || token != ""; pages++ {
		p, err := c.ListTrials(t.Context(), &pb.ListTrialsRequest{Parent: "studies/a", PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range p.Trials {
			if trial.Number != int64(trials) {
				t.Fatalf("trial %d came where %d was due", trial.Number, trials)
			}
			trials++
		}
		token = p.NextPageToken
	}
	if trials != 10 || pages < 2 {
		t.Errorf("%d pages with %d trials", pages, trials)
	}
}

func TestReflectionAndHealth(t *testing.T) {
	for _, on := range []bool{false, true} {
		r := start(t, withStudies(t), server.Options{Reflection: on})
		conn := r.connect(t)
		s, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
		if err == nil {
			s.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
			_, err = s.Recv()
		}
		if (err == nil) != on {
			t.Errorf("reflection on: %t, but %v", on, err)
		}
		if s != nil {
			s.CloseSend()
		}
		h, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{Service: pb.Tuner_ServiceDesc.ServiceName})
		if err != nil {
			t.Fatal(err)
		}
		if m, err := h.Recv(); err != nil || m.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health: %v, %v", m, err)
		}
		stopped := make(chan struct{})
		go func() { r.stop(); close(stopped) }()
		// The drain delay of tests is too short for the last status to arrive for
		// certain. The stream ends in any case.
		if m, err := h.Recv(); err == nil && m.Status != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("health while stopping: %v", m)
		}
		<-stopped
	}
}

// faulty is a service that panics, or fails with errors that callers must not see.
type faulty struct {
	tuner.Service
	secret string
}

func (f *faulty) Study(context.Context, string) (tuner.Study, error) { panic(f.secret) }

func (f *faulty) Best(context.Context, string) ([]study.Trial, error) {
	return nil, errors.New("open " + f.secret)
}

func (f *faulty) Watch(context.Context, string, tuner.From) iter.Seq2[tuner.Event, error] {
	panic(f.secret)
}

// TestFaults checks that a panic fails one call with an internal error. The server
// continues, and logs what it hides from the caller.
func TestFaults(t *testing.T) {
	const secret = "/var/lib/secret"
	var log syncBuffer
	r := start(t, &faulty{withStudies(t), secret}, server.Options{Logger: log.logger()})
	conn := r.connect(t)
	c := pb.NewTunerClient(conn)
	watch := func() error {
		s, err := c.Watch(t.Context(), &pb.WatchRequest{Parent: "studies/mine"})
		if err == nil {
			_, err = s.Recv()
		}
		return err
	}
	_, study := c.GetStudy(t.Context(), &pb.GetStudyRequest{Name: "studies/mine"})
	_, best := c.GetBest(t.Context(), &pb.GetBestRequest{Parent: "studies/mine"})
	for name, err := range map[string]error{"panic": study, "panic in a stream": watch(), "error": best} {
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		_, rest, _ := strings.Cut(status.Convert(err).Message(), "error id ")
		if id := strings.TrimSuffix(rest, ")"); id == "" || !strings.Contains(log.String(), id) {
			t.Errorf("%s: the log has nothing under the id of %v", name, err)
		}
	}
	if !strings.Contains(log.String(), secret) {
		t.Error("the log does not have the faults")
	}
	if _, err := c.GetTrial(t.Context(), &pb.GetTrialRequest{Name: "studies/mine/trials/0"}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if text := r.MetricsText(); !strings.Contains(text, "tuner_panics_total 2\n") {
		t.Errorf("metrics: %s", text)
	}
}

// TestCanary checks that no token and no key appears in logs, errors, metrics, the file
// or a backup of it, in any use.
func TestCanary(t *testing.T) {
	var seen syncBuffer
	path := tokenPath(t)
	admin := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	worker := addToken(t, path, server.Scope{Role: server.RoleWorker})
	reader := addToken(t, path, server.Scope{Role: server.RoleRead})
	wrong := wire.NewToken("bkb_canary-that-never-was")
	authority := wiretest.NewAuthority(t)
	pair := authority.Issue(t, "server", "127.0.0.1")
	db := filepath.Join(t.TempDir(), "tuner.db")
	service := onDisk(t, db)
	r := start(t, service, server.Options{
		TokenFile: path, CertFile: pair.CertFile, KeyFile: pair.KeyFile, Logger: seen.logger(), Reflection: true, Limits: server.Limits{Rate: 50, Burst: 60},
	})
	conn := r.connect(t, trusting(t, authority, nil))
	for _, token := range []wire.Token{admin, worker, reader, wrong} {
		// While the study is neither paused nor finished.
		if _, err := pb.NewTunerClient(conn).Ask(as(t.Context(), token), &pb.AskRequest{Parent: "studies/theirs"}); (err == nil) != (token == admin || token == worker) {
			t.Errorf("asking: %v", err)
		}
		for name, try := range methods(conn) {
			ctx, cancel := context.WithCancel(as(t.Context(), token))
			if err := try(ctx); err != nil {
				io.WriteString(&seen, name+": "+err.Error()+status.Convert(err).Proto().String())
			}
			cancel()
		}
	}
	backup := backedUp(t, conn, as(t.Context(), admin))
	r.stop()
	io.WriteString(&seen, r.MetricsText())
	if !strings.Contains(seen.String(), "msg=call") {
		t.Error("nothing was logged: this was no test")
	}
	if !strings.Contains(backup, "a-worker-of-the-canary") {
		t.Error("the backup does not have what was stored: this was no test")
	}
	if err := service.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	secrets := strings.Fields(string(key))[4:6] // lines of base64 within the armour
	for _, token := range []wire.Token{admin, worker, reader, wrong} {
		secrets = append(secrets, token.Reveal(), token.Reveal()[4:20])
	}
	for where, text := range map[string]string{"logs, errors or metrics": seen.String(), "the backup": backup, "the file": string(file)} {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("a secret shows in %s: …%s…", where, secret)
			}
		}
	}
}

// fromDisk is a service over a file.
func fromDisk(t testing.TB, path string) *engine.Engine {
	t.Helper()
	st, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tn := engine.Open(st, engine.Options{LongLived: true, Artifacts: artifacts.Beside(path, 0)})
	t.Cleanup(func() { tn.Close() })
	return tn
}

// onDisk returns a service over a new file, with the studies mine and theirs.
func onDisk(t testing.TB, path string) *engine.Engine {
	t.Helper()
	tn := fromDisk(t, path)
	for _, name := range []string{"mine", "theirs"} {
		_, c, _, err := wire.DecodeCreate(createRequest(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tn.CreateStudy(t.Context(), name, c); err != nil {
			t.Fatal(err)
		}
		if _, err := tn.Ask(t.Context(), name, study.Ask{Worker: "a-worker-of-the-canary"}); err != nil {
			t.Fatal(err)
		}
	}
	return tn
}

// backedUp returns a backup as a caller receives it.
func backedUp(t testing.TB, conn *grpc.ClientConn, ctx context.Context) string {
	t.Helper()
	stream, err := pb.NewTunerClient(conn).Backup(ctx, &pb.BackupRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return whole.String()
		} else if err != nil {
			t.Fatal(err)
		}
		whole.Write(m.GetChunk())
	}
}

// TestMetrics checks that metrics are served on their own listener.
func TestMetrics(t *testing.T) {
	var log syncBuffer
	r := start(t, withStudies(t), server.Options{MetricsAddress: "127.0.0.1:0", Logger: log.logger()})
	conn := r.connect(t)
	get(t.Context(), conn)
	conn.Invoke(t.Context(), "/made/up", &pb.GetStudyRequest{}, &pb.Study{})
	_, rest, _ := strings.Cut(log.String(), `msg="serving metrics" address=`)
	address, _, _ := strings.Cut(rest, "\n")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	fetch := func(path string) (int, []byte) {
		t.Helper()
		answer, err := (&http.Client{Transport: transport}).Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, text
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "SERVING\n"} {
		if code, text := fetch(path); code != 200 || string(text) != want {
			t.Errorf("%s: %d %q", path, code, text)
		}
	}
	for host, want := range map[string]int{"evil.example": 421, "evil.example:9090": 421, "localhost:9090": 200, "127.0.0.1": 200, "[::1]:9090": 200} {
		for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
			request, err := http.NewRequest("GET", "http://"+address+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = host
			answer, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s for the host %s: %d, want %d", path, host, answer.StatusCode, want)
			}
		}
	}
	_, text := fetch("/metrics")
	for _, want := range []string{
		`tuner_requests_total{code="OK",method="/tuner.v1.Tuner/GetStudy"} 1`, `tuner_requests_total{code="Unimplemented",method="other"} 1`,
		`tuner_request_seconds_count{method="/tuner.v1.Tuner/GetStudy"} 1`, "tuner_connections 1", "tuner_insecure_remote 0",
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestStopTimeout checks that a call that does not end does not delay the stop.
func TestStopTimeout(t *testing.T) {
	g := newGated(withStudies(t))
	r := start(t, g, server.Options{StopTimeout: 10 * time.Millisecond})
	code := make(chan codes.Code)
	conn := r.connect(t)
	go func() { code <- get(context.Background(), conn) }()
	<-g.entered
	r.stop()
	if got := <-code; got == codes.OK {
		t.Error("a call that never ended was answered")
	}
}
