package server_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a server that runs until the end of its test.
type running struct {
	*server.Server
	address string
	stop    func()
}

func start(t testing.TB, service tuner.Service, o server.Options, changes ...func(*server.Server)) *running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if o.DrainDelay == 0 {
		o.DrainDelay = time.Millisecond
	}
	s, err := server.New(service, o)
	if err != nil {
		l.Close()
		t.Fatal(err)
	}
	for _, change := range changes {
		change(s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	r := &running{Server: s, address: l.Addr().String()}
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

// eventually waits until the metrics have a line, because a peer can see an end before they do.
func (r *running) eventually(t *testing.T, line string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(r.MetricsText(), line); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s in %s", line, r.MetricsText())
		}
	}
}

// connect connects without TLS unless options say otherwise.
func (r *running) connect(t testing.TB, o ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(r.address, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, o...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func as(ctx context.Context, token wire.Token) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token.Reveal())
}

// addToken adds a token to a file.
func addToken(t testing.TB, path string, scope server.Scope) wire.Token {
	t.Helper()
	token, _, err := server.AddToken(path, scope, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func tokenPath(t testing.TB) string { return filepath.Join(t.TempDir(), "tokens.json") }

const planeText = `{"version":1,"parameters":{"x":{"type":"float","low":-1.0,"high":1.0}}}`

func createRequest(name string) *pb.CreateStudyRequest {
	return &pb.CreateStudyRequest{StudyId: name, Spec: &pb.StudySpec{
		Space:      planeText,
		Objectives: []*pb.Objective{{Name: "loss", Direction: pb.Direction_DIRECTION_MINIMIZE}},
	}}
}

// withStudies returns a service with the studies mine and theirs, each with a running
// trial.
func withStudies(t testing.TB) *wiretest.Service {
	t.Helper()
	service := wiretest.New(t)
	for _, name := range []string{"mine", "theirs"} {
		_, c, _, err := wire.DecodeCreate(createRequest(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := service.CreateStudy(context.Background(), name, c); err != nil {
			t.Fatal(err)
		}
		_, ask, _ := wire.Ask.Decode(&pb.AskRequest{Parent: "studies/" + name, Worker: "w"})
		if _, err := service.Ask(context.Background(), name, ask); err != nil {
			t.Fatal(err)
		}
	}
	return service
}
