package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

func testCommit(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 0)
	f.commit(t, info.ID, 1, marked("2"))
	f.commit(t, info.ID, 2, marked("3"), marked("4"), marked("5"))
	if head := f.head(t, info.ID); head != 5 {
		t.Errorf("head = %d, want 5", head)
	}
	want := []study.Event{created(), marked("2"), marked("3"), marked("4"), marked("5")}
	wantEvents(t, want, f.read(t, info.ID, 1))
}

func testConflict(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 3)
	for _, expected := range []study.Position{1, 3, 5, 1 << 40, math.MaxUint64} {
		err := f.Commit(t.Context(), info.ID, expected, []study.Event{marked("x"), marked("y")}, nil)
		want := store.ConflictError{Study: info.ID, Expected: expected, Actual: 4}
		if e := wantError[*store.ConflictError](t, "Commit", err); e != nil && *e != want {
			t.Errorf("the error is %+v, want %+v", *e, want)
		}
	}
	if got := f.read(t, info.ID, 1); len(got) != 4 {
		t.Errorf("refused commits left %d events, want 4", len(got))
	}
	f.commit(t, info.ID, 4, marked("5"))
	err := f.Commit(t.Context(), info.ID, 4, []study.Event{marked("5")}, nil)
	wantError[*store.ConflictError](t, "the same commit again", err)
}

func testAllOrNothing(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 0)
	for at := range 4 {
		events := []study.Event{marked("2"), marked("3"), marked("4"), marked("5")}
		events[at].Body = study.Told{} // has no state
		wantIs(t, "Commit", f.Commit(t.Context(), info.ID, 1, events, nil), store.ErrInvalid)
		if head := f.head(t, info.ID); head != 1 {
			t.Fatalf("a commit refused for its event %d moved the head to %d", at, head)
		}
	}
	wantEvents(t, []study.Event{created()}, f.read(t, info.ID, 1))
}

func testCommitInvalid(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 0)
	for what, events := range map[string][]study.Event{
		"nothing":   nil,
		"Created":   {created()},
		"no body":   {{}},
		"bad UTF-8": {{Body: study.Finished{Reason: study.FinishedUser, Detail: "\xff"}}},
	} {
		wantIs(t, "Commit of "+what, f.Commit(t.Context(), info.ID, 1, events, nil), store.ErrInvalid)
	}
	if head := f.head(t, info.ID); head != 1 {
		t.Errorf("refused commits moved the head to %d", head)
	}
}

func testKinds(t *testing.T, f *fixture) {
	want := eventtest.Examples()
	info, err := f.Create(t.Context(), "mnist", want[:1])
	ok(t, "the call", err)
	for i := 1; i < len(want); i++ {
		f.commit(t, info.ID, study.Position(i), want[i])
	}
	wantEvents(t, want, f.read(t, info.ID, 1))
}

func testLarge(t *testing.T, f *fixture) {
	racetest.Alone(t)
	info := f.create(t, "large", 0)
	model := bytes.Repeat([]byte{0xa5, 0x5a}, study.MaxModelBytes/2)
	reports := make([]study.Report, study.MaxReports)
	for i := range reports {
		reports[i] = study.Report{Step: int64(i), Values: []study.NamedValue{{Name: "loss", Value: 1 / float64(i+1)}}}
	}
	large := []study.Event{
		{Body: study.Anchored{Seen: 1, Effective: 1, Model: model}},
		{Body: study.Added{Reports: reports, Outcome: study.Outcome{State: study.Completed}}},
	}
	f.commit(t, info.ID, 1, large...)
	got := f.read(t, info.ID, 2)
	if len(got) != 2 || !bytes.Equal(got[0].Body.(study.Anchored).Model, model) {
		t.Fatal("the model came back otherwise")
	}
	for i, r := range got[1].Body.(study.Added).Reports {
		if w := reports[i]; r.Step != w.Step || r.Values[0] != w.Values[0] {
			t.Fatalf("report %d came back as %+v, want %+v", i, r, w)
		}
	}

	huge := study.Event{Body: study.Anchored{Model: make([]byte, store.MaxRecordBytes)}}
	err := f.Commit(t.Context(), info.ID, 3, []study.Event{huge}, nil)
	wantError[*store.LimitError](t, "Commit of a huge event", err)
	err = f.Commit(t.Context(), info.ID, 3, []study.Event{large[0], large[0], large[0], large[0], large[0]}, nil)
	wantError[*store.LimitError](t, "Commit of many large events", err)
	if head := f.head(t, info.ID); head != 3 {
		t.Errorf("refused commits moved the head to %d", head)
	}
}

func testReadFrom(t *testing.T, f *fixture) {
	const last = 700 // more than any store reads in one page
	info := f.create(t, "mnist", 99)
	for head := study.Position(100); head < last; head += 4 {
		f.commit(t, info.ID, head, marked("%d", head+1), marked("%d", head+2), marked("%d", head+3), marked("%d", head+4))
	}
	all := f.read(t, info.ID, 0)
	if len(all) != last {
		t.Fatalf("read %d events, want %d", len(all), last)
	}
	for _, from := range []study.Position{1, 2, 3, 64, 99, 100, 101, 255, 256, 257, 698, 699, 700} {
		wantEvents(t, all[from-1:], f.read(t, info.ID, from))
	}
	for _, from := range []study.Position{last + 1, last + 2, 1 << 40, math.MaxUint64} {
		if got := f.read(t, info.ID, from); len(got) != 0 {
			t.Errorf("reading from %d gave %d events", from, len(got))
		}
	}
	var n int
	records := f.Read(t.Context(), info.ID, 5)
	for range records {
		if n++; n == 3 {
			break
		}
	}
	for r, err := range records { // again, from its beginning
		if err != nil || r.Position != 5 {
			t.Errorf("ranging again gave position %d, %v; want 5", r.Position, err)
		}
		break
	}
}

// testReadReentrant would hang in a store that holds a lock while it yields.
func testReadReentrant(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 4)
	head := info.Head
	for r, err := range f.Read(t.Context(), info.ID, 1) {
		ok(t, "the call", err)
		if r.Position > 5 {
			continue
		}
		f.commit(t, info.ID, head, marked("%d", head+1))
		head++
		f.create(t, fmt.Sprint("n", r.Position), 0)
	}
	if got := f.read(t, info.ID, 1); len(got) != 10 {
		t.Errorf("got %d events, want 10", len(got))
	}
}

func testUnshared(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 0)
	model, values, attributes := []byte("model"), []float64{1, 2}, study.Attributes{"k": "v"}
	events := []study.Event{
		{Body: study.Anchored{Model: model}},
		{Body: study.Told{Outcome: study.Outcome{
			State: study.Completed, Metrics: []study.Metric{{Name: "m", Values: values}}, Attributes: attributes,
		}}},
	}
	f.commit(t, info.ID, 1, events...)
	data := []byte("summary")
	ok(t, "SaveSummaries", f.SaveSummaries(t.Context(), []store.Summary{{Study: info.ID, Position: 3, Data: data}}))
	scribble := func(model []byte, values []float64, attributes study.Attributes, data []byte) {
		clear(model)
		clear(values)
		attributes["k"] = "changed"
		clear(data)
	}
	scribble(model, values, attributes, data)
	events[0] = marked("changed")
	for range 2 { // change the arguments first, then the results
		got := f.read(t, info.ID, 2)
		list, err := f.Summaries(t.Context(), []store.StudyID{info.ID})
		anchored, told := got[0].Body.(study.Anchored), got[1].Body.(study.Told).Outcome
		if string(anchored.Model) != "model" || told.Metrics[0].Values[1] != 2 || told.Attributes["k"] != "v" {
			t.Fatalf("the store shares memory with its caller: %+v", got)
		}
		if err != nil || len(list) != 1 || string(list[0].Data) != "summary" {
			t.Fatalf("the store shares the summary with its caller: %+v, %v", list, err)
		}
		scribble(anchored.Model, told.Metrics[0].Values, told.Attributes, list[0].Data)
	}
}

func testCancelled(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for call, err := range f.allCalls(ctx, info) {
		wantIs(t, call+" with a cancelled context", err, context.Canceled)
	}
	if infos := f.list(t, ""); len(infos) != 1 || infos[0] != info {
		t.Errorf("cancelled calls left %+v, want %+v", infos, info)
	}
	if list := f.summaries(t, info.ID); len(list) != 0 {
		t.Error("a cancelled call left a summary")
	}
}

// testCancelledMidway cancels during a commit. The call's result and its effect must agree.
func testCancelledMidway(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 0)
	head := info.Head
	for i := range 60 {
		ctx, cancel := context.WithCancel(t.Context())
		started := make(chan struct{})
		go func() {
			close(started)
			cancel()
		}()
		if i%2 == 0 {
			<-started
		}
		err := f.Commit(ctx, info.ID, head, []study.Event{marked("%d.0", i), marked("%d.1", i)}, nil)
		cancel()
		switch {
		case err == nil:
			head += 2
		case !errors.Is(err, context.Canceled):
			t.Fatalf("Commit: %v", err)
		}
		if got := f.head(t, info.ID); got != head {
			t.Fatalf("the head is at %d, want %d, after a commit that returned %v", got, head, err)
		}
	}
}

// summaries returns the data of the summaries of studies.
func (f *fixture) summaries(t *testing.T, ids ...store.StudyID) map[store.StudyID]string {
	t.Helper()
	list, err := f.Summaries(t.Context(), ids)
	if err != nil {
		t.Fatalf("Summaries: %v", err)
	}
	got := make(map[store.StudyID]string)
	for _, sum := range list {
		got[sum.Study] = string(sum.Data)
		if head := f.head(t, sum.Study); sum.Position != head {
			t.Errorf("the summary of study %d is at %d, and its head at %d", sum.Study, sum.Position, head)
		}
		if diff := eventtest.Diff(created(), sum.Created); diff != "" {
			t.Errorf("the first event of study %d differs (-want +got):\n%s", sum.Study, diff)
		}
	}
	return got
}

func testSummaries(t *testing.T, f *fixture) {
	a, b, c := f.create(t, "a", 1).ID, f.create(t, "b", 1).ID, f.create(t, "c", 1).ID
	want := func(what string, list map[store.StudyID]string) {
		t.Helper()
		if got := f.summaries(t, c, b, c+1, a, math.MaxUint64); !maps.Equal(got, list) {
			t.Errorf("%s: the summaries are %v, want %v", what, got, list)
		}
	}
	want("new studies", map[store.StudyID]string{})
	commit := func(id store.StudyID, expected study.Position, data []byte) error {
		return f.Commit(t.Context(), id, expected, []study.Event{marked("x"), marked("y")}, data)
	}
	long := strings.Repeat("l", store.MaxSummaryBytes)
	ok(t, "commit", errors.Join(commit(a, 2, []byte("one")), commit(b, 2, []byte(long)), commit(c, 2, []byte{})))
	want("commits with summaries", map[store.StudyID]string{a: "one", b: long, c: ""})
	wantError[*store.ConflictError](t, "a late commit", commit(a, 2, []byte("late")))
	wantError[*store.LimitError](t, "a long summary", commit(a, 4, []byte(long+"l")))
	if head := f.head(t, a); head != 4 {
		t.Errorf("a refused commit moved the head to %d", head)
	}
	want("refused commits", map[store.StudyID]string{a: "one", b: long, c: ""})
	ok(t, "commit", commit(a, 4, []byte("two")))
	f.commit(t, b, 4, marked("z"))
	want("a commit without a summary", map[store.StudyID]string{a: "two", c: ""})
	ok(t, "Delete", f.Delete(t.Context(), a))
	want("a deleted study", map[store.StudyID]string{c: ""})
	list, err := f.Summaries(t.Context(), []store.StudyID{c, c})
	if err != nil || len(list) != 2 {
		t.Errorf("a study named twice has %d summaries (%v)", len(list), err)
	}
	if f.reopen != nil {
		f.Store = f.reopen(t)
		want("after opening again", map[store.StudyID]string{c: ""})
	}
}

func testSavedSummaries(t *testing.T, f *fixture) {
	a, b := f.create(t, "a", 1).ID, f.create(t, "b", 1).ID
	save := func(list ...store.Summary) error { return f.SaveSummaries(t.Context(), list) }
	ok(t, "SaveSummaries", errors.Join(save(), save(
		store.Summary{Study: b, Position: 2, Data: []byte("b")}, store.Summary{Study: a, Position: 1, Data: []byte("old")},
		store.Summary{Study: b + 7, Position: 2, Data: []byte("none")}, store.Summary{Study: a, Position: 3, Data: []byte("new")},
	)))
	if got := f.summaries(t, a, b); !maps.Equal(got, map[store.StudyID]string{b: "b"}) {
		t.Errorf("the summaries are %v", got)
	}
	wantError[*store.LimitError](t, "a long summary", save(store.Summary{Study: a, Position: 2, Data: make([]byte, store.MaxSummaryBytes+1)}))
	ok(t, "save", save(store.Summary{Study: a, Position: 2, Data: []byte("a")}))
	f.commit(t, b, 2, marked("x"))
	if got := f.summaries(t, a, b); !maps.Equal(got, map[store.StudyID]string{a: "a"}) {
		t.Errorf("the summaries are %v", got)
	}
}
