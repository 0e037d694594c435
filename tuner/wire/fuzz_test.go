package wire_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// hostile decodes bytes as each message that another program may send.
var hostile = []func(b []byte) error{
	decode(new(pb.CreateStudyRequest), func(m *pb.CreateStudyRequest) error { _, _, _, err := wire.DecodeCreate(m); return err }),
	decode(new(pb.PauseStudyRequest), func(m *pb.PauseStudyRequest) error { _, _, err := wire.PauseStudy.Decode(m); return err }),
	decode(new(pb.ExtendStudyRequest), func(m *pb.ExtendStudyRequest) error { _, _, err := wire.ExtendStudy.Decode(m); return err }),
	decode(new(pb.ResumeStudyRequest), func(m *pb.ResumeStudyRequest) error { _, _, err := wire.ResumeStudy.Decode(m); return err }),
	decode(new(pb.FinishStudyRequest), func(m *pb.FinishStudyRequest) error { _, _, err := wire.FinishStudy.Decode(m); return err }),
	decode(new(pb.SetAttributesRequest), func(m *pb.SetAttributesRequest) error { _, _, err := wire.SetAttributes.Decode(m); return err }),
	decode(new(pb.AskRequest), func(m *pb.AskRequest) error { _, _, err := wire.Ask.Decode(m); return err }),
	decode(new(pb.TellRequest), func(m *pb.TellRequest) error { _, _, err := wire.Tell.Decode(m); return err }),
	decode(new(pb.ReportRequest), func(m *pb.ReportRequest) error { _, _, err := wire.Report.Decode(m); return err }),
	decode(new(pb.HeartbeatRequest), func(m *pb.HeartbeatRequest) error { _, _, err := wire.Heartbeat.Decode(m); return err }),
	decode(new(pb.EnqueueTrialRequest), func(m *pb.EnqueueTrialRequest) error { _, _, err := wire.EnqueueTrial.Decode(m); return err }),
	decode(new(pb.AddTrialRequest), func(m *pb.AddTrialRequest) error { _, _, err := wire.AddTrial.Decode(m); return err }),
	decode(new(pb.ListTrialsRequest), func(m *pb.ListTrialsRequest) error { _, _, err := wire.DecodeFilter(m); return err }),
	decode(new(pb.AskResponse), func(m *pb.AskResponse) error { _, err := wire.DecodeAsked(m); return err }),
	decode(new(pb.TellResponse), func(m *pb.TellResponse) error { _, err := wire.DecodeTold(m); return err }),
	decode(new(pb.Study), func(m *pb.Study) error { _, err := wire.DecodeStudy(m); return err }),
	decode(new(pb.Trial), func(m *pb.Trial) error { _, err := wire.DecodeTrial(m); return err }),
	decode(new(pb.WatchResponse), func(m *pb.WatchResponse) error { _, err := wire.DecodeEvent(m); return err }),
	decode(new(pb.AddTrialsRequest), func(m *pb.AddTrialsRequest) error { _, _, err := wire.DecodeAddAll(m); return err }),
}

// decode reads a message and then its content.
func decode[M proto.Message](kind M, read func(M) error) func([]byte) error {
	return func(b []byte) error {
		m := kind.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(b, m); err != nil {
			return err
		}
		return read(m.(M))
	}
}

// FuzzMessages reads arbitrary messages. Reading ends with a valid value or an error, never
// with a panic.
func FuzzMessages(f *testing.F) {
	for kind, m := range map[uint8]proto.Message{
		5: &pb.AskRequest{Parent: "studies/s", Count: 2, Worker: "w", RequestId: "r"},
		6: &pb.TellRequest{Name: "studies/s/trials/1", Epoch: 1, Outcome: &pb.Outcome{
			State: pb.TrialState_TRIAL_STATE_COMPLETED, Metrics: map[string]*pb.Metric{"loss": {Values: []float64{1}}},
		}},
		7:  &pb.ReportRequest{Name: "studies/s/trials/1", Reports: []*pb.IntermediateValues{{Step: 1, Values: map[string]float64{"loss": 1}}}},
		11: &pb.ListTrialsRequest{Parent: "studies/s", PageToken: "7", States: []pb.TrialState{pb.TrialState_TRIAL_STATE_FAILED}},
		17: &pb.AddTrialsRequest{Parent: "studies/s", Trials: []*pb.NewTrial{
			{RequestId: "a", Config: map[string]*pb.Value{"x": {Kind: &pb.Value_FloatValue{FloatValue: 1}}}, Outcome: &pb.Outcome{State: pb.TrialState_TRIAL_STATE_PRUNED}},
			{RequestId: "b", Enqueue: true},
		}},
		0: &pb.CreateStudyRequest{StudyId: "s", Spec: &pb.StudySpec{Space: `{"version":1,"parameters":[{"name":"x","type":"float","low":0,"high":1}]}`}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(kind, b)
	}
	f.Fuzz(func(_ *testing.T, kind uint8, b []byte) {
		_ = hostile[int(kind)%len(hostile)](b)
	})
}

// FuzzNames reads resource names. An accepted name is written back unchanged.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"studies/s", "studies/s/trials/12", "studies/s/trials/-1", "studies//trials/1", "studies/%2e%2e", "studies/s/trials/9999999999999999999", "studies/\xce0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, resource string) {
		if name, err := wire.ParseStudyName(resource); err == nil {
			if back, err := wire.StudyName(name); err != nil || back != resource {
				t.Errorf("%q is the study %q, which is %q, %v", resource, name, back, err)
			}
		}
		if name, n, err := wire.ParseTrialName(resource); err == nil {
			if back, err := wire.TrialName(name, n); err != nil || back != resource {
				t.Errorf("%q is trial %d of %q, which is %q, %v", resource, n, name, back, err)
			}
		}
	})
}
