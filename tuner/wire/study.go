package wire

import (
	"reflect"
	"time"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// EncodeSpec encodes a spec, with its space in canonical JSON. A setting that is a number, a
// duration, a text or a bool goes to the field of its name.
func EncodeSpec(s study.Spec) (*pb.StudySpec, error) {
	out := &pb.StudySpec{Proposer: encodeComponent(s.Proposer), Pruner: encodeComponent(s.Pruner), Attributes: s.Attributes}
	m := out.ProtoReflect()
	for name, at := range s.Settings() {
		field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		switch at := at.(type) {
		case *int:
			if field.Kind() == protoreflect.Int32Kind {
				m.Set(field, protoreflect.ValueOf(int32Of(*at)))
			} else {
				m.Set(field, protoreflect.ValueOf(int64(*at)))
			}
		case *time.Duration:
			if *at != 0 {
				m.Set(field, protoreflect.ValueOf(durationpb.New(*at).ProtoReflect()))
			}
		case **float64:
			if *at != nil {
				m.Set(field, protoreflect.ValueOf(**at))
			}
		case *uint64, *float64, *string, *bool:
			m.Set(field, protoreflect.ValueOf(reflect.ValueOf(at).Elem().Interface()))
		}
	}
	if s.Space != nil {
		text, err := s.Space.MarshalJSON()
		if err != nil {
			return nil, err
		}
		out.Space = string(text)
	}
	for _, o := range s.Objectives {
		out.Objectives = append(out.Objectives, &pb.Objective{Name: o.Name, Direction: pb.Direction(o.Direction)})
	}
	return out, nil
}

// DecodeSpec reads a spec, with warnings about its space. A missing space is nil.
func DecodeSpec(m *pb.StudySpec) (study.Spec, []space.Warning, error) {
	var d decoder
	s := study.Spec{
		Proposer:   study.Component{Name: m.GetProposer().GetName(), Options: m.GetProposer().GetOptions()},
		Pruner:     study.Component{Name: m.GetPruner().GetName(), Options: m.GetPruner().GetOptions()},
		Attributes: orNil(study.Attributes(m.GetAttributes())),
	}
	fields := m.ProtoReflect().Descriptor().Fields()
	for name, at := range s.Settings() {
		field := fields.ByName(protoreflect.Name(name))
		v := m.ProtoReflect().Get(field)
		switch at := at.(type) {
		case *int:
			*at = number[int](&d, name, v.Int())
		case *time.Duration:
			*at = d.duration(name, v.Message().Interface().(*durationpb.Duration))
		case **float64:
			if m.ProtoReflect().Has(field) {
				x := v.Float()
				*at = &x
			}
		case *uint64, *float64, *string, *bool:
			reflect.ValueOf(at).Elem().Set(reflect.ValueOf(v.Interface()))
		}
	}
	for _, o := range m.GetObjectives() {
		s.Objectives = append(s.Objectives, study.Objective{Name: o.GetName(), Direction: enum(&d, "direction", o.GetDirection(), study.Maximize)})
	}
	var warnings []space.Warning
	if m.GetSpace() != "" {
		var err error
		if s.Space, warnings, err = space.Parse([]byte(m.GetSpace())); err != nil {
			d.fail(err)
		}
	}
	return s, warnings, d.err
}

// encodeComponent leaves the zero Component out.
func encodeComponent(c study.Component) *pb.Component {
	if c == (study.Component{}) {
		return nil
	}
	return &pb.Component{Name: c.Name, Options: c.Options}
}

// EncodeStudy encodes a study. Its Trials is the sum of its Counts and is not sent.
func EncodeStudy(s tuner.Study) (*pb.Study, error) {
	resource, err := StudyName(s.Name)
	if err != nil {
		return nil, err
	}
	if s.Unread != "" {
		return &pb.Study{Name: resource, Uid: uint64(s.ID), Unread: s.Unread}, nil
	}
	spec, err := EncodeSpec(s.Spec)
	if err != nil {
		return nil, err
	}
	count := func(state study.TrialState) int64 { return int64(s.Counts[state]) }
	return &pb.Study{
		Name:         resource,
		Uid:          uint64(s.ID),
		Spec:         spec,
		State:        pb.StudyState(s.Status),
		FinishReason: pb.FinishReason(s.Finished.Reason),
		FinishDetail: s.Finished.Detail,
		CreateTime:   encodeTime(s.Created),
		Position:     uint64(s.Position),
		Queued:       count(study.Queued),
		Running:      count(study.Running),
		Completed:    count(study.Completed),
		Failed:       count(study.Failed),
		Infeasible:   count(study.Infeasible),
		Pruned:       count(study.Pruned),
		Cost:         s.Cost,
		Attributes:   s.Attributes,
		Added:        int64(s.Added),
		Counted:      int64(s.Counted),
		BestMeasured: encodeMeasured(s.BestMeasured),
		LastToldTime: encodeTime(s.LastTold),
		ToldLastHour: int64(s.ToldLastHour),
	}, nil
}

// encodeMeasured leaves out a trial without values.
func encodeMeasured(m tuner.Measured) *pb.MeasuredTrial {
	if len(m.Values) == 0 {
		return nil
	}
	return &pb.MeasuredTrial{Number: int64(m.Trial), Values: m.Values}
}

// DecodeStudy reads a study.
func DecodeStudy(m *pb.Study) (tuner.Study, error) {
	var d decoder
	name, err := ParseStudyName(m.GetName())
	if err != nil {
		return tuner.Study{}, err
	}
	if m.GetUnread() != "" {
		return tuner.Study{Name: name, ID: store.StudyID(m.GetUid()), Unread: m.GetUnread()}, nil
	}
	spec, _, err := DecodeSpec(m.GetSpec())
	if err != nil {
		return tuner.Study{}, err
	}
	s := tuner.Study{
		Name:       name,
		ID:         store.StudyID(m.GetUid()),
		Spec:       spec,
		Status:     enum(&d, "state", m.GetState(), study.StatusFinished),
		Finished:   study.Finished{Reason: enum(&d, "finish_reason", m.GetFinishReason(), study.FinishedPatience), Detail: m.GetFinishDetail()},
		Created:    d.time("create_time", m.GetCreateTime()),
		Position:   study.Position(m.GetPosition()),
		Added:      number[int](&d, "added", m.GetAdded()),
		Counted:    number[int](&d, "counted", m.GetCounted()),
		Cost:       m.GetCost(),
		Attributes: orNil(study.Attributes(m.GetAttributes())),
		BestMeasured: tuner.Measured{
			Trial: number[int](&d, "best_measured.number", m.GetBestMeasured().GetNumber()), Values: m.GetBestMeasured().GetValues(),
		},
		LastTold:     d.time("last_told_time", m.GetLastToldTime()),
		ToldLastHour: number[int](&d, "told_last_hour", m.GetToldLastHour()),
	}
	s.Counts, s.Trials = d.counts(m)
	return s, d.err
}

// counts reads the numbers of trials by state, and their sum.
func (d *decoder) counts(m *pb.Study) (counts map[study.TrialState]int, trials int) {
	counts = make(map[study.TrialState]int)
	for state, n := range map[study.TrialState]int64{
		study.Queued: m.GetQueued(), study.Running: m.GetRunning(), study.Completed: m.GetCompleted(),
		study.Failed: m.GetFailed(), study.Infeasible: m.GetInfeasible(), study.Pruned: m.GetPruned(),
	} {
		if n != 0 {
			counts[state] = number[int](d, state.String(), n)
			trials += counts[state]
		}
	}
	return orNil(counts), trials
}

// EncodeCreated encodes the answer to the creation of a study.
func EncodeCreated(c tuner.Created) (*pb.Study, error) {
	out, err := EncodeStudy(c.Study)
	if err != nil {
		return nil, err
	}
	for _, w := range c.Warnings {
		out.Warnings = append(out.Warnings, &pb.SpaceWarning{Line: int32Of(w.Line), Parameter: w.Parameter, Message: w.Message, Remedy: w.Remedy})
	}
	return out, nil
}

// DecodeCreated reads the answer to the creation of a study.
func DecodeCreated(m *pb.Study) (tuner.Created, error) {
	s, err := DecodeStudy(m)
	if err != nil {
		return tuner.Created{}, err
	}
	c := tuner.Created{Study: s}
	for _, w := range m.GetWarnings() {
		c.Warnings = append(c.Warnings, space.Warning{Line: int(w.GetLine()), Parameter: w.GetParameter(), Message: w.GetMessage(), Remedy: w.GetRemedy()})
	}
	return c, nil
}
