package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// callers returns the kinds of a study's events and their callers.
func callers(t *testing.T, tn *Engine) (all []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := tn.Study(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	for h, err := range tn.Watch(ctx, "s", tuner.From{After: 0}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h.Kind+" "+h.Caller)
		if h.Position == s.Position {
			break
		}
	}
	return all
}

// TestCallersAreStored checks that each event names the caller that caused it, also
// after a restart. Decisions of the clock and the proposer name no caller, even within
// a call.
func TestCallersAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaulty()
		tn := Open(st, Options{LongLived: true})
		by := func(name string) context.Context { return tuner.WithCaller(t.Context(), tuner.Caller{Name: name}) }
		spec := testSpec(t, func(s *study.Spec) { s.Lease, s.Proposer = time.Minute, study.Component{Name: propose.BKB} })
		if _, err := tn.CreateStudy(by("admin"), "s", study.Create{Spec: spec}); err != nil {
			t.Fatal(err)
		}
		if _, err := tn.AddAll(by("importer"), "s", manyAdded(t, spec, 12)); err != nil { // so that there is a model
			t.Fatal(err)
		}
		asked, err := tn.Ask(by("worker"), "s", study.Ask{Count: 2, RequestID: "twice"})
		if err != nil {
			t.Fatal(err)
		}
		n := asked.Trials[0].Number
		_, err = tn.Report(by("worker"), "s", study.ReportValues{Trial: n, Reports: []study.Report{{Step: 1, Values: []study.NamedValue{{Name: "loss", Value: 1}}}}})
		if err == nil {
			_, err = tn.Heartbeat(by("other"), "s", study.Heartbeat{Trial: n})
		}
		if err == nil {
			_, err = tn.Tell(by("worker"), "s", study.Tell{Trial: n, Outcome: loss(1)})
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // the other lease ends
		if _, err := tn.Ask(by("next"), "s", study.Ask{}); err != nil {
			t.Fatal(err)
		}
		if _, err := tn.Finish(t.Context(), "s", study.Finish{}); err != nil {
			t.Fatal(err)
		}
		want := append([]string{"created admin"}, slices.Repeat([]string{"added importer"}, 12)...)
		want = append(want, "anchored ", "started worker", "started worker", "reported worker", "extended other", "told worker", "expired ", "started next", "finished ")
		if got := callers(t, tn); !slices.Equal(got, want) {
			t.Errorf("the log has\n%q, want\n%q", got, want)
		}
		if err := tn.Close(); err != nil {
			t.Fatal(err)
		}
		tn = Open(st, Options{})
		defer tn.Close()
		if got := callers(t, tn); !slices.Equal(got, want) {
			t.Errorf("after a restart the log has\n%q, want\n%q", got, want)
		}
		r, err := tn.Replay(t.Context(), "s", nil)
		if err != nil || r.Suggestions != 2 || len(r.Differences)+len(r.ModelDifferences) > 0 {
			t.Errorf("replayed: %+v, %v", r, err)
		}
	})
}

// manyAdded returns commands that add n completed trials.
func manyAdded(t *testing.T, spec study.Spec, n int) (commands []study.Command) {
	t.Helper()
	p, err := propose.New(study.Component{Name: propose.Random}, spec)
	if err != nil {
		t.Fatal(err)
	}
	var s study.Study
	_, events, err := s.Decide(time.Now(), study.Create{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	proposal, err := p.Propose(t.Context(), s.Snapshot(), n)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range proposal.Suggestions {
		commands = append(commands, study.Add{RequestID: fmt.Sprint("add", i), Config: g.Config, Outcome: loss(float64(i))})
	}
	return commands
}

// TestPermitted checks that permission is decided by the current holder of the trial,
// or the current user of the worker name. A denied call changes nothing.
func TestPermitted(t *testing.T) {
	tn := open(t, newFaulty(), Options{}, nil)
	var acts []tuner.Act
	denying := func(name string) context.Context {
		return tuner.WithCaller(t.Context(), tuner.Caller{Name: name, Permit: func(a tuner.Act) error {
			acts = append(acts, a)
			return &tuner.DeniedError{Reason: "not permitted"}
		}})
	}
	if _, err := tn.Ask(denying("b"), "s", study.Ask{Worker: "w"}); tuner.CodeOf(err) != tuner.Denied {
		t.Errorf("a denied ask: %v", err)
	}
	asked, err := tn.Ask(tuner.WithCaller(t.Context(), tuner.Caller{Name: "a"}), "s", study.Ask{Worker: "w"})
	if err != nil {
		t.Fatal(err)
	}
	n, ctx := asked.Trials[0].Number, denying("b")
	before, err := tn.Study(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	_, askErr := tn.Ask(ctx, "s", study.Ask{Worker: "w", New: true})
	_, tellErr := tn.Tell(ctx, "s", study.Tell{Trial: n, Outcome: loss(1)})
	_, beatErr := tn.Heartbeat(ctx, "s", study.Heartbeat{Trial: n, Epoch: 1})
	_, reportErr := tn.Report(ctx, "s", study.ReportValues{Trial: n, Reports: []study.Report{{Step: 1, Values: []study.NamedValue{{Name: "loss", Value: 1}}}}})
	setErr := tn.SetAttributes(ctx, "s", study.SetAttributes{Trial: n, Attributes: study.Attributes{"k": "v"}})
	for what, err := range map[string]error{"ask": askErr, "tell": tellErr, "heartbeat": beatErr, "report": reportErr, "attributes": setErr} {
		wantCode(t, err, tuner.Denied, "not permitted")
		if err == nil {
			t.Errorf("%s was permitted", what)
		}
	}
	mine := []string{"a"}
	of := tuner.Act{Study: "s", Trial: n, Worker: "w", Callers: mine, Users: mine}
	want := []tuner.Act{{Study: "s", Trial: -1, Worker: "w"}, {Study: "s", Trial: -1, Worker: "w", Users: mine}, of, of, of, of}
	if !reflect.DeepEqual(acts, want) {
		t.Errorf("acts were %v, want %v", acts, want)
	}
	if after, err := tn.Study(t.Context(), "s"); err != nil || after.Position != before.Position {
		t.Errorf("what was denied moved the log from %d to %d, %v", before.Position, after.Position, err)
	}
	if err := tn.SetAttributes(ctx, "s", study.SetAttributes{Trial: study.OfStudy, Attributes: study.Attributes{"k": "v"}}); err != nil {
		t.Errorf("attributes of the study: %v", err)
	}
}

// TestPermittedByLease checks that permission for each lease of a trial is decided by
// the callers that it was handed to and by those of its name, also after a restart.
func TestPermittedByLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaulty()
		tn := Open(st, Options{LongLived: true})
		spec := testSpec(t, func(s *study.Spec) { s.Lease = time.Minute })
		if _, err := tn.CreateStudy(t.Context(), "s", study.Create{Spec: spec}); err != nil {
			t.Fatal(err)
		}
		ask := func(caller, worker string) {
			t.Helper()
			asked, err := tn.Ask(tuner.WithCaller(t.Context(), tuner.Caller{Name: caller}), "s", study.Ask{Worker: worker})
			if err != nil || asked.Trials[0].Number != 0 {
				t.Fatalf("%s got %+v, %v", caller, asked.Trials, err)
			}
		}
		ask("a", "w")
		ask("b", "w") // is handed the trial of the name
		ask("a", "w")
		time.Sleep(2 * time.Minute)
		ask("c", "v")
		for range 2 {
			for epoch, want := range map[int]tuner.Act{
				0: {Study: "s", Trial: 0, Worker: "v", Callers: []string{"c"}, Users: []string{"c"}},
				1: {Study: "s", Trial: 0, Worker: "w", Callers: []string{"a", "b"}, Users: []string{"a", "b"}},
				2: {Study: "s", Trial: 0, Worker: "v", Callers: []string{"c"}, Users: []string{"c"}},
			} {
				var act tuner.Act
				ctx := tuner.WithCaller(t.Context(), tuner.Caller{Name: "d", Permit: func(a tuner.Act) error { act = a; return &tuner.DeniedError{Reason: "not permitted"} }})
				_, err := tn.Tell(ctx, "s", study.Tell{Trial: 0, Epoch: epoch, Outcome: loss(1)})
				if tuner.CodeOf(err) != tuner.Denied || !reflect.DeepEqual(act, want) {
					t.Errorf("epoch %d: %+v, %v, want %+v", epoch, act, err, want)
				}
			}
			if err := tn.Close(); err != nil {
				t.Fatal(err)
			}
			tn = Open(st, Options{})
		}
		if err := tn.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
