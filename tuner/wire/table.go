package wire

import (
	"errors"
	"math"
	"reflect"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bkbtuner/bkb/internal/protostruct"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// table copies between the types of the service and their messages. Fields whose names
// differ are listed here. Those without a counterpart are copied by hand, or not sent.
var table = func() *protostruct.Table {
	t := &protostruct.Table{Optional: []string{"Name", "Parent"}} // resource names
	t.Names(study.Trial{}, "LeaseDeadline=Deadline", "LateResults=Late", "CreateTime=Created", "StartTime=Started", "EndTime=Ended", "LastSeenTime=Seen", "Omitted=", "Suggestion=", "=Suggestion")
	t.Names(study.Suggestion{}, "=Config") // which the trial has
	t.Names(tuner.Study{}, "Uid=ID", "State=Status", "CreateTime=Created", "LastToldTime=LastTold", "FinishReason=", "FinishDetail=", "=Finished",
		"Queued=", "Running=", "Completed=", "Failed=", "Infeasible=", "Pruned=", "=Counts", "=Trials", "Warnings=")
	t.Names(tuner.Measured{}, "Number=Trial")
	t.Names(tuner.Asked{}, "Trials=", "=Trials")
	t.Names(tuner.Verdict{}, "ShouldStop=Stop", "LeaseDeadline=Deadline")
	t.Names(tuner.Event{}, "Uid=Study", "Event=Kind", "StudyState=Status", "Trial=", "=Trial")
	t.Names(tuner.Columns{}, "Uid=ID")
	t.Names(tuner.Column{}, "=Data")
	t.Names(tuner.Predictions{}, "MissingResults=Missing", "Through=", "=Through", "Trial=", "=Trial")
	t.Names(tuner.Importance{}, "MissingResults=Missing")
	t.Names(tuner.ParameterImportance{}, "FirstOrder=First", "FirstOrderError=FirstError")
	t.Names(surrogate.Diagnosis{}, "MissingResults=Missing")
	t.Names(surrogate.Draw{}, "RowsRead=Read", "=Coarse")
	t.Names(surrogate.Step{}, "InducingPoints=Points", "EffectiveDimension=Dimension")

	t.Names(study.Create{}, "StudyId=")
	t.Names(study.Finish{}, "=Reason")
	t.Names(study.SetAttributes{}, "=Trial")
	t.Names(study.Ask{}, "AutoCount=")
	t.Names(study.Tell{}, "=Trial")
	t.Names(study.ReportValues{}, "=Trial")
	t.Names(study.Heartbeat{}, "=Trial")
	t.Names(study.Add{}, "Enqueue=")
	t.Names(study.Enqueue{}, "Enqueue=", "Reports=", "Outcome=")
	t.Names(tuner.Filter{}, "PageSize=Limit", "PageToken=", "=First", "View=", "=Reports")
	t.Names(tuner.Artifact{}, "ModifyTime=Modified")
	t.Names(tuner.WriteArtifact{}, "=Trial")
	t.Names(tuner.ReadArtifact{}, "=Trial")
	t.Names(tuner.ListArtifacts{}, "=Trial")
	t.Names(tuner.DeleteArtifact{}, "=Trial")

	protostruct.Convert(t, encodeTime, decodeTime)
	protostruct.Convert(t, encodeDuration, decodeDuration)
	protostruct.Convert(t, encodeNumber, decodeNumber)
	protostruct.Convert(t, encodeSpace, decodeSpace)
	protostruct.Convert(t, encodeValue, decodeValue)
	protostruct.Convert(t, encodeConfig, decodeConfig)
	protostruct.Convert(t, encodeConfiguration, decodeConfiguration)
	protostruct.Convert(t, encodeMetrics, decodeMetrics)
	protostruct.Convert(t, encodeValues, decodeValues)
	return t
}()

func encode[M proto.Message, V any](v V) (M, error) {
	m := New[M]()
	return m, refused(table.Encode(m, &v))
}

func decode[V any, M proto.Message](m M) (v V, err error) {
	err = refused(table.Decode(nil, &v, m))
	return v, err
}

// refused returns the error of a field as the service words it.
func refused(err error) error {
	if e := (*protostruct.FieldError)(nil); errors.As(err, &e) {
		return invalid(e.Field, e.Value, e.Rule)
	}
	return err
}

// encodeTime leaves the zero time out.
func encodeTime(t time.Time) (*timestamppb.Timestamp, error) {
	if t.IsZero() {
		return nil, nil
	}
	return timestamppb.New(t), nil
}

func decodeTime(_ any, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if t.CheckValid() != nil {
		return time.Time{}, &protostruct.FieldError{Value: t.GetSeconds(), Rule: "must be a time of the years 1 to 9999"}
	}
	return t.AsTime(), nil
}

// encodeDuration leaves 0 out.
func encodeDuration(d time.Duration) (*durationpb.Duration, error) {
	if d == 0 {
		return nil, nil
	}
	return durationpb.New(d), nil
}

func decodeDuration(_ any, d *durationpb.Duration) (time.Duration, error) {
	if d != nil && d.CheckValid() != nil {
		return 0, &protostruct.FieldError{Value: d.GetSeconds(), Rule: "must be a duration with its parts of one sign"}
	}
	return d.AsDuration(), nil // saturates
}

// encodeNumber leaves NaN out.
func encodeNumber(x float64) (*float64, error) {
	if math.IsNaN(x) {
		return nil, nil
	}
	return &x, nil
}

func decodeNumber(_ any, x *float64) (float64, error) {
	if x == nil {
		return math.NaN(), nil
	}
	return *x, nil
}

// subject returns the field of a request that names its study or trial.
func subject(m proto.Message) (protoreflect.Message, protoreflect.FieldDescriptor) {
	r := m.ProtoReflect()
	field := r.Descriptor().Fields().ByName("name")
	if field == nil {
		field = r.Descriptor().Fields().ByName("parent")
	}
	return r, field
}

// request returns the encoder and decoder of the request of a command about a study, or about
// a trial if the command has one. finish, if not nil, completes a read command.
func request[Q proto.Message, C any](finish func(Q, *C) error) (encodeRequest func(name string, command C) (Q, error), decodeRequest func(Q) (name string, command C, err error)) {
	_, ofTrial := reflect.TypeFor[C]().FieldByName("Trial")
	encodeRequest = func(name string, c C) (none Q, err error) {
		resource, err := StudyName(name)
		if ofTrial && err == nil {
			if n := int(reflect.ValueOf(c).FieldByName("Trial").Int()); n != study.OfStudy {
				resource, err = TrialName(name, n)
			}
		}
		if err != nil {
			return none, err
		}
		q, err := encode[Q](c)
		m, field := subject(q)
		m.Set(field, protoreflect.ValueOfString(resource))
		return q, err
	}
	return encodeRequest, func(q Q) (name string, c C, err error) {
		m, field := subject(q)
		resource, number := m.Get(field).String(), study.OfStudy
		switch _, either := any(c).(study.SetAttributes); {
		case either:
			name, number, err = parseName(resource)
		case ofTrial:
			name, number, err = ParseTrialName(resource)
		default:
			name, err = ParseStudyName(resource)
		}
		if err != nil {
			return "", c, err
		}
		if c, err = decode[C](q); err == nil && finish != nil {
			err = finish(q, &c)
		}
		if ofTrial {
			reflect.ValueOf(&c).Elem().FieldByName("Trial").SetInt(int64(number))
		}
		return name, c, err
	}
}

func encodeSpace(s *space.Space) (string, error) {
	if s == nil {
		return "", nil
	}
	text, err := s.MarshalJSON()
	return string(text), err
}

// decodeSpace appends warnings to the state, if it has a place for them.
func decodeSpace(state any, text string) (*space.Space, error) {
	if text == "" {
		return nil, nil
	}
	s, warnings, err := space.Parse([]byte(text))
	if to, ok := state.(*[]space.Warning); ok {
		*to = warnings
	}
	return s, err
}
