package wire

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// EncodeAsked encodes the answer to an ask.
func EncodeAsked(name string, a tuner.Asked) (*pb.AskResponse, error) {
	trials, err := EncodeTrials(name, a.Trials)
	return &pb.AskResponse{Trials: trials, UsefulWorkers: int32Of(a.UsefulWorkers), Warnings: a.Warnings, Noise: a.Noise}, err
}

// DecodeAsked reads the answer to an ask.
func DecodeAsked(m *pb.AskResponse) (tuner.Asked, error) {
	trials, err := DecodeTrials(m.GetTrials())
	return tuner.Asked{Trials: trials, UsefulWorkers: int(m.GetUsefulWorkers()), Warnings: m.GetWarnings(), Noise: m.GetNoise()}, err
}

// DecodeTold reads the answer to a tell.
func DecodeTold(m *pb.TellResponse) (tuner.Told, error) {
	trial, err := DecodeTrial(m.GetTrial())
	return tuner.Told{Trial: trial, Late: m.GetLate()}, err
}

// EncodeReported encodes the answer to a report.
func EncodeReported(v tuner.Verdict) *pb.ReportResponse {
	return &pb.ReportResponse{ShouldStop: v.Stop, Reason: v.Reason, LeaseDeadline: encodeTime(v.Deadline)}
}

// EncodeBeaten encodes the answer to a heartbeat.
func EncodeBeaten(v tuner.Verdict) *pb.HeartbeatResponse {
	return &pb.HeartbeatResponse{ShouldStop: v.Stop, Reason: v.Reason, LeaseDeadline: encodeTime(v.Deadline)}
}

// DecodeVerdict reads the answer to a report or heartbeat.
func DecodeVerdict[M interface {
	GetShouldStop() bool
	GetReason() string
	GetLeaseDeadline() *timestamppb.Timestamp
}](m M,
) (tuner.Verdict, error) {
	var d decoder
	v := tuner.Verdict{Stop: m.GetShouldStop(), Reason: m.GetReason(), Deadline: d.time("lease_deadline", m.GetLeaseDeadline())}
	return v, d.err
}

// EncodeEvent encodes an event of the named study.
func EncodeEvent(name string, h tuner.Event) (*pb.WatchResponse, error) {
	m := &pb.WatchResponse{Position: uint64(h.Position), Time: encodeTime(h.Time), Event: h.Kind, StudyState: pb.StudyState(h.Status), Caller: h.Caller, Uid: uint64(h.Study)}
	if h.Trial == nil {
		return m, nil
	}
	var err error
	m.Trial, err = EncodeTrial(name, *h.Trial)
	return m, err
}

// DecodeEvent reads an event.
func DecodeEvent(m *pb.WatchResponse) (tuner.Event, error) {
	var d decoder
	h := tuner.Event{
		Study: store.StudyID(m.GetUid()), Position: study.Position(m.GetPosition()), Time: d.time("time", m.GetTime()), Kind: m.GetEvent(),
		Caller: m.GetCaller(), Status: enum(&d, "study_state", m.GetStudyState(), study.StatusFinished),
	}
	if m.GetTrial() != nil {
		t := d.trial(m.GetTrial())
		h.Trial = &t
	}
	return h, d.err
}
