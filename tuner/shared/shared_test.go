package shared_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/shared"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func open(path string) *shared.Service {
	return shared.New(func(context.Context) (tuner.Service, error) {
		st, err := bolt.Open(path, bolt.Options{LockTimeout: time.Minute})
		if err != nil {
			return nil, err
		}
		return engine.Open(st, engine.Options{}), nil
	})
}

func newStudy(t *testing.T, svc tuner.Service, trials int) {
	t.Helper()
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, MaxTrials: trials}
	if _, err := svc.CreateStudy(t.Context(), "s", study.Create{Spec: spec}); err != nil {
		t.Fatal(err)
	}
}

// Several owners of one file, each with several callers, all get their turns.
func TestOwnersTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tuner.db")
	first := open(path)
	defer first.Close()
	newStudy(t, first, 60)
	var mu sync.Mutex
	var told []int
	var work sync.WaitGroup
	for range 3 {
		owner := open(path)
		for range 3 {
			work.Go(func() {
				for {
					asked, err := owner.Ask(t.Context(), "s", study.Ask{Count: 1})
					if c := tuner.CodeOf(err); c == tuner.Finished || c == tuner.NoneLeft {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					n := asked.Trials[0].Number
					o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{float64(n)}}}}
					if _, err := owner.Tell(t.Context(), "s", study.Tell{Trial: n, Outcome: o}); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					told = append(told, n)
					mu.Unlock()
				}
			})
		}
		defer owner.Close()
	}
	var seen []study.Position
	for h, err := range first.Watch(t.Context(), "s", tuner.From{After: 0}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, h.Position); h.Kind == "finished" {
			break
		}
	}
	work.Wait()
	slices.Sort(told)
	if len(told) != 60 || len(slices.Compact(told)) != 60 {
		t.Errorf("told %v", told)
	}
	for i, p := range seen {
		if p != study.Position(i+1) {
			t.Fatalf("position %d came after %d others", p, i)
		}
	}
}

func TestErrorsOfOpening(t *testing.T) {
	broken := errors.New("no such thing")
	tries := 0
	s := shared.New(func(context.Context) (tuner.Service, error) {
		tries++
		return nil, broken
	})
	for range 2 {
		if _, err := s.Study(t.Context(), "s"); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
	if tries != 2 {
		t.Errorf("%d tries", tries)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Study(t.Context(), "s"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Every call reaches the file, and its answer comes back.
func TestCalls(t *testing.T) {
	s := open(filepath.Join(t.TempDir(), "tuner.db"))
	defer s.Close()
	newStudy(t, s, 9)
	ctx := t.Context()
	config := space.NewConfig(space.Assignment{Name: "x", Value: space.Float(0.5)})
	done := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{1}}}}
	for i, f := range []func() error{
		func() error { _, err := s.Enqueue(ctx, "s", study.Enqueue{Config: config}); return err },
		func() error { _, err := s.Ask(ctx, "s", study.Ask{Count: 1}); return err },
		func() error { _, err := s.Heartbeat(ctx, "s", study.Heartbeat{Trial: 0}); return err },
		func() error {
			_, err := s.Report(ctx, "s", study.ReportValues{Trial: 0, Reports: []study.Report{{Step: 1, Values: []study.NamedValue{{Name: "loss", Value: 1}}}}})
			return err
		},
		func() error { _, err := s.Tell(ctx, "s", study.Tell{Trial: 0, Outcome: done}); return err },
		func() error { _, err := s.Add(ctx, "s", study.Add{Config: config, Outcome: done}); return err },
		func() error {
			return s.SetAttributes(ctx, "s", study.SetAttributes{Trial: study.OfStudy, Attributes: study.Attributes{"a": "b"}})
		},
		func() error { _, err := s.Pause(ctx, "s", study.Pause{}); return err },
		func() error { _, err := s.Resume(ctx, "s", study.Resume{}); return err },
		func() error { _, err := s.Extend(ctx, "s", study.Extend{}); return err },
		func() error { _, err := s.Finish(ctx, "s", study.Finish{}); return err },
		func() error { return want(s.Trial(ctx, "s", 1))(func(t study.Trial) bool { return t.Number == 1 }) },
		func() error { return want(s.Best(ctx, "s"))(func(t []study.Trial) bool { return len(t) == 1 }) },
		func() error {
			trials, more, err := s.Trials(ctx, "s", tuner.Filter{})
			return want(len(trials), err)(func(n int) bool { return n == 2 && !more })
		},
		func() error {
			studies, _, err := s.Studies(ctx, "", 0)
			return want(len(studies), err)(func(n int) bool { return n == 1 })
		},
		func() error { return s.DeleteStudy(ctx, "s") },
	} {
		if err := f(); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func want[T any](v T, err error) func(func(T) bool) error {
	return func(ok func(T) bool) error {
		if err == nil && !ok(v) {
			return fmt.Errorf("got %v", v)
		}
		return err
	}
}
