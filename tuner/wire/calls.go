package wire

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Need is the permission that a method needs.
type Need uint8

// The permissions. Those from NeedWork on are of methods that change something, or that
// read everything.
const (
	NeedNothing    Need = iota + 1
	NeedAny             // any known caller
	NeedRead            // admin, read, or a worker of the study
	NeedReadAll         // admin, read, or a worker of all studies
	NeedWork            // admin, or a worker of the study
	NeedWorkTrials      // NeedWork for a trial, NeedAdmin for a study
	NeedAdmin
)

// Room is the room that a call reserves in memory while it runs.
type Room uint8

// The kinds of room. Calls that need little, end something or free memory reserve none, so
// that they pass when memory is short.
const (
	RoomNone   Room = iota
	RoomChange      // for the request, with the stored data about it
	RoomList        // for a page of an answer
	RoomFile        // for a part of a file, which is no change of a study for the limits
)

// Method is a method of the service, as far as a server treats all methods alike.
type Method struct {
	Name    string
	Need    Need
	Audited bool // the log has a line for each call that may have had an effect
	Room    Room

	// NewRequest makes an empty request, and Serve answers one. Both are nil if the server
	// has code of its own for the method.
	NewRequest func() proto.Message
	Serve      func(ctx context.Context, s tuner.Service, request proto.Message) (proto.Message, error)
}

// FullName returns the method with its service, as gRPC writes it.
func (m Method) FullName() string { return "/" + pb.Tuner_ServiceDesc.ServiceName + "/" + m.Name }

// Call is a method about one study, with one request and one answer.
type Call[C, R any, Q, A proto.Message] struct {
	Method
	Encode       func(study string, command C) (Q, error)
	Decode       func(Q) (study string, command C, err error)
	EncodeAnswer func(R) (A, error) // nil if the server has code of its own
	DecodeAnswer func(A) (R, error)
}

// New returns an empty message.
func New[M proto.Message]() M {
	var none M
	return none.ProtoReflect().New().Interface().(M)
}

// call returns a method that the server answers with code of its own. finish, if not nil,
// completes a read command.
func call[C, R any, Q, A proto.Message](m Method, finish func(Q, *C) error, decodeAnswer func(A) (R, error)) Call[C, R, Q, A] {
	c := Call[C, R, Q, A]{Method: m, DecodeAnswer: decodeAnswer}
	c.Encode, c.Decode = request(finish)
	return c
}

type form[R any, A proto.Message] struct {
	encode func(R) (A, error)
	decode func(A) (R, error)
}

// served returns a method that the server answers by one call of the service. Without a
// form, an answer has that of the table.
func served[Q, A proto.Message, C, R any](m Method, serve func(tuner.Service, context.Context, string, C) (R, error), forms ...form[R, A]) Call[C, R, Q, A] {
	answer := append(forms, form[R, A]{encode[A, R], decode[R, A]})[0]
	c := call[C, R, Q](m, nil, answer.decode)
	c.EncodeAnswer = answer.encode
	c.NewRequest = func() proto.Message { return New[Q]() }
	c.Serve = func(ctx context.Context, s tuner.Service, request proto.Message) (proto.Message, error) {
		study, command, err := c.Decode(request.(Q))
		if err != nil {
			return nil, err
		}
		result, err := serve(s, ctx, study, command)
		if err != nil {
			return nil, err
		}
		message, err := c.EncodeAnswer(result)
		if err != nil {
			return nil, fmt.Errorf("encoding the answer: %v", err) // internal, whatever it wraps
		}
		return message, nil
	}
	return c
}

// none stands for a command or an answer without content.
type none = struct{}

// plain makes the method of a service that takes only a study one that takes a command.
func plain[R any](serve func(tuner.Service, context.Context, string) (R, error)) func(tuner.Service, context.Context, string, none) (R, error) {
	return func(s tuner.Service, ctx context.Context, study string, _ none) (R, error) {
		return serve(s, ctx, study)
	}
}

// setAttributes is the method of a service with an answer.
func setAttributes(s tuner.Service, ctx context.Context, name string, c study.SetAttributes) (none, error) {
	return none{}, s.SetAttributes(ctx, name, c)
}

// deleteArtifact is the method of a service with an answer.
func deleteArtifact(s tuner.Service, ctx context.Context, name string, c tuner.DeleteArtifact) (none, error) {
	return none{}, s.DeleteArtifact(ctx, name, c)
}

// artifactList is an answer with artifacts.
type artifactList struct{ Artifacts []tuner.Artifact }

var artifactsForm = form[[]tuner.Artifact, *pb.ListArtifactsResponse]{
	func(list []tuner.Artifact) (*pb.ListArtifactsResponse, error) {
		return encode[*pb.ListArtifactsResponse](artifactList{list})
	},
	func(m *pb.ListArtifactsResponse) ([]tuner.Artifact, error) {
		list, err := decode[artifactList](m)
		return list.Artifacts, err
	},
}

var (
	studyForm       = form[tuner.Study, *pb.Study]{EncodeStudy, DecodeStudy}
	predictionsForm = form[tuner.Predictions, *pb.PredictResponse]{
		func(p tuner.Predictions) (*pb.PredictResponse, error) { return EncodePredictions(p), nil }, decodePredictions,
	}
)

// The methods about one study with one request and one answer.
var (
	CreateStudy   = Call[study.Create, tuner.Created, *pb.CreateStudyRequest, *pb.Study]{Method: Method{Name: "CreateStudy", Need: NeedAdmin, Audited: true, Room: RoomChange}, Encode: EncodeCreate, DecodeAnswer: DecodeCreated}
	GetStudy      = served[*pb.GetStudyRequest](Method{Name: "GetStudy", Need: NeedRead}, plain(tuner.Service.Study), studyForm)
	PauseStudy    = served[*pb.PauseStudyRequest](Method{Name: "PauseStudy", Need: NeedAdmin, Audited: true}, tuner.Service.Pause, studyForm)
	ResumeStudy   = served[*pb.ResumeStudyRequest](Method{Name: "ResumeStudy", Need: NeedAdmin, Audited: true}, tuner.Service.Resume, studyForm)
	FinishStudy   = served[*pb.FinishStudyRequest](Method{Name: "FinishStudy", Need: NeedAdmin, Audited: true}, tuner.Service.Finish, studyForm)
	ExtendStudy   = served[*pb.ExtendStudyRequest](Method{Name: "ExtendStudy", Need: NeedAdmin, Audited: true}, tuner.Service.Extend, studyForm)
	SetAttributes = served[*pb.SetAttributesRequest, *pb.SetAttributesResponse](Method{Name: "SetAttributes", Need: NeedWorkTrials, Audited: true, Room: RoomChange}, setAttributes)
	Ask           = encoded(call(Method{Name: "Ask", Need: NeedWork, Audited: true, Room: RoomChange}, finishAsk, DecodeAsked), encodeAuto)
	Tell          = encoded(call(Method{Name: "Tell", Need: NeedWork, Audited: true}, finishTell, DecodeTold), func(m *pb.TellRequest) { encodeAuto(m.GetNext()) })
	Report        = served[*pb.ReportRequest, *pb.ReportResponse](Method{Name: "Report", Need: NeedWork, Audited: true, Room: RoomChange}, tuner.Service.Report)
	// Heartbeats are not audited, because they come every few seconds and change only when
	// a lease ends.
	Heartbeat     = served[*pb.HeartbeatRequest, *pb.HeartbeatResponse](Method{Name: "Heartbeat", Need: NeedWork}, tuner.Service.Heartbeat)
	EnqueueTrial  = call[study.Enqueue, study.Trial, *pb.EnqueueTrialRequest](Method{Name: "EnqueueTrial", Need: NeedWork, Audited: true, Room: RoomChange}, nil, DecodeTrial)
	AddTrial      = call[study.Add, study.Trial, *pb.AddTrialRequest](Method{Name: "AddTrial", Need: NeedWork, Audited: true, Room: RoomChange}, nil, DecodeTrial)
	GetDiagnosis  = served[*pb.GetDiagnosisRequest, *pb.Diagnosis](Method{Name: "GetDiagnosis", Need: NeedRead, Room: RoomChange}, plain(tuner.Service.Diagnose))
	Predict       = served[*pb.PredictRequest](Method{Name: "Predict", Need: NeedRead, Room: RoomChange}, tuner.Service.Predict, predictionsForm)
	GetImportance = served[*pb.GetImportanceRequest, *pb.Importance](Method{Name: "GetImportance", Need: NeedRead, Room: RoomChange}, tuner.Service.Importance)

	WriteArtifact  = served[*pb.WriteArtifactRequest, *pb.WriteArtifactResponse](Method{Name: "WriteArtifact", Need: NeedWork, Audited: true, Room: RoomFile}, tuner.Service.WriteArtifact)
	ReadArtifact   = served[*pb.ReadArtifactRequest, *pb.ReadArtifactResponse](Method{Name: "ReadArtifact", Need: NeedRead, Room: RoomFile}, tuner.Service.ReadArtifact)
	ListArtifacts  = served[*pb.ListArtifactsRequest](Method{Name: "ListArtifacts", Need: NeedRead, Room: RoomChange}, tuner.Service.Artifacts, artifactsForm)
	DeleteArtifact = served[*pb.DeleteArtifactRequest, *pb.DeleteArtifactResponse](Method{Name: "DeleteArtifact", Need: NeedWork, Audited: true}, deleteArtifact)
)

// Methods are all methods of the service. A server refuses one that is not in the list.
var Methods = []Method{
	CreateStudy.Method, GetStudy.Method, PauseStudy.Method, ResumeStudy.Method, FinishStudy.Method, ExtendStudy.Method, SetAttributes.Method,
	Ask.Method, Tell.Method, Report.Method, Heartbeat.Method, EnqueueTrial.Method, AddTrial.Method,
	GetDiagnosis.Method, Predict.Method, GetImportance.Method,
	WriteArtifact.Method, ReadArtifact.Method, ListArtifacts.Method, DeleteArtifact.Method,
	{Name: "ListStudies", Need: NeedReadAll, Room: RoomList},
	{Name: "DeleteStudy", Need: NeedAdmin, Audited: true},
	{Name: "AddTrials", Need: NeedWork, Audited: true, Room: RoomChange},
	{Name: "GetTrial", Need: NeedRead}, // with reports it counts as RoomList, see memoryFor of tuner/server
	{Name: "ListTrials", Need: NeedRead, Room: RoomList},
	{Name: "ListReports", Need: NeedRead, Room: RoomList},
	{Name: "GetBest", Need: NeedRead, Room: RoomList},
	{Name: "GetColumns", Need: NeedRead},
	{Name: "Watch", Need: NeedRead},
	{Name: "WatchStudies", Need: NeedReadAll},
	{Name: "GetCaller", Need: NeedAny},
	{Name: "Backup", Need: NeedAdmin, Audited: true}, // which reads everything
}
