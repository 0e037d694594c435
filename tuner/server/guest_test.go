package server_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	optunapb "github.com/bkbtuner/bkb/proto/optuna"
	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/server"
)

// visitor is a guest that answers some calls.
type visitor struct {
	optunapb.UnimplementedStorageServiceServer
	hold chan struct{} // GetAllStudies waits for it
}

func (v visitor) CreateNewStudy(context.Context, *optunapb.CreateNewStudyRequest) (*optunapb.CreateNewStudyReply, error) {
	return &optunapb.CreateNewStudyReply{StudyId: 7}, nil
}

func (v visitor) DeleteStudy(context.Context, *optunapb.DeleteStudyRequest) (*optunapb.DeleteStudyReply, error) {
	return nil, status.Error(codes.NotFound, "no such study")
}

// GetTrials answers with more bytes than other calls may.
func (v visitor) GetTrials(context.Context, *optunapb.GetTrialsRequest) (*optunapb.GetTrialsReply, error) {
	return &optunapb.GetTrialsReply{Trials: []*optunapb.Trial{{DatetimeStart: strings.Repeat("x", 20<<20)}}}, nil
}

func (v visitor) GetTrial(context.Context, *optunapb.GetTrialRequest) (*optunapb.GetTrialReply, error) {
	panic("visitor")
}

func (v visitor) GetAllStudies(context.Context, *optunapb.GetAllStudiesRequest) (*optunapb.GetAllStudiesReply, error) {
	v.hold <- struct{}{}
	time.Sleep(50 * time.Millisecond)
	return &optunapb.GetAllStudiesReply{}, nil
}

func guest(v visitor) server.Guest {
	return server.Guest{
		Name: "optuna", Service: &optunapb.StorageService_ServiceDesc, Handler: v,
		Subject: func(request, _ any) string {
			if _, ok := request.(*optunapb.CreateNewStudyRequest); ok {
				return "a new study"
			}
			return ""
		},
	}
}

// dialGuest returns a client of a guest, with the limit on answers that Optuna's has.
func dialGuest(t *testing.T, address string) optunapb.StorageServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return optunapb.NewStorageServiceClient(conn)
}

// A guest's callers need neither token nor TLS and reach no other service. Their calls
// are in the audit, the metrics and the limits, and finish before the server stops.
func TestGuest(t *testing.T) {
	var log syncBuffer
	tokens, audit := tokenPath(t), filepath.Join(t.TempDir(), "audit.jsonl")
	admin := addToken(t, tokens, server.Scope{Role: server.RoleAdmin})
	var address string
	v := visitor{hold: make(chan struct{})}
	r := start(t, withStudies(t), server.Options{TokenFile: tokens, AuditFile: audit, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(s *server.Server) {
		l, err := s.ListenGuest("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address = l.Addr().String()
		if err := s.Host(guest(v), l); err != nil {
			t.Fatal(err)
		}
	})
	c := dialGuest(t, address)
	if reply, err := c.CreateNewStudy(t.Context(), &optunapb.CreateNewStudyRequest{}); err != nil || reply.StudyId != 7 {
		t.Fatal(reply, err)
	}
	if _, err := c.DeleteStudy(t.Context(), &optunapb.DeleteStudyRequest{}); status.Code(err) != codes.NotFound || status.Convert(err).Message() != "no such study" {
		t.Error(err)
	}
	if reply, err := c.GetTrials(t.Context(), &optunapb.GetTrialsRequest{}); err != nil || len(reply.Trials[0].DatetimeStart) != 20<<20 {
		t.Error(err)
	}
	if _, err := c.GetTrial(t.Context(), &optunapb.GetTrialRequest{}); status.Code(err) != codes.Internal {
		t.Error(err)
	}
	if _, err := c.CreateNewStudy(t.Context(), &optunapb.CreateNewStudyRequest{StudyName: strings.Repeat("x", 2<<20)}); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	// The two addresses have nothing in common.
	there, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if _, err := pb.NewTunerClient(there).ListStudies(as(t.Context(), admin), &pb.ListStudiesRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("our service at the guest's address: %v", err)
	}
	if _, err := healthpb.NewHealthClient(there).Check(t.Context(), &healthpb.HealthCheckRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("health at the guest's address: %v", err)
	}
	here := optunapb.NewStorageServiceClient(r.connect(t))
	for what, ctx := range map[string]context.Context{"stranger": t.Context(), "admin": as(t.Context(), admin)} {
		if _, err := here.CreateNewStudy(ctx, &optunapb.CreateNewStudyRequest{}); err == nil {
			t.Errorf("the guest at our address serves a %s", what)
		}
	}
	metrics := r.MetricsText()
	for _, want := range []string{
		`tuner_requests_total{code="OK",method="/optuna.StorageService/CreateNewStudy"} 1`,
		`tuner_requests_total{code="NotFound",method="/optuna.StorageService/DeleteStudy"} 1`,
		`tuner_panics_total 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.GetAllStudies(context.Background(), &optunapb.GetAllStudiesRequest{})
		ended <- err
	}()
	<-v.hold
	r.stop()
	if err := <-ended; err != nil {
		t.Errorf("a call in progress at the end: %v", err)
	}
	text, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); len(lines) != 1 || !strings.Contains(lines[0], `"who":"optuna","what":"CreateNewStudy","on":"a new study"`) {
		t.Errorf("the audit is %s", text)
	}
}

// A guest is not served to other machines unless that is allowed, also with TLS and
// tokens for the other callers.
func TestGuestExposed(t *testing.T) {
	tokens := tokenPath(t)
	addToken(t, tokens, server.Scope{Role: server.RoleAdmin})
	for _, allowed := range []bool{false, true} {
		o := server.Options{TokenFile: tokens, InsecureAllowRemote: allowed}
		s, err := server.New(withStudies(t), o)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.ListenGuest("0.0.0.0:0")
		if allowed != (err == nil) || err != nil && !strings.Contains(err.Error(), "refusing to listen on 0.0.0.0:0, because other machines can reach it") {
			t.Errorf("allowed %t: %v", allowed, err)
		}
		if l != nil {
			l.Close()
		}
		open, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close()
		if err := s.Host(guest(visitor{}), open); allowed != (err == nil) {
			t.Errorf("allowed %t: %v", allowed, err)
		}
	}
	if err := (server.Options{GuestAddress: "nowhere"}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "GuestAddress: ") {
		t.Error(err)
	}
}

// A guest with a service that is served already is refused.
func TestGuestTwice(t *testing.T) {
	s, err := server.New(withStudies(t), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.ListenGuest("unix:" + filepath.Join(t.TempDir(), "g"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := s.Host(server.Guest{Name: "health", Service: &healthpb.Health_ServiceDesc}, l); err == nil || !strings.Contains(err.Error(), "served already") {
		t.Error(err)
	}
}
