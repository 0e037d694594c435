package optuna

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/optuna/internal/changepb"
	"github.com/bkbtuner/bkb/tuner/study"
)

// timeFormat is that of times in the protocol, which are local and have no zone.
const timeFormat = "2006-01-02 15:04:05.000000"

// Options are the settings of a [Face].
type Options struct {
	// Memory refuses large answers while memory is short. Use that of the service.
	Memory *memlimit.Limit
	// Logger receives studies that cannot be listed, and trials that were failed. Nil
	// discards them.
	Logger *slog.Logger
	// Now is the clock. If nil, it is time.Now.
	Now func() time.Time
}

// Face serves the storage protocol of Optuna on a service. The service must be opened with
// [NewState] as its Options.Foreign.
type Face struct {
	pb.UnimplementedStorageServiceServer
	tuner   *engine.Engine
	options Options

	mu    sync.Mutex
	names map[int64]engine.ForeignStudy // by id
	idle  map[store.StudyID]struct{}    // studies without running trials
}

// New returns the face of a service.
func New(t *engine.Engine, o Options) *Face {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Face{tuner: t, options: o, names: make(map[int64]engine.ForeignStudy), idle: make(map[store.StudyID]struct{})}
}

// now is the time as Optuna writes it.
func (f *Face) now() string { return f.options.Now().Local().Format(timeFormat) }

// study returns the study with an id.
func (f *Face) study(ctx context.Context, id int64) (engine.ForeignStudy, error) {
	f.mu.Lock()
	s, ok := f.names[id]
	f.mu.Unlock()
	if ok {
		return s, nil
	}
	if id < 1 {
		return s, &missingStudy{id}
	}
	s, err := f.tuner.FindForeign(ctx, "", store.StudyID(id))
	if notFound(err) {
		return s, &missingStudy{id}
	} else if err != nil {
		return s, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[id] = s // for ever, as ids are
	return s, nil
}

// update calls do with a study and stores the changes that it returns.
func (f *Face) update(ctx context.Context, id int64, do func(*State) ([]study.Foreign, error)) error {
	s, err := f.study(ctx, id)
	if err != nil {
		return err
	}
	err = f.tuner.Change(ctx, s, func(state engine.Foreign) ([]study.Foreign, error) {
		changes, err := do(state.(*State))
		if len(changes) > 0 {
			f.mu.Lock()
			delete(f.idle, s.ID)
			f.mu.Unlock()
		}
		return changes, err
	})
	if notFound(err) {
		f.forget(s)
		return &missingStudy{id}
	}
	return err
}

// read calls do with a study.
func (f *Face) read(ctx context.Context, id int64, do func(*State) error) error {
	return f.update(ctx, id, func(s *State) ([]study.Foreign, error) { return nil, do(s) })
}

func (f *Face) forget(s engine.ForeignStudy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.names, int64(s.ID))
	delete(f.idle, s.ID)
}

// changeTrial calls do with a trial that has not finished, and stores the change that it
// returns. A call of nil changes nothing.
func (f *Face) changeTrial(ctx context.Context, id int64, do func(*State, *pb.Trial) (*changepb.Change, study.TrialState, error)) error {
	err := f.update(ctx, id>>numberBits, func(s *State) ([]study.Foreign, error) {
		t, err := s.change(id & (1<<numberBits - 1))
		if err != nil {
			return nil, err
		}
		c, state, err := do(s, t)
		if err != nil || c == nil {
			return nil, err
		}
		return encode(int(t.Number), state, c)
	})
	return f.ofTrial(id, err)
}

// ofTrial names the trial in the error of a study that is not there.
func (f *Face) ofTrial(id int64, err error) error {
	if isMissing(err) {
		return noTrial(id)
	}
	return err
}

// encode returns a change as an event has it.
func encode(number int, state study.TrialState, c *changepb.Change) ([]study.Foreign, error) {
	text, err := encoding.Marshal(c)
	return []study.Foreign{{Trial: number, State: state, Change: text}}, err
}

// CreateNewStudy makes a study.
func (f *Face) CreateNewStudy(ctx context.Context, r *pb.CreateNewStudyRequest) (*pb.CreateNewStudyReply, error) {
	var objectives []study.Objective
	for i, d := range r.Directions {
		o := study.Objective{Name: "value", Direction: study.Minimize}
		if len(r.Directions) > 1 {
			o.Name = fmt.Sprintf("value_%d", i)
		}
		switch d {
		case pb.StudyDirection_MINIMIZE:
		case pb.StudyDirection_MAXIMIZE:
			o.Direction = study.Maximize
		default:
			return nil, invalid(fmt.Sprintf("directions[%d]", i), int(d), "must be 0 (MINIMIZE) or 1 (MAXIMIZE)", "use a client of Optuna 4.2 or later")
		}
		objectives = append(objectives, o)
	}
	if len(objectives) == 0 {
		return nil, invalid("directions", "[]", "must have one direction at least", "send MINIMIZE")
	}
	changes, err := encode(study.OfStudy, 0, &changepb.Change{Call: &changepb.Change_NewStudy{NewStudy: &pb.CreateNewStudyRequest{StudyName: r.StudyName}}})
	if err != nil {
		return nil, err
	}
	name := StoreName(r.StudyName)
	s, err := f.tuner.CreateForeign(ctx, name, objectives, changes)
	if taken := (*store.ExistsError)(nil); errors.As(err, &taken) {
		return nil, duplicate(r.StudyName, name)
	} else if err != nil {
		return nil, err
	}
	return &pb.CreateNewStudyReply{StudyId: int64(s.ID)}, nil
}

// DeleteStudy deletes a study with its trials.
func (f *Face) DeleteStudy(ctx context.Context, r *pb.DeleteStudyRequest) (*pb.DeleteStudyReply, error) {
	if err := f.read(ctx, r.StudyId, func(*State) error { return nil }); err != nil {
		return nil, err // and no study of another kind is deleted
	}
	s, err := f.study(ctx, r.StudyId)
	if err != nil {
		return nil, err
	}
	err = f.tuner.DeleteForeign(ctx, s)
	f.forget(s)
	if notFound(err) {
		return nil, &missingStudy{r.StudyId}
	} else if err != nil {
		return nil, err
	}
	return &pb.DeleteStudyReply{}, nil
}

// SetStudyUserAttribute sets an attribute.
func (f *Face) SetStudyUserAttribute(ctx context.Context, r *pb.SetStudyUserAttributeRequest) (*pb.SetStudyUserAttributeReply, error) {
	if err := checkAttribute("value", r.Value); err != nil {
		return nil, err
	}
	return &pb.SetStudyUserAttributeReply{}, f.update(ctx, r.StudyId, func(*State) ([]study.Foreign, error) {
		return encode(study.OfStudy, 0, &changepb.Change{Call: &changepb.Change_StudyUser{
			StudyUser: &pb.SetStudyUserAttributeRequest{Key: r.Key, Value: r.Value},
		}})
	})
}

// SetStudySystemAttribute sets an attribute.
func (f *Face) SetStudySystemAttribute(ctx context.Context, r *pb.SetStudySystemAttributeRequest) (*pb.SetStudySystemAttributeReply, error) {
	if err := checkAttribute("value", r.Value); err != nil {
		return nil, err
	}
	return &pb.SetStudySystemAttributeReply{}, f.update(ctx, r.StudyId, func(*State) ([]study.Foreign, error) {
		return encode(study.OfStudy, 0, &changepb.Change{Call: &changepb.Change_StudySystem{
			StudySystem: &pb.SetStudySystemAttributeRequest{Key: r.Key, Value: r.Value},
		}})
	})
}

// GetStudyIdFromName finds a study.
func (f *Face) GetStudyIdFromName(ctx context.Context, r *pb.GetStudyIdFromNameRequest) (*pb.GetStudyIdFromNameReply, error) {
	s, err := f.tuner.FindForeign(ctx, StoreName(r.StudyName), 0)
	if notFound(err) {
		return nil, noStudyNamed(r.StudyName)
	} else if err != nil {
		return nil, err
	}
	var name string
	err = f.read(ctx, int64(s.ID), func(s *State) error {
		name = s.name
		return nil
	})
	if isMissing(err) || err == nil && name != r.StudyName {
		return nil, noStudyNamed(r.StudyName)
	}
	return &pb.GetStudyIdFromNameReply{StudyId: int64(s.ID)}, err
}

// frozen returns a study without its trials.
func (f *Face) frozen(ctx context.Context, id int64) (s *pb.Study, err error) {
	err = f.read(ctx, id, func(state *State) error {
		s = state.frozen()
		return nil
	})
	return s, err
}

// GetStudyNameFromId returns the name of a study.
func (f *Face) GetStudyNameFromId(ctx context.Context, r *pb.GetStudyNameFromIdRequest) (*pb.GetStudyNameFromIdReply, error) {
	s, err := f.frozen(ctx, r.StudyId)
	return &pb.GetStudyNameFromIdReply{StudyName: s.GetStudyName()}, err
}

// GetStudyDirections returns the directions of a study.
func (f *Face) GetStudyDirections(ctx context.Context, r *pb.GetStudyDirectionsRequest) (*pb.GetStudyDirectionsReply, error) {
	s, err := f.frozen(ctx, r.StudyId)
	return &pb.GetStudyDirectionsReply{Directions: s.GetDirections()}, err
}

// GetStudyUserAttributes returns the attributes of a study.
func (f *Face) GetStudyUserAttributes(ctx context.Context, r *pb.GetStudyUserAttributesRequest) (*pb.GetStudyUserAttributesReply, error) {
	s, err := f.frozen(ctx, r.StudyId)
	return &pb.GetStudyUserAttributesReply{UserAttributes: s.GetUserAttributes()}, err
}

// GetStudySystemAttributes returns the attributes of a study.
func (f *Face) GetStudySystemAttributes(ctx context.Context, r *pb.GetStudySystemAttributesRequest) (*pb.GetStudySystemAttributesReply, error) {
	s, err := f.frozen(ctx, r.StudyId)
	return &pb.GetStudySystemAttributesReply{SystemAttributes: s.GetSystemAttributes()}, err
}

// GetAllStudies returns the studies of Optuna in order of creation. It leaves out those
// that cannot be read.
func (f *Face) GetAllStudies(ctx context.Context, _ *pb.GetAllStudiesRequest) (*pb.GetAllStudiesReply, error) {
	studies, err := f.tuner.ForeignStudies(ctx, Prefix)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(studies, func(a, b engine.ForeignStudy) int { return cmp.Compare(a.ID, b.ID) })
	reply := new(pb.GetAllStudiesReply)
	for _, s := range studies {
		all, err := f.frozen(ctx, int64(s.ID))
		switch {
		case err == nil:
			reply.Studies = append(reply.Studies, all)
		case isMissing(err): // deleted in the meantime, or not of Optuna
		case tuner.CodeOf(err) == tuner.Damaged:
			f.options.Logger.Warn("a study of Optuna could not be read", "study", s.Name, "error", err)
		default:
			return nil, err
		}
	}
	return reply, nil
}

// CreateNewTrial makes a trial, which runs or is as the template says.
func (f *Face) CreateNewTrial(ctx context.Context, r *pb.CreateNewTrialRequest) (*pb.CreateNewTrialReply, error) {
	call, state := &pb.CreateNewTrialRequest{}, study.Running
	if !r.TemplateTrialIsNone {
		if call.TemplateTrial, _ = proto.Clone(r.TemplateTrial).(*pb.Trial); r.TemplateTrial == nil {
			call.TemplateTrial = &pb.Trial{}
		}
		call.TemplateTrial.TrialId, call.TemplateTrial.Number = 0, 0
		state = states[call.TemplateTrial.State]
	}
	reply := new(pb.CreateNewTrialReply)
	return reply, f.update(ctx, r.StudyId, func(s *State) ([]study.Foreign, error) {
		at := f.now()
		if call.TemplateTrial != nil {
			if err := s.template(call.TemplateTrial); err != nil {
				return nil, err
			}
			at = ""
		}
		reply.TrialId = s.trialID(len(s.trials))
		return encode(len(s.trials), state, &changepb.Change{At: at, Call: &changepb.Change_NewTrial{NewTrial: call}})
	})
}

// SetTrialParameter sets a parameter.
func (f *Face) SetTrialParameter(ctx context.Context, r *pb.SetTrialParameterRequest) (*pb.SetTrialParameterReply, error) {
	return &pb.SetTrialParameterReply{}, f.changeTrial(ctx, r.TrialId, func(s *State, _ *pb.Trial) (*changepb.Change, study.TrialState, error) {
		if err := s.parameter(r.ParamName, r.ParamValueInternal, r.Distribution); err != nil {
			return nil, 0, err
		}
		return &changepb.Change{Call: &changepb.Change_Parameter{Parameter: &pb.SetTrialParameterRequest{
			ParamName: r.ParamName, ParamValueInternal: r.ParamValueInternal, Distribution: r.Distribution,
		}}}, 0, nil
	})
}

// GetTrialIdFromStudyIdTrialNumber finds a trial.
func (f *Face) GetTrialIdFromStudyIdTrialNumber(ctx context.Context, r *pb.GetTrialIdFromStudyIdTrialNumberRequest) (*pb.GetTrialIdFromStudyIdTrialNumberReply, error) {
	reply := new(pb.GetTrialIdFromStudyIdTrialNumberReply)
	return reply, f.read(ctx, r.StudyId, func(s *State) error {
		if r.TrialNumber < 0 || r.TrialNumber >= int64(len(s.trials)) {
			return noNumber(r.TrialNumber, len(s.trials))
		}
		reply.TrialId = s.trialID(int(r.TrialNumber))
		return nil
	})
}

// SetTrialStateValues starts or ends a trial. Of several clients that start a waiting
// trial, one is told that it did.
func (f *Face) SetTrialStateValues(ctx context.Context, r *pb.SetTrialStateValuesRequest) (*pb.SetTrialStateValuesReply, error) {
	if _, ok := states[r.State]; !ok {
		return nil, invalidState("state", r.State)
	}
	reply := new(pb.SetTrialStateValuesReply)
	return reply, f.changeTrial(ctx, r.TrialId, func(s *State, t *pb.Trial) (*changepb.Change, study.TrialState, error) {
		if err := checkValues("values", r.State, len(r.Values), len(s.directions)); err != nil {
			return nil, 0, err
		}
		reply.TrialUpdated = r.State != pb.TrialState_RUNNING || t.State == pb.TrialState_WAITING
		if !reply.TrialUpdated {
			return nil, 0, nil
		}
		c := &changepb.Change{Call: &changepb.Change_State{State: &pb.SetTrialStateValuesRequest{State: r.State, Values: r.Values}}}
		if r.State != pb.TrialState_WAITING {
			c.At = f.now()
		}
		return c, states[r.State], nil
	})
}

// SetTrialIntermediateValue reports a value.
func (f *Face) SetTrialIntermediateValue(ctx context.Context, r *pb.SetTrialIntermediateValueRequest) (*pb.SetTrialIntermediateValueReply, error) {
	return &pb.SetTrialIntermediateValueReply{}, f.changeTrial(ctx, r.TrialId, func(*State, *pb.Trial) (*changepb.Change, study.TrialState, error) {
		return &changepb.Change{Call: &changepb.Change_Intermediate{Intermediate: &pb.SetTrialIntermediateValueRequest{
			Step: r.Step, IntermediateValue: r.IntermediateValue,
		}}}, 0, nil
	})
}

// SetTrialUserAttribute sets an attribute.
func (f *Face) SetTrialUserAttribute(ctx context.Context, r *pb.SetTrialUserAttributeRequest) (*pb.SetTrialUserAttributeReply, error) {
	if err := checkAttribute("value", r.Value); err != nil {
		return nil, err
	}
	return &pb.SetTrialUserAttributeReply{}, f.changeTrial(ctx, r.TrialId, func(*State, *pb.Trial) (*changepb.Change, study.TrialState, error) {
		return &changepb.Change{Call: &changepb.Change_TrialUser{TrialUser: &pb.SetTrialUserAttributeRequest{Key: r.Key, Value: r.Value}}}, 0, nil
	})
}

// SetTrialSystemAttribute sets an attribute.
func (f *Face) SetTrialSystemAttribute(ctx context.Context, r *pb.SetTrialSystemAttributeRequest) (*pb.SetTrialSystemAttributeReply, error) {
	if err := checkAttribute("value", r.Value); err != nil {
		return nil, err
	}
	return &pb.SetTrialSystemAttributeReply{}, f.changeTrial(ctx, r.TrialId, func(*State, *pb.Trial) (*changepb.Change, study.TrialState, error) {
		return &changepb.Change{Call: &changepb.Change_TrialSystem{TrialSystem: &pb.SetTrialSystemAttributeRequest{Key: r.Key, Value: r.Value}}}, 0, nil
	})
}

// GetTrial returns a trial.
func (f *Face) GetTrial(ctx context.Context, r *pb.GetTrialRequest) (*pb.GetTrialReply, error) {
	reply := &pb.GetTrialReply{Trial: new(pb.Trial)}
	var text []byte
	err := f.read(ctx, r.TrialId>>numberBits, func(s *State) (err error) {
		text, err = s.find(r.TrialId & (1<<numberBits - 1))
		return err
	})
	if err != nil {
		return nil, f.ofTrial(r.TrialId, err)
	}
	return reply, proto.Unmarshal(text, reply.Trial)
}

// GetTrials returns the trials after an id, and some before it, in one answer however
// long.
func (f *Face) GetTrials(ctx context.Context, r *pb.GetTrialsRequest) (*pb.GetTrialsReply, error) {
	slices.Sort(r.IncludedTrialIds)
	var trials []byte
	err := f.read(ctx, r.StudyId, func(s *State) error {
		from := 0
		if first := s.trialID(0); r.TrialIdGreaterThan >= first {
			from = int(min(r.TrialIdGreaterThan-first+1, int64(len(s.trials))))
		}
		leave, ok := f.options.Memory.Enter(2*s.size(from), memlimit.ShareAdmin)
		if !ok {
			return &tuner.MemoryError{Limit: f.options.Memory.Bytes()}
		}
		defer leave()
		var err error
		trials, err = s.list(trialsField, from, r.IncludedTrialIds)
		return err
	})
	if err != nil {
		return nil, err
	}
	reply := new(pb.GetTrialsReply)
	reply.ProtoReflect().SetUnknown(trials) // is sent as it is
	return reply, nil
}

// trialsField is the field of the trials in a [pb.GetTrialsReply].
const trialsField = 1

// Subject names what a call changed, or returns "" if it changes nothing.
func Subject(request, answer any) string {
	switch r := request.(type) {
	case *pb.CreateNewStudyRequest:
		a, _ := answer.(*pb.CreateNewStudyReply)
		return fmt.Sprintf("optuna/studies/%d %.60q", a.GetStudyId(), r.StudyName)
	case *pb.DeleteStudyRequest, *pb.SetStudyUserAttributeRequest, *pb.SetStudySystemAttributeRequest:
		return fmt.Sprintf("optuna/studies/%d", r.(interface{ GetStudyId() int64 }).GetStudyId())
	case *pb.CreateNewTrialRequest:
		a, _ := answer.(*pb.CreateNewTrialReply)
		return trialName(a.GetTrialId())
	case *pb.SetTrialParameterRequest, *pb.SetTrialStateValuesRequest, *pb.SetTrialIntermediateValueRequest,
		*pb.SetTrialUserAttributeRequest, *pb.SetTrialSystemAttributeRequest:
		return trialName(r.(interface{ GetTrialId() int64 }).GetTrialId())
	default:
		return ""
	}
}

func trialName(id int64) string {
	return fmt.Sprintf("optuna/studies/%d/trials/%d", id>>numberBits, id&(1<<numberBits-1))
}
