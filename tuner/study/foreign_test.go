package study

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// A study of another optimiser counts its trials, and takes nothing but changes.
func TestForeign(t *testing.T) {
	empty, err := space.New()
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{Space: empty, Objectives: []Objective{{Name: "value", Direction: Minimize}}, Proposer: Component{Name: Optuna}}
	var s, twin Study
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	apply := func(events ...Event) {
		t.Helper()
		for _, e := range events {
			if err := errors.Join(s.Apply(e), twin.Apply(e)); err != nil {
				t.Fatal(err)
			}
		}
	}
	apply(Event{Time: now, Body: Created{Spec: spec}})
	change := func(changes ...Foreign) {
		t.Helper()
		_, events, err := s.Decide(now, Change{Changes: changes})
		if err != nil {
			t.Fatal(err)
		}
		apply(events...)
	}
	change(Foreign{Trial: OfStudy, Change: []byte("name")})
	change(Foreign{Trial: 0, State: Running}, Foreign{Trial: 1, State: Queued}, Foreign{Trial: 0, Change: []byte("x")})
	change(Foreign{Trial: 0, State: Completed})
	if s.Trials() != 2 || s.Count(Completed) != 1 || s.Count(Queued) != 1 || s.Count(Running) != 0 {
		t.Errorf("%d trials, %d completed, %d queued", s.Trials(), s.Count(Completed), s.Count(Queued))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if !reflect.DeepEqual(s, twin) {
		t.Error("equal events gave different studies")
	}
	for _, wrong := range []struct {
		f    Foreign
		want string
	}{
		{Foreign{Trial: 3, State: Running}, "trial 3 does not follow the 2 trials"},
		{Foreign{Trial: -2}, "trial -2 does not follow"},
		{Foreign{Trial: 2}, "trial 2 is new and has no state"},
		{Foreign{Trial: OfStudy, State: Running}, "trial -1 cannot have the state running"},
		{Foreign{Trial: 0, State: Pruned + 1}, "trial 0 cannot have the state"},
	} {
		if _, _, err := s.Decide(now, Change{Changes: []Foreign{wrong.f}}); err == nil || !strings.Contains(err.Error(), wrong.want) {
			t.Errorf("%+v: %v", wrong.f, err)
		}
		if err := s.Apply(Event{Time: now, Body: wrong.f}); err == nil || !strings.Contains(err.Error(), wrong.want) {
			t.Errorf("event %+v: %v", wrong.f, err)
		}
	}
	for _, c := range []Command{
		Ask{Count: 1}, Tell{}, ReportValues{}, Heartbeat{}, Enqueue{}, Add{}, Pause{}, Resume{}, Finish{Reason: FinishedUser}, SetAttributes{Trial: OfStudy},
	} {
		if _, events, err := s.Decide(now, c); !errors.Is(err, ErrForeign) || len(events) > 0 {
			t.Errorf("%T: %v", c, err)
		}
	}
}

// A study of this service takes no changes of another optimiser.
func TestNotForeign(t *testing.T) {
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	var s Study
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	_, events, err := s.Decide(now, Create{Spec: Spec{Space: sp, Objectives: []Objective{{Name: "y", Direction: Minimize}}, Proposer: Component{Name: "bkb"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(events[0]); err != nil {
		t.Fatal(err)
	}
	wrong := (*InvalidError)(nil)
	if _, _, err := s.Decide(now, Change{Changes: []Foreign{{Trial: 0, State: Running}}}); !errors.As(err, &wrong) || wrong.Field != "study" {
		t.Error(err)
	}
	if err := s.Apply(Event{Time: now, Body: Foreign{Trial: 0, State: Running}}); err == nil {
		t.Error("the event was applied")
	}
}
