package server_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// methods returns calls of every method on the study mine. A call that passes the
// permissions may fail otherwise.
func methods(conn *grpc.ClientConn) map[string]func(context.Context) error {
	c := pb.NewTunerClient(conn)
	const parent, trial = "studies/mine", "studies/mine/trials/0"
	first := func(recv func() error, err error) error {
		if err != nil {
			return err
		}
		if err := recv(); !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	}
	of := func(_ any, err error) error { return err }
	return map[string]func(context.Context) error{
		"CreateStudy": func(ctx context.Context) error { return of(c.CreateStudy(ctx, createRequest("mine"))) },
		"GetStudy":    func(ctx context.Context) error { return of(c.GetStudy(ctx, &pb.GetStudyRequest{Name: parent})) },
		"ListStudies": func(ctx context.Context) error { return of(c.ListStudies(ctx, &pb.ListStudiesRequest{})) },
		"DeleteStudy": func(ctx context.Context) error {
			return of(c.DeleteStudy(ctx, &pb.DeleteStudyRequest{Name: parent, Uid: 99}))
		},
		"PauseStudy": func(ctx context.Context) error { return of(c.PauseStudy(ctx, &pb.PauseStudyRequest{Name: parent})) },
		"ExtendStudy": func(ctx context.Context) error {
			return of(c.ExtendStudy(ctx, &pb.ExtendStudyRequest{Name: parent}))
		},
		"ResumeStudy": func(ctx context.Context) error { return of(c.ResumeStudy(ctx, &pb.ResumeStudyRequest{Name: parent})) },
		"FinishStudy": func(ctx context.Context) error { return of(c.FinishStudy(ctx, &pb.FinishStudyRequest{Name: parent})) },
		"SetAttributes": func(ctx context.Context) error {
			return of(c.SetAttributes(ctx, &pb.SetAttributesRequest{Name: trial}))
		},
		"SetAttributes of a study": func(ctx context.Context) error {
			return of(c.SetAttributes(ctx, &pb.SetAttributesRequest{Name: parent}))
		},
		"Ask":       func(ctx context.Context) error { return of(c.Ask(ctx, &pb.AskRequest{Parent: parent, Worker: "w"})) },
		"Tell":      func(ctx context.Context) error { return of(c.Tell(ctx, &pb.TellRequest{Name: trial})) },
		"Report":    func(ctx context.Context) error { return of(c.Report(ctx, &pb.ReportRequest{Name: trial})) },
		"Heartbeat": func(ctx context.Context) error { return of(c.Heartbeat(ctx, &pb.HeartbeatRequest{Name: trial})) },
		"EnqueueTrial": func(ctx context.Context) error {
			return of(c.EnqueueTrial(ctx, &pb.EnqueueTrialRequest{Parent: parent}))
		},
		"AddTrial":    func(ctx context.Context) error { return of(c.AddTrial(ctx, &pb.AddTrialRequest{Parent: parent})) },
		"AddTrials":   func(ctx context.Context) error { return of(c.AddTrials(ctx, &pb.AddTrialsRequest{Parent: parent})) },
		"GetTrial":    func(ctx context.Context) error { return of(c.GetTrial(ctx, &pb.GetTrialRequest{Name: trial})) },
		"ListTrials":  func(ctx context.Context) error { return of(c.ListTrials(ctx, &pb.ListTrialsRequest{Parent: parent})) },
		"ListReports": func(ctx context.Context) error { return of(c.ListReports(ctx, &pb.ListReportsRequest{Parent: trial})) },
		"GetBest":     func(ctx context.Context) error { return of(c.GetBest(ctx, &pb.GetBestRequest{Parent: parent})) },
		"GetColumns": func(ctx context.Context) error {
			s, err := c.GetColumns(ctx, &pb.GetColumnsRequest{Parent: parent})
			return first(func() error { return of(s.Recv()) }, err)
		},
		"GetDiagnosis": func(ctx context.Context) error {
			return of(c.GetDiagnosis(ctx, &pb.GetDiagnosisRequest{Parent: parent}))
		},
		"GetImportance": func(ctx context.Context) error {
			return of(c.GetImportance(ctx, &pb.GetImportanceRequest{Parent: parent}))
		},
		"Predict": func(ctx context.Context) error {
			return of(c.Predict(ctx, &pb.PredictRequest{Parent: parent}))
		},
		"WriteArtifact": func(ctx context.Context) error {
			return of(c.WriteArtifact(ctx, &pb.WriteArtifactRequest{Name: trial}))
		},
		"ReadArtifact": func(ctx context.Context) error { return of(c.ReadArtifact(ctx, &pb.ReadArtifactRequest{Name: trial})) },
		"ListArtifacts": func(ctx context.Context) error {
			return of(c.ListArtifacts(ctx, &pb.ListArtifactsRequest{Parent: trial}))
		},
		"DeleteArtifact": func(ctx context.Context) error {
			return of(c.DeleteArtifact(ctx, &pb.DeleteArtifactRequest{Name: trial}))
		},
		"Watch": func(ctx context.Context) error {
			s, err := c.Watch(ctx, &pb.WatchRequest{Parent: parent})
			return first(func() error { return of(s.Recv()) }, err)
		},
		"WatchStudies": func(ctx context.Context) error {
			s, err := c.WatchStudies(ctx, &pb.WatchStudiesRequest{})
			return first(func() error { return of(s.Recv()) }, err)
		},
		"GetCaller": func(ctx context.Context) error { return of(c.GetCaller(ctx, &pb.GetCallerRequest{})) },
		"Backup": func(ctx context.Context) error {
			s, err := c.Backup(ctx, &pb.BackupRequest{})
			return first(func() error { return of(s.Recv()) }, err)
		},
		"Health.Check": func(ctx context.Context) error {
			return of(healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}))
		},
		"Reflection": func(ctx context.Context) error {
			s, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
			if err != nil {
				return err
			}
			s.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
			return first(func() error { return of(s.Recv()) }, nil)
		},
	}
}

// TestPermissions calls every method with every kind of caller.
func TestPermissions(t *testing.T) {
	const (
		unknown = codes.Unauthenticated
		denied  = codes.PermissionDenied
		passed  = codes.OK // by the permissions, though the call itself may fail
	)
	path := tokenPath(t)
	callers := map[string]wire.Token{
		"admin":                   addToken(t, path, server.Scope{Role: server.RoleAdmin}),
		"read":                    addToken(t, path, server.Scope{Role: server.RoleRead}),
		"worker":                  addToken(t, path, server.Scope{Role: server.RoleWorker}),
		"worker of this study":    addToken(t, path, server.Scope{Role: server.RoleWorker, Studies: []string{"other", "mine"}}),
		"worker of another study": addToken(t, path, server.Scope{Role: server.RoleWorker, Studies: []string{"theirs"}}),
		"bearer of a wrong token": wire.NewToken("bkb_wrong"),
	}
	info := func() server.TokenInfo {
		token, info, err := server.AddToken(path, server.Scope{Role: server.RoleAdmin}, "", time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		callers["bearer of an expired token"] = token
		return info
	}()
	expire(t, path, info)
	want := func(method, caller string) codes.Code {
		switch caller {
		case "admin":
			return passed
		case "read", "worker", "worker of this study", "worker of another study":
		default:
			if method == "Health.Check" {
				return passed
			}
			return unknown
		}
		switch method {
		case "Health.Check", "Reflection", "GetCaller":
			return passed
		case "GetStudy", "GetTrial", "ListTrials", "ListReports", "GetBest", "GetColumns", "GetDiagnosis", "GetImportance", "Predict", "Watch", "ReadArtifact", "ListArtifacts":
			if caller != "worker of another study" {
				return passed
			}
		case "ListStudies", "WatchStudies":
			if caller == "read" || caller == "worker" {
				return passed
			}
		case "SetAttributes", "Ask", "Tell", "Report", "Heartbeat", "EnqueueTrial", "AddTrial", "AddTrials", "WriteArtifact", "DeleteArtifact":
			if caller == "worker" || caller == "worker of this study" {
				return passed
			}
		}
		return denied
	}
	service := withStudies(t)
	r := start(t, service, server.Options{TokenFile: path, Reflection: true, Limits: server.Limits{AuthFailureRate: -1, Rate: -1}})
	conn := r.connect(t)
	tried := 0
	for method, try := range methods(conn) {
		for caller, token := range callers {
			ctx, cancel := context.WithCancel(as(t.Context(), token))
			err := try(ctx)
			got := status.Code(err)
			if text := status.Convert(err).Message(); strings.Contains(text, "is held by token") || strings.Contains(text, "belongs to token") {
				got = passed // another rule, see TestWorkerNames
			}
			cancel()
			if enough := " does not permit this call; it needs the scope " + enoughFor(method); got == denied && !strings.HasSuffix(status.Convert(err).Message(), enough) {
				t.Errorf("%s by the %s: %v, want …%s", method, caller, err, enough)
			}
			expected := want(method, caller)
			if (got == unknown || got == denied || expected != passed) && got != expected {
				t.Errorf("%s by the %s: %s, want %s", method, caller, got, expected)
			}
			tried++
		}
		if got, expected := status.Code(try(t.Context())), want(method, "nobody"); (got == unknown) != (expected == unknown) {
			t.Errorf("%s without a token: %s", method, got)
		}
		if got, expected := status.Code(try(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Basic eA=="))), want(method, "nobody"); (got == unknown) != (expected == unknown) {
			t.Errorf("%s with another kind of authorization: %s", method, got)
		}
		two := as(as(t.Context(), callers["admin"]), callers["read"])
		if got, expected := status.Code(try(two)), want(method, "nobody"); (got == unknown) != (expected == unknown) {
			t.Errorf("%s with two tokens: %s", method, got)
		}
	}
	registered := 0
	for name, s := range r.ServiceInfo() {
		if name == pb.Tuner_ServiceDesc.ServiceName {
			registered = len(s.Methods)
		}
	}
	if tried < (registered+1)*len(callers) {
		t.Errorf("only %d calls for %d methods: some method is missing above", tried, registered)
	}
	if err := conn.Invoke(as(t.Context(), callers["admin"]), "/tuner.v1.Tuner/Nonsense", &pb.GetStudyRequest{}, &pb.Study{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that is none: %v", err)
	}
	if err := conn.Invoke(t.Context(), "/tuner.v1.Tuner//Ask", &pb.GetStudyRequest{}, &pb.Study{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("an odd path: %v", err)
	}
}

// enoughFor are the scopes that permit a method on the study mine.
func enoughFor(method string) string {
	switch method {
	case "GetStudy", "GetTrial", "ListTrials", "ListReports", "GetBest", "GetColumns", "GetDiagnosis", "GetImportance", "Predict", "Watch", "ReadArtifact", "ListArtifacts":
		return "read, worker:mine or admin"
	case "ListStudies", "WatchStudies":
		return "read, worker or admin"
	case "SetAttributes", "Ask", "Tell", "Report", "Heartbeat", "EnqueueTrial", "AddTrial", "AddTrials", "WriteArtifact", "DeleteArtifact":
		return "worker:mine or admin"
	default:
		return "admin"
	}
}

// TestPermissionTableComplete checks that a server does not start with a service that
// the table lacks.
func TestPermissionTableComplete(t *testing.T) {
	services := map[string]grpc.ServiceInfo{"x.Y": {Methods: []grpc.MethodInfo{{Name: "Z"}}}}
	if err := server.CheckComplete(services); err == nil {
		t.Error("a method without a permission passed")
	}
}

// TestGetCaller checks that callers learn their name and scope.
func TestGetCaller(t *testing.T) {
	path := tokenPath(t)
	scope := server.Scope{Role: server.RoleWorker, Studies: []string{"mine", "other"}}
	token := addToken(t, path, scope)
	c := pb.NewTunerClient(start(t, withStudies(t), server.Options{TokenFile: path}).connect(t))
	got, err := c.GetCaller(as(t.Context(), token), &pb.GetCallerRequest{})
	if err != nil || got.GetRole() != "worker" || !slices.Equal(got.GetStudies(), scope.Studies) || !strings.HasPrefix(got.GetName(), "token ") {
		t.Errorf("by its token the caller is %v, %v", got, err)
	}
	open := pb.NewTunerClient(start(t, withStudies(t), server.Options{}).connect(t))
	if got, err := open.GetCaller(t.Context(), &pb.GetCallerRequest{}); err != nil || got.GetRole() != "admin" || got.GetName() != "anybody" {
		t.Errorf("without tokens the caller is %v, %v", got, err)
	}
}
