package server_test

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// TestRequestsOfOthers checks that a request id is answered only to the token that sent it
// first, for each method that has one, also after a restart. Only an admin may add or
// enqueue again what others did.
func TestRequestsOfOthers(t *testing.T) {
	tokens, file := tokenPath(t), filepath.Join(t.TempDir(), "tuner.db")
	a, b := addToken(t, tokens, server.Scope{Role: server.RoleWorker}), addToken(t, tokens, server.Scope{Role: server.RoleWorker})
	boss, admin := addToken(t, tokens, server.Scope{Role: server.RoleAdmin}), addToken(t, tokens, server.Scope{Role: server.RoleAdmin})
	service := onDisk(t, file)
	r := start(t, service, server.Options{TokenFile: tokens})
	asked, err := pb.NewTunerClient(r.connect(t)).Ask(as(t.Context(), a), &pb.AskRequest{Parent: "studies/mine"})
	if err != nil {
		t.Fatal(err)
	}
	trial := asked.GetTrials()[0].GetName()
	added := newTrials(1)[0]
	requests := []struct {
		method string
		proto.Message
		first wire.Token
		again bool // an admin may send that of another
	}{
		{"CreateStudy", createRequest("new"), boss, false},
		{"SetAttributes", &pb.SetAttributesRequest{Name: trial, Attributes: map[string]string{"k": "v"}}, a, false},
		{"SetAttributes", &pb.SetAttributesRequest{Name: "studies/mine", Attributes: map[string]string{"k": "v"}}, boss, false},
		{"Report", &pb.ReportRequest{Name: trial, Reports: []*pb.IntermediateValues{{Step: 1, Values: map[string]float64{"loss": 1}}}}, a, false},
		{"Tell", &pb.TellRequest{Name: trial, Outcome: added.GetOutcome()}, a, false},
		{"Ask", &pb.AskRequest{Parent: "studies/mine"}, a, false},
		{"Ask", &pb.AskRequest{Parent: "studies/mine", Count: 3}, a, false},
		{"Ask", &pb.AskRequest{Parent: "studies/mine", AutoCount: true}, a, false},
		{"Ask", &pb.AskRequest{Parent: "studies/mine"}, boss, false},
		{"EnqueueTrial", &pb.EnqueueTrialRequest{Parent: "studies/theirs", Config: added.GetConfig()}, a, true},
		{"AddTrial", &pb.AddTrialRequest{Parent: "studies/theirs", Config: added.GetConfig(), Outcome: added.GetOutcome()}, a, true},
		{"AddTrials", &pb.AddTrialsRequest{Parent: "studies/theirs", Trials: newTrials(2)}, a, true},
		{"PauseStudy", &pb.PauseStudyRequest{Name: "studies/theirs"}, boss, false},
		{"ResumeStudy", &pb.ResumeStudyRequest{Name: "studies/theirs"}, boss, false},
		{"FinishStudy", &pb.FinishStudyRequest{Name: "studies/theirs"}, boss, false},
		{"ExtendStudy", &pb.ExtendStudyRequest{Name: "studies/theirs"}, boss, false},
	}
	tested := map[string]bool{"DeleteStudy": true} // which only logs it
	var first []proto.Message
	for i, q := range requests {
		tested[q.method] = true
		if id := q.ProtoReflect().Descriptor().Fields().ByName("request_id"); id != nil {
			q.ProtoReflect().Set(id, protoreflect.ValueOfString(strings.Repeat("i", i+1)))
		}
	}
	methods := pb.File_proto_tuner_v1_tuner_proto.Services().Get(0).Methods()
	for i := range methods.Len() {
		if m := methods.Get(i); m.Input().Fields().ByName("request_id") != nil && !tested[string(m.Name())] {
			t.Errorf("%s has a request id and is not tested", m.Name())
		}
	}
	for round := range 3 {
		if round == 2 {
			r.stop()
			if err := service.Close(); err != nil {
				t.Fatal(err)
			}
			service = fromDisk(t, file)
			r = start(t, service, server.Options{TokenFile: tokens})
		}
		conn := r.connect(t)
		send := func(i int, by wire.Token) (proto.Message, error) {
			q := requests[i]
			m := methods.ByName(protoreflect.Name(q.method))
			answer, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
			if err != nil {
				t.Fatal(err)
			}
			into := answer.New().Interface()
			return into, conn.Invoke(as(t.Context(), by), "/"+string(m.Parent().FullName())+"/"+q.method, q.Message, into)
		}
		for i, q := range requests {
			got, err := send(i, q.first)
			if err != nil {
				t.Fatalf("round %d: %s: %v", round, q.method, err)
			}
			if round == 0 {
				first = append(first, got)
				continue
			}
			if want, got := trialsOf(first[i]), trialsOf(got); want != got {
				t.Errorf("round %d: %s again: %s, want %s", round, q.method, got, want)
			}
			for name, by := range map[string]wire.Token{"a worker": b, "an admin": admin} {
				got, err := send(i, by)
				switch {
				case name == "an admin" && q.again:
					if err != nil || trialsOf(got) != trialsOf(first[i]) {
						t.Errorf("round %d: %s of %s: %v, %v", round, q.method, name, got, err)
					}
				case q.method == "CreateStudy" && name == "an admin":
					if status.Code(err) != codes.AlreadyExists {
						t.Errorf("round %d: %s of %s: %v, %v", round, q.method, name, got, err)
					}
				case status.Code(err) == codes.PermissionDenied && name == "a worker" && (q.first == boss || strings.Contains(err.Error(), "is held by")):
				case status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "belongs to the token or certificate that used it first; use a new id"):
					t.Errorf("round %d: %s of %s: %v, %v", round, q.method, name, got, err)
				}
			}
		}
	}
}

// trialsOf returns the numbers of the trials in an answer.
func trialsOf(m proto.Message) string {
	var names []string
	switch m := m.(type) {
	case *pb.AskResponse:
		for _, trial := range m.GetTrials() {
			names = append(names, trial.GetName())
		}
	case *pb.TellResponse:
		names = append(names, m.GetTrial().GetName())
	case *pb.Trial:
		names = append(names, m.GetName())
	case *pb.AddTrialsResponse:
		names = append(names, m.String())
	}
	return strings.Join(names, " ")
}
