package wire

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
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
	DecodeAnswer func(A) (R, error)
}

// New returns an empty message.
func New[M proto.Message]() M {
	var none M
	return none.ProtoReflect().New().Interface().(M)
}

// call returns a method that the server answers with code of its own.
func call[C, R any, Q, A proto.Message](m Method, encode func(string, C) (Q, error), decodeAnswer func(A) (R, error)) Call[C, R, Q, A] {
	return Call[C, R, Q, A]{Method: m, Encode: encode, DecodeAnswer: decodeAnswer}
}

// served returns a method that the server answers by one call of the service.
func served[C, R any, Q, A proto.Message](
	m Method, encode func(string, C) (Q, error), decode func(Q) (string, C, error),
	serve func(tuner.Service, context.Context, string, C) (R, error), encodeAnswer func(R) (A, error), decodeAnswer func(A) (R, error),
) Call[C, R, Q, A] {
	m.NewRequest = func() proto.Message { return New[Q]() }
	m.Serve = func(ctx context.Context, s tuner.Service, request proto.Message) (proto.Message, error) {
		study, command, err := decode(request.(Q))
		if err != nil {
			return nil, err
		}
		result, err := serve(s, ctx, study, command)
		if err != nil {
			return nil, err
		}
		answer, err := encodeAnswer(result)
		if err != nil {
			return nil, fmt.Errorf("encoding the answer: %v", err) // internal, whatever it wraps
		}
		return answer, nil
	}
	return call(m, encode, decodeAnswer)
}

// none stands for a command or an answer without content.
type none = struct{}

// plain makes the method of a service that takes only a study one that takes a command.
func plain[R any](serve func(tuner.Service, context.Context, string) (R, error)) func(tuner.Service, context.Context, string, none) (R, error) {
	return func(s tuner.Service, ctx context.Context, study string, _ none) (R, error) {
		return serve(s, ctx, study)
	}
}

// silent makes the method of a service that returns only an error one with an answer.
func silent[C any](serve func(tuner.Service, context.Context, string, C) error) func(tuner.Service, context.Context, string, C) (none, error) {
	return func(s tuner.Service, ctx context.Context, study string, c C) (none, error) {
		return none{}, serve(s, ctx, study, c)
	}
}

// sure makes an encoder that cannot fail one that could.
func sure[R any, A proto.Message](encode func(R) A) func(R) (A, error) {
	return func(r R) (A, error) { return encode(r), nil }
}

// nothing encodes and decodes an empty answer.
func nothing[A proto.Message]() (encode func(none) (A, error), decode func(A) (none, error)) {
	return func(none) (A, error) { return New[A](), nil }, func(A) (none, error) { return none{}, nil }
}

// onlyStudy encodes and decodes the request of a method that takes only a study. get returns
// its name, and set sets it.
func onlyStudy[Q proto.Message](get func(Q) string, set func(resource string) Q) (encode func(string, none) (Q, error), decode func(Q) (string, none, error)) {
	encode = func(study string, _ none) (Q, error) {
		resource, err := StudyName(study)
		return set(resource), err
	}
	return encode, func(q Q) (string, none, error) {
		study, err := ParseStudyName(get(q))
		return study, none{}, err
	}
}

var (
	encodeGet, decodeGet           = onlyStudy((*pb.GetStudyRequest).GetName, func(r string) *pb.GetStudyRequest { return &pb.GetStudyRequest{Name: r} })
	encodeDiagnose, decodeDiagnose = onlyStudy((*pb.GetDiagnosisRequest).GetParent, func(r string) *pb.GetDiagnosisRequest { return &pb.GetDiagnosisRequest{Parent: r} })
	encodeSet, decodeSet           = nothing[*pb.SetAttributesResponse]()
)

// The methods about one study with one request and one answer.
var (
	CreateStudy   = call(Method{Name: "CreateStudy", Need: NeedAdmin, Audited: true, Room: RoomChange}, EncodeCreate, DecodeCreated)
	GetStudy      = served(Method{Name: "GetStudy", Need: NeedRead}, encodeGet, decodeGet, plain(tuner.Service.Study), EncodeStudy, DecodeStudy)
	PauseStudy    = served(Method{Name: "PauseStudy", Need: NeedAdmin, Audited: true}, EncodePause, DecodePause, tuner.Service.Pause, EncodeStudy, DecodeStudy)
	ResumeStudy   = served(Method{Name: "ResumeStudy", Need: NeedAdmin, Audited: true}, EncodeResume, DecodeResume, tuner.Service.Resume, EncodeStudy, DecodeStudy)
	FinishStudy   = served(Method{Name: "FinishStudy", Need: NeedAdmin, Audited: true}, EncodeFinish, DecodeFinish, tuner.Service.Finish, EncodeStudy, DecodeStudy)
	ExtendStudy   = served(Method{Name: "ExtendStudy", Need: NeedAdmin, Audited: true}, EncodeExtend, DecodeExtend, tuner.Service.Extend, EncodeStudy, DecodeStudy)
	SetAttributes = served(Method{Name: "SetAttributes", Need: NeedWorkTrials, Audited: true, Room: RoomChange}, EncodeSetAttributes, DecodeSetAttributes, silent(tuner.Service.SetAttributes), encodeSet, decodeSet)
	Ask           = call(Method{Name: "Ask", Need: NeedWork, Audited: true, Room: RoomChange}, EncodeAsk, DecodeAsked)
	Tell          = call(Method{Name: "Tell", Need: NeedWork, Audited: true}, EncodeTell, DecodeTold)
	Report        = served(Method{Name: "Report", Need: NeedWork, Audited: true, Room: RoomChange}, EncodeReport, DecodeReport, tuner.Service.Report, sure(EncodeReported), DecodeVerdict[*pb.ReportResponse])
	// Heartbeats are not audited, because they come every few seconds and change only when
	// a lease ends.
	Heartbeat     = served(Method{Name: "Heartbeat", Need: NeedWork}, EncodeHeartbeat, DecodeHeartbeat, tuner.Service.Heartbeat, sure(EncodeBeaten), DecodeVerdict[*pb.HeartbeatResponse])
	EnqueueTrial  = call(Method{Name: "EnqueueTrial", Need: NeedWork, Audited: true, Room: RoomChange}, EncodeEnqueue, DecodeTrial)
	AddTrial      = call(Method{Name: "AddTrial", Need: NeedWork, Audited: true, Room: RoomChange}, EncodeAdd, DecodeTrial)
	GetDiagnosis  = served(Method{Name: "GetDiagnosis", Need: NeedRead, Room: RoomChange}, encodeDiagnose, decodeDiagnose, plain(tuner.Service.Diagnose), sure(EncodeDiagnosis), DecodeDiagnosis)
	Predict       = served(Method{Name: "Predict", Need: NeedRead, Room: RoomChange}, EncodePredictQuery, DecodePredictQuery, tuner.Service.Predict, sure(EncodePredictions), DecodePredictions)
	GetImportance = served(Method{Name: "GetImportance", Need: NeedRead, Room: RoomChange}, EncodeImportanceQuery, DecodeImportanceQuery, tuner.Service.Importance, sure(EncodeImportance), DecodeImportance)
)

// Methods are all methods of the service. A server refuses one that is not in the list.
var Methods = []Method{
	CreateStudy.Method, GetStudy.Method, PauseStudy.Method, ResumeStudy.Method, FinishStudy.Method, ExtendStudy.Method, SetAttributes.Method,
	Ask.Method, Tell.Method, Report.Method, Heartbeat.Method, EnqueueTrial.Method, AddTrial.Method,
	GetDiagnosis.Method, Predict.Method, GetImportance.Method,
	{Name: "ListStudies", Need: NeedReadAll, Room: RoomList},
	{Name: "DeleteStudy", Need: NeedAdmin, Audited: true},
	{Name: "AddTrials", Need: NeedWork, Audited: true, Room: RoomChange},
	{Name: "GetTrial", Need: NeedRead}, // with reports it counts as RoomList, see memory.go of tuner/server
	{Name: "ListTrials", Need: NeedRead, Room: RoomList},
	{Name: "ListReports", Need: NeedRead, Room: RoomList},
	{Name: "GetBest", Need: NeedRead, Room: RoomList},
	{Name: "GetColumns", Need: NeedRead},
	{Name: "Watch", Need: NeedRead},
	{Name: "WatchStudies", Need: NeedReadAll},
	{Name: "GetCaller", Need: NeedAny},
	{Name: "Backup", Need: NeedAdmin, Audited: true}, // which reads everything
}
