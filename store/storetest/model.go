package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
	"pgregory.net/rapid"
)

// model is the specification of a store, a map of slices.
type model struct {
	studies map[store.StudyID]*modelStudy
	last    store.StudyID // the largest id seen
	serial  int           // makes events different from each other
}

type modelStudy struct {
	name    string
	events  []study.Event
	summary []byte // nil for none
}

func (m *model) named(name string) (id store.StudyID, ok bool) {
	for id, s := range m.studies {
		if s.name == name {
			return id, true
		}
	}
	return 0, false
}

// machine runs random commands against a store and the model.
type machine struct {
	*fixture
	t     *testing.T
	model model
}

func testModel(t *testing.T, open func(t *testing.T) Harness) {
	rapid.Check(t, func(rt *rapid.T) {
		h := open(t)
		m := &machine{fixture: &fixture{Store: h.Store, reopen: h.Reopen}, t: t, model: model{studies: make(map[store.StudyID]*modelStudy)}}
		defer func() { _ = m.Close() }()
		actions := map[string]func(*rapid.T){
			"create": m.create, "delete": m.delete, "commit": m.commit, "conflict": m.conflict,
			"read": m.read, "list": m.list, "summarize": m.summarize, "": m.check,
		}
		if m.reopen != nil {
			actions["reopen"] = func(*rapid.T) { m.Store = m.reopen(t) }
		}
		rt.Repeat(actions)
	})
}

// pick chooses the id of a study, mostly of one that exists. The study is nil if it
// does not exist.
func (m *machine) pick(t *rapid.T) (store.StudyID, *modelStudy) {
	ids := append(slices.Sorted(maps.Keys(m.model.studies)), m.model.last+1)
	id := rapid.SampledFrom(ids).Draw(t, "id")
	if rapid.IntRange(0, 9).Draw(t, "stale") == 0 && m.model.last > 0 {
		id = store.StudyID(rapid.Uint64Range(1, uint64(m.model.last)).Draw(t, "stale id"))
	}
	return id, m.model.studies[id]
}

func (m *machine) events(t *rapid.T, from study.Position) []study.Event {
	examples := eventtest.Examples()
	events := make([]study.Event, rapid.IntRange(1, 4).Draw(t, "events"))
	for i := range events {
		kind := 0
		if int(from)+i > 1 {
			kind = rapid.IntRange(1, len(examples)-1).Draw(t, "kind")
		}
		m.model.serial++
		events[i] = examples[kind]
		events[i].Request.ID = fmt.Sprint(m.model.serial)
	}
	return events
}

func (m *machine) create(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "a.b", "b", "c-1", "c_1"}).Draw(t, "name")
	events := m.events(t, 1)
	info, err := m.Create(m.t.Context(), name, events)
	if id, taken := m.model.named(name); taken {
		if e := failed[*store.ExistsError](t, err); e.Study != id {
			t.Fatalf("the name belongs to %d, not to %d", id, e.Study)
		}
		return
	}
	if err != nil || info.ID <= m.model.last || info.Name != name || int(info.Head) != len(events) {
		t.Fatalf("Create(%q) = %+v, %v after id %d", name, info, err, m.model.last)
	}
	m.model.last = info.ID
	m.model.studies[info.ID] = &modelStudy{name: name, events: events}
}

func (m *machine) delete(t *rapid.T) {
	id, s := m.pick(t)
	err := m.Delete(m.t.Context(), id)
	if s == nil {
		failed[*store.NotFoundError](t, err)
		return
	}
	ok(t, "the call", err)
	delete(m.model.studies, id)
}

func (m *machine) commit(t *rapid.T) {
	id, s := m.pick(t)
	if s == nil {
		failed[*store.NotFoundError](t, m.Commit(m.t.Context(), id, 1, m.events(t, 2), nil))
		return
	}
	events := m.events(t, study.Position(len(s.events)+1))
	summary := []byte(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "summary"))
	if len(summary) == 0 {
		summary = nil
	}
	ok(t, "the call", m.Commit(m.t.Context(), id, study.Position(len(s.events)), events, summary))
	s.events, s.summary = append(s.events, events...), summary
}

func (m *machine) summarize(t *rapid.T) {
	id, s := m.pick(t)
	position := study.Position(rapid.IntRange(1, 12).Draw(t, "position"))
	ok(t, "the call", m.SaveSummaries(m.t.Context(), []store.Summary{{Study: id, Position: position, Data: []byte("saved")}}))
	if s != nil && int(position) == len(s.events) {
		s.summary = []byte("saved")
	}
}

// checkSummary compares the summary of a study.
func (m *machine) checkSummary(t *rapid.T, id store.StudyID, s *modelStudy) {
	list, err := m.Summaries(m.t.Context(), []store.StudyID{id})
	ok(t, "the call", err)
	if (s.summary != nil) != (len(list) == 1) || len(list) == 1 && !bytes.Equal(list[0].Data, s.summary) {
		t.Fatalf("study %d has the summaries %+v, want %q", id, list, s.summary)
	}
}

func (m *machine) conflict(t *rapid.T) {
	id, s := m.pick(t)
	if s == nil {
		t.Skip("no such study")
	}
	expected := study.Position(rapid.IntRange(1, len(s.events)+3).Draw(t, "expected"))
	if int(expected) == len(s.events) {
		t.Skip("the head")
	}
	e := failed[*store.ConflictError](t, m.Commit(m.t.Context(), id, expected, m.events(t, expected+1), nil))
	if e.Actual != study.Position(len(s.events)) {
		t.Fatalf("the conflict is with %d, the head is at %d", e.Actual, len(s.events))
	}
}

func (m *machine) read(t *rapid.T) {
	id, s := m.pick(t)
	from := rapid.IntRange(0, 40).Draw(t, "from")
	got, err := collect(m.t.Context(), m, id, study.Position(from))
	if s == nil {
		failed[*store.NotFoundError](t, err)
		return
	}
	ok(t, "the call", err)
	want := s.events[min(max(from-1, 0), len(s.events)):]
	if !slices.EqualFunc(want, got, sameEvent) {
		t.Fatalf("read from %d: %d events that differ from the %d written", from, len(got), len(want))
	}
}

// sameEvent is a fast [Diff]. Equal events have equal records.
func sameEvent(a, b study.Event) bool {
	x, errX := store.AppendRecord(nil, 1, 1, a)
	y, errY := store.AppendRecord(nil, 1, 1, b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func (m *machine) list(t *rapid.T) {
	after := rapid.SampledFrom([]string{"", "a", "a.b", "b", "bb", "c_1"}).Draw(t, "after")
	var got []string
	for info, err := range m.List(m.t.Context(), after) {
		ok(t, "the call", err)
		got = append(got, info.Name)
	}
	var want []string
	for _, s := range m.model.studies {
		if s.name > after {
			want = append(want, s.name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(want, got) {
		t.Fatalf("List(%q) = %q, want %q", after, got, want)
	}
}

// check compares the store's state of each study with the model after every command.
func (m *machine) check(t *rapid.T) {
	for id, s := range m.model.studies {
		want := store.Info{ID: id, Name: s.name, Head: study.Position(len(s.events))}
		if got, err := m.Stat(m.t.Context(), id); err != nil || got != want {
			t.Fatalf("Stat = %+v, %v; want %+v", got, err, want)
		}
		if got, err := m.Lookup(m.t.Context(), s.name); err != nil || got != want {
			t.Fatalf("Lookup = %+v, %v; want %+v", got, err, want)
		}
		m.checkSummary(t, id, s)
	}
}

func failed[E error](t *rapid.T, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("error is %v, want a %T", err, e)
	}
	return e
}
