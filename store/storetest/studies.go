package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

func testCreate(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 2)
	if info.ID == 0 || info.Name != "mnist" || info.Head != 3 {
		t.Errorf("Create returned %+v, want an id, the name, and head 3", info)
	}
	if got, err := f.Lookup(t.Context(), "mnist"); err != nil || got != info {
		t.Errorf("Lookup = %+v, %v; want %+v", got, err, info)
	}
	if got, err := f.Stat(t.Context(), info.ID); err != nil || got != info {
		t.Errorf("Stat = %+v, %v; want %+v", got, err, info)
	}
	wantEvents(t, []study.Event{created(), marked("2"), marked("3")}, f.read(t, info.ID, 1))

	_, err := f.Lookup(t.Context(), "cifar")
	if e := wantError[*store.NotFoundError](t, "Lookup of an unknown name", err); e != nil && e.Name != "cifar" {
		t.Errorf("the error names %q, want cifar", e.Name)
	}
	_, err = f.Lookup(t.Context(), "No such/name")
	wantError[*store.NotFoundError](t, "Lookup of an impossible name", err)
	_, err = f.Stat(t.Context(), info.ID+1)
	if e := wantError[*store.NotFoundError](t, "Stat of an unknown id", err); e != nil && e.Study != info.ID+1 {
		t.Errorf("the error names study %d, want %d", e.Study, info.ID+1)
	}
	_, err = f.Stat(t.Context(), 0)
	wantError[*store.NotFoundError](t, "Stat of id 0", err)
}

func testCreateExists(t *testing.T, f *fixture) {
	first := f.create(t, "mnist", 0)
	_, err := f.Create(t.Context(), "mnist", []study.Event{created(), marked("other")})
	if e := wantError[*store.ExistsError](t, "second Create", err); e != nil && (e.Name != "mnist" || e.Study != first.ID) {
		t.Errorf("the error is %+v, want name mnist and study %d", e, first.ID)
	}
	wantEvents(t, []study.Event{created()}, f.read(t, first.ID, 1))
}

func testCreateInvalid(t *testing.T, f *fixture) {
	for _, name := range []string{"", "Mnist", "a b", "a/b", "-a", "a.", "ü", "a\x00", strings.Repeat("a", store.MaxNameBytes+1)} {
		_, err := f.Create(t.Context(), name, []study.Event{created()})
		wantIs(t, "Create named "+name, err, store.ErrInvalid)
	}
	for what, events := range map[string][]study.Event{
		"nothing":         nil,
		"no Created":      {marked("1")},
		"Created again":   {created(), created()},
		"no body":         {{}},
		"bad second":      {created(), {Body: study.Told{}}},
		"Created in vain": {{Body: study.Created{}}},
	} {
		_, err := f.Create(t.Context(), "mnist", events)
		wantIs(t, "Create with "+what, err, store.ErrInvalid)
	}
	if infos := f.list(t, ""); len(infos) != 0 {
		t.Errorf("refused creations left %+v", infos)
	}
	long := strings.Repeat("a", store.MaxNameBytes)
	f.create(t, long, 0)
	f.create(t, "0.a-b_c..9", 0)
}

func testCreateRace(t *testing.T, f *fixture) {
	const rounds, tries = 10, 8
	events := []study.Event{created()}
	for i := range 1000 { // makes the creation take a while
		events = append(events, marked("%d", i+2))
	}
	for round := range rounds {
		name := fmt.Sprint("wanted-", round)
		var made atomic.Int32
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range tries {
			wg.Go(func() {
				<-start
				if _, err := f.Create(t.Context(), name, events); err == nil {
					made.Add(1)
				} else {
					wantError[*store.ExistsError](t, "Create", err)
				}
			})
		}
		close(start)
		wg.Wait()
		if got := len(f.list(t, "")); made.Load() != 1 || got != round+1 {
			t.Fatalf("%d of %d made the study; there are %d, want %d", made.Load(), tries, got, round+1)
		}
	}
}

func testDelete(t *testing.T, f *fixture) {
	old, other := f.create(t, "mnist", 3), f.create(t, "other", 1)
	ok(t, "SaveSummaries", f.SaveSummaries(t.Context(), []store.Summary{{Study: old.ID, Position: 4, Data: []byte("old")}}))
	ok(t, "Delete", f.Delete(t.Context(), old.ID))
	wantGone(t, f, old)
	fresh := f.create(t, "mnist", 0)
	if fresh.ID <= old.ID {
		t.Errorf("the new study has id %d after %d", fresh.ID, old.ID)
	}
	wantGone(t, f, store.Info{ID: old.ID})
	wantEvents(t, []study.Event{created()}, f.read(t, fresh.ID, 1))
	if list := f.summaries(t, old.ID, fresh.ID); len(list) != 0 {
		t.Errorf("the new study has its predecessor's summary: %v", list)
	}
	if got := f.head(t, other.ID); got != other.Head {
		t.Errorf("another study's head moved from %d to %d", other.Head, got)
	}
}

// wantGone checks that every call refuses the study, by id and, if it has one, by name.
func wantGone(t *testing.T, f *fixture, info store.Info) {
	t.Helper()
	for call, err := range f.calls(t.Context(), info.ID, info.Head) {
		wantError[*store.NotFoundError](t, call+" of a deleted study", err)
	}
	if info.Name != "" {
		_, err := f.Lookup(t.Context(), info.Name)
		wantError[*store.NotFoundError](t, "Lookup of a deleted study", err)
	}
}

func testIDs(t *testing.T, f *fixture) {
	var last store.StudyID
	for i := range 12 {
		info := f.create(t, "again", 0)
		if info.ID <= last {
			t.Fatalf("id %d after id %d", info.ID, last)
		}
		last = info.ID
		ok(t, "Delete", f.Delete(t.Context(), last))
		if f.reopen != nil && i%3 == 0 { // while the store is empty
			f.Store = f.reopen(t)
		}
	}
}

func testList(t *testing.T, f *fixture) {
	if infos := f.list(t, ""); len(infos) != 0 {
		t.Errorf("an empty store lists %+v", infos)
	}
	var want []store.Info
	for i, name := range []string{"b", "a", "b.1", "b-1", "a0", "z", "b0", "0"} {
		want = append(want, f.create(t, name, i))
	}
	ok(t, "Delete", f.Delete(t.Context(), want[5].ID))
	want = slices.Delete(want, 5, 6)
	slices.SortFunc(want, func(a, b store.Info) int { return strings.Compare(a.Name, b.Name) })
	if got := f.list(t, ""); !slices.Equal(want, got) {
		t.Errorf("List = %+v, want %+v", got, want)
	}
	for i, info := range want {
		if got := f.list(t, info.Name); !slices.Equal(want[i+1:], got) {
			t.Errorf("List after %q = %+v, want %+v", info.Name, got, want[i+1:])
		}
	}
	if got := f.list(t, "b/"); !slices.Equal(want[6:], got) { // a name that no study has
		t.Errorf("List after %q = %+v, want %+v", "b/", got, want[6:])
	}
	for info, err := range f.List(t.Context(), "") { // the loop may change the store
		ok(t, "the call", err)
		ok(t, "Delete", f.Delete(t.Context(), info.ID))
	}
	if got := f.list(t, ""); len(got) != 0 {
		t.Errorf("%+v are left", got)
	}
}

func testClosed(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 0)
	for range 2 {
		ok(t, "Close", f.Close())
	}
	for call, err := range f.allCalls(t.Context(), info) {
		wantIs(t, call+" of a closed store", err, store.ErrClosed)
	}
}

func testSurvives(t *testing.T, f *fixture) {
	if f.reopen == nil {
		t.Skip("not a durable store")
	}
	a, b := f.create(t, "a", 0), f.create(t, "b", 5)
	f.commit(t, a.ID, 1, eventtest.Examples()[1:]...)
	gone := f.create(t, "gone", 1)
	ok(t, "Delete", f.Delete(t.Context(), gone.ID))
	before := f.list(t, "")
	f.Store = f.reopen(t)
	if after := f.list(t, ""); !slices.Equal(before, after) {
		t.Errorf("List = %+v, was %+v", after, before)
	}
	wantEvents(t, eventtest.Examples(), f.read(t, a.ID, 1))
	wantGone(t, f, gone)
	f.commit(t, b.ID, b.Head, marked("7"))
}
