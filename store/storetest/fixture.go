package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
	"pgregory.net/rapid"
)

// fixture is a store with helpers for the tests.
type fixture struct {
	store.Store
	reopen func(t *testing.T) store.Store
}

func newFixture(t *testing.T, h Harness) *fixture {
	f := &fixture{Store: h.Store, reopen: h.Reopen}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

// created is the first event of a study. Marked events follow it.
func created() study.Event { return eventtest.Examples()[0] }

// marked returns a small event with a text that distinguishes it from others.
func marked(format string, args ...any) study.Event {
	return study.Event{Time: eventtest.Instant, Request: study.Request{ID: fmt.Sprintf(format, args...)}, Body: study.Paused{}}
}

// create makes a study of 1+n events, which are Created, then marked 2, 3, ….
func (f *fixture) create(t *testing.T, name string, n int) store.Info {
	t.Helper()
	events := []study.Event{created()}
	for i := range n {
		events = append(events, marked("%d", i+2))
	}
	info, err := f.Create(t.Context(), name, events)
	ok(t, "Create", err)
	return info
}

func (f *fixture) commit(t *testing.T, id store.StudyID, expected study.Position, events ...study.Event) {
	t.Helper()
	ok(t, "Commit", f.Commit(t.Context(), id, expected, events, nil))
}

func (f *fixture) head(t *testing.T, id store.StudyID) study.Position {
	t.Helper()
	info, err := f.Stat(t.Context(), id)
	ok(t, "Stat", err)
	return info.Head
}

// read returns the events from a position on and checks their positions.
func (f *fixture) read(t *testing.T, id store.StudyID, from study.Position) []study.Event {
	t.Helper()
	events, err := collect(t.Context(), f, id, from)
	ok(t, "Read", err)
	return events
}

func collect(ctx context.Context, s store.Store, id store.StudyID, from study.Position) ([]study.Event, error) {
	var events []study.Event
	want := max(from, 1)
	for r, err := range s.Read(ctx, id, from) {
		if err != nil {
			return events, err
		}
		if r.Position != want {
			return events, fmt.Errorf("got a record at position %d, want %d", r.Position, want)
		}
		want++
		events = append(events, r.Event)
	}
	return events, nil
}

func (f *fixture) list(t *testing.T, after string) []store.Info {
	t.Helper()
	var infos []store.Info
	for info, err := range f.List(t.Context(), after) {
		ok(t, "List", err)
		infos = append(infos, info)
	}
	return infos
}

// ok ends a test with the error of a call that cannot fail in a correct store.
func ok(t rapid.TB, call string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
}

// wantError checks that err is or wraps an E, and returns it.
func wantError[E error](t *testing.T, call string, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Errorf("%s: error is %v, want a %T", call, err, e)
	}
	return e
}

func wantIs(t *testing.T, call string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: error is %v, want %v", call, err, target)
	}
}

// wantEvents compares logs event by event.
func wantEvents(t testing.TB, want, got []study.Event) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("got %d events, want %d", len(got), len(want))
	}
	for i := range want {
		if diff := eventtest.Diff(want[i], got[i]); diff != "" {
			t.Fatalf("event %d differs (-want +got):\n%s", i+1, diff)
		}
	}
}

// calls makes every call that concerns a study, and returns their errors. head is the
// expected one of the commit.
func (f *fixture) calls(ctx context.Context, id store.StudyID, head study.Position) map[string]error {
	_, statErr := f.Stat(ctx, id)
	_, readErr := collect(ctx, f, id, 1)
	return map[string]error{
		"Stat": statErr, "Read": readErr,
		"Commit": f.Commit(ctx, id, head, []study.Event{marked("late")}, nil),
		"Delete": f.Delete(ctx, id),
	}
}

// allCalls also makes those that do not concern one study that exists.
func (f *fixture) allCalls(ctx context.Context, info store.Info) map[string]error {
	calls := f.calls(ctx, info.ID, info.Head)
	_, calls["Create"] = f.Create(ctx, "other", []study.Event{created()})
	_, calls["Lookup"] = f.Lookup(ctx, info.Name)
	_, calls["Summaries"] = f.Summaries(ctx, []store.StudyID{info.ID})
	calls["SaveSummaries"] = f.SaveSummaries(ctx, []store.Summary{{Study: info.ID, Position: info.Head, Data: []byte("s")}})
	for _, calls["List"] = range f.List(ctx, "") {
	}
	return calls
}
