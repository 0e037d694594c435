package optuna

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/optuna/internal/changepb"
	"github.com/bkbtuner/bkb/tuner/study"
)

// State is a study of Optuna, folded from its events.
type State struct {
	id            store.StudyID
	name          string
	directions    []pb.StudyDirection
	user, system  map[string]string
	trials        []trial
	distributions map[string]Distribution // by parameter, the last one
	texts         map[string]string       // their JSON
}

// trial is a trial, which is complete in one of two forms.
type trial struct {
	open *pb.Trial // running or waiting
	done []byte    // finished, as the wire has it
	last time.Time // change
}

// NewState returns the empty state of a study.
func NewState(id store.StudyID) engine.Foreign {
	return &State{
		id: id, user: make(map[string]string), system: make(map[string]string),
		distributions: make(map[string]Distribution), texts: make(map[string]string),
	}
}

// states are the states of trials in package study.
var states = map[pb.TrialState]study.TrialState{
	pb.TrialState_RUNNING:  study.Running,
	pb.TrialState_COMPLETE: study.Completed,
	pb.TrialState_PRUNED:   study.Pruned,
	pb.TrialState_FAIL:     study.Failed,
	pb.TrialState_WAITING:  study.Queued,
}

// over tells whether a state is final.
func over(s pb.TrialState) bool { return states[s].Terminal() }

// trialID is the id of a trial.
func (s *State) trialID(number int) int64 { return int64(s.id)<<numberBits | int64(number) }

// numberBits are the low bits of a trial's id, which hold its number.
const numberBits = 32

// Apply implements [engine.Foreign].
func (s *State) Apply(e study.Event) error {
	switch b := e.Body.(type) {
	case study.Created:
		for _, o := range b.Spec.Objectives {
			d := pb.StudyDirection_MINIMIZE
			if o.Direction == study.Maximize {
				d = pb.StudyDirection_MAXIMIZE
			}
			s.directions = append(s.directions, d)
		}
		return nil
	case study.Foreign:
		var c changepb.Change
		if err := proto.Unmarshal(b.Change, &c); err != nil {
			return fmt.Errorf("a change of Optuna: %w", err)
		}
		return s.apply(e.Time, b, &c)
	default:
		return fmt.Errorf("a study of Optuna has the event %T", b)
	}
}

func (s *State) apply(at time.Time, b study.Foreign, c *changepb.Change) error {
	switch call := c.Call.(type) {
	case *changepb.Change_NewStudy:
		s.name = call.NewStudy.StudyName
		return nil
	case *changepb.Change_StudyUser:
		s.user[call.StudyUser.Key] = call.StudyUser.Value
		return nil
	case *changepb.Change_StudySystem:
		s.system[call.StudySystem.Key] = call.StudySystem.Value
		return nil
	case *changepb.Change_NewTrial:
		return s.applyNewTrial(at, b.Trial, c.At, call.NewTrial)
	}
	if b.Trial < 0 || b.Trial >= len(s.trials) || s.trials[b.Trial].open == nil {
		return fmt.Errorf("trial %d cannot change", b.Trial)
	}
	t := s.trials[b.Trial].open
	switch call := c.Call.(type) {
	case *changepb.Change_Parameter:
		name := call.Parameter.ParamName
		put(&t.Params, name, call.Parameter.ParamValueInternal)
		put(&t.Distributions, name, call.Parameter.Distribution)
		s.know(map[string]string{name: call.Parameter.Distribution})
	case *changepb.Change_Intermediate:
		put(&t.IntermediateValues, call.Intermediate.Step, call.Intermediate.IntermediateValue)
	case *changepb.Change_TrialUser:
		put(&t.UserAttributes, call.TrialUser.Key, call.TrialUser.Value)
	case *changepb.Change_TrialSystem:
		put(&t.SystemAttributes, call.TrialSystem.Key, call.TrialSystem.Value)
	case *changepb.Change_State:
		t.State = call.State.State
		if len(call.State.Values) > 0 {
			t.Values = call.State.Values
		}
		switch {
		case t.State == pb.TrialState_RUNNING:
			t.DatetimeStart = c.At
		case over(t.State):
			t.DatetimeComplete = c.At
		}
	default:
		return fmt.Errorf("a change of Optuna is of the unknown kind %T", call)
	}
	return s.put(b.Trial, t, at)
}

func (s *State) applyNewTrial(at time.Time, number int, started string, call *pb.CreateNewTrialRequest) error {
	if number != len(s.trials) {
		return fmt.Errorf("trial %d does not follow trial %d", number, len(s.trials)-1)
	}
	t := call.TemplateTrial
	if t == nil {
		t = &pb.Trial{State: pb.TrialState_RUNNING, DatetimeStart: started}
	}
	t.Number, t.TrialId = int64(number), s.trialID(number)
	s.know(t.Distributions)
	s.trials = append(s.trials, trial{})
	return s.put(number, t, at)
}

// put keeps a trial.
func (s *State) put(number int, t *pb.Trial, at time.Time) error {
	kept := trial{open: t, last: at}
	if over(t.State) {
		text, err := encoding.Marshal(t)
		if err != nil {
			return err
		}
		kept = trial{done: slices.Clip(text)}
	}
	s.trials[number] = kept
	return nil
}

// encoding makes equal bytes of equal trials.
var encoding = proto.MarshalOptions{Deterministic: true}

func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[key] = value
}

// find returns the bytes of a trial.
func (s *State) find(number int64) (text []byte, err error) {
	if number < 0 || number >= int64(len(s.trials)) {
		return nil, noTrial(int64(s.id)<<numberBits | number)
	}
	t := s.trials[number]
	if t.open == nil {
		return t.done, nil
	}
	return encoding.Marshal(t.open)
}

// change returns the trial that a call may change.
func (s *State) change(number int64) (*pb.Trial, error) {
	if number < 0 || number >= int64(len(s.trials)) {
		return nil, noTrial(int64(s.id)<<numberBits | number)
	}
	t := s.trials[number]
	if t.open == nil {
		var was pb.Trial
		if err := proto.Unmarshal(t.done, &was); err != nil {
			return nil, err
		}
		return nil, finished(was.TrialId, was.State)
	}
	return t.open, nil
}

// size is about how many bytes the trials from a number on take on the wire.
func (s *State) size(from int) (bytes int64) {
	for _, t := range s.trials[from:] {
		if bytes += int64(len(t.done)); t.open != nil {
			bytes += int64(proto.Size(t.open))
		}
	}
	return bytes
}

// list appends the trials with a number from from on, and those of some ids before it, as
// the field of a message. The ids are ascending.
func (s *State) list(field protowire.Number, from int, ids []int64) (out []byte, err error) {
	add := func(number int64) error {
		text, err := s.find(number)
		out = protowire.AppendBytes(protowire.AppendTag(out, field, protowire.BytesType), text)
		return err
	}
	for _, id := range slices.Compact(ids) {
		if number := id & (1<<numberBits - 1); id>>numberBits == int64(s.id) && number < int64(min(from, len(s.trials))) {
			if err := add(number); err != nil {
				return nil, err
			}
		}
	}
	for number := from; number < len(s.trials); number++ {
		if err := add(int64(number)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// frozen returns the study without its trials.
func (s *State) frozen() *pb.Study {
	return &pb.Study{
		StudyId: int64(s.id), StudyName: s.name, Directions: slices.Clone(s.directions),
		UserAttributes: maps.Clone(s.user), SystemAttributes: maps.Clone(s.system),
	}
}

// stale returns the numbers of the running trials that have not changed since a time, and
// whether other trials run.
func (s *State) stale(since time.Time) (numbers []int, others bool) {
	for number, t := range s.trials {
		if t.open == nil || t.open.State != pb.TrialState_RUNNING {
			continue
		}
		if t.last.After(since) {
			others = true
		} else {
			numbers = append(numbers, number)
		}
	}
	return numbers, others
}
