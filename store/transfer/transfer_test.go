package transfer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/store/storetest/longstudy"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestStudy copies a log of every kind of event and a long one there and back.
func TestStudy(t *testing.T) {
	file, err := bolt.Open(filepath.Join(t.TempDir(), "s.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	first, last := memory.New(), memory.New()
	if _, err := first.Create(t.Context(), "gone", eventtest.Examples()[:1]); err != nil { // so that ids differ
		t.Fatal(err)
	}
	if _, err := first.Create(t.Context(), "kinds", eventtest.Examples()); err != nil {
		t.Fatal(err)
	}
	longstudy.Fill(t, first, "long", "random", 3000, 2)
	for _, name := range []string{"kinds", "long"} {
		info, err := first.Lookup(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, hop := range []struct{ from, to store.Store }{{first, file}, {file, last}} {
			source, err := hop.from.Lookup(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Study(t.Context(), hop.from, hop.to, source)
			if err != nil || c.Events != uint64(info.Head) || c.Already != 0 {
				t.Errorf("%s: %+v, %v", name, c, err)
			}
		}
		copied, err := last.Lookup(t.Context(), name)
		if err != nil || copied.ID == info.ID {
			t.Fatal(copied, err)
		}
		want, got := events(t, first, info.ID), events(t, last, copied.ID)
		for i := range want {
			if diff := eventtest.Diff(want[i], got[i]); diff != "" {
				t.Fatalf("%s, event %d (-want +got):\n%s", name, i+1, diff)
			}
		}
	}
}

func events(t *testing.T, s store.Store, id store.StudyID) (list []study.Event) {
	t.Helper()
	for r, err := range s.Read(t.Context(), id, 1) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r.Event)
	}
	return list
}

// breaking is a store that refuses commits from some number on.
type breaking struct {
	store.Store
	left int
}

func (b *breaking) Commit(ctx context.Context, id store.StudyID, expected study.Position, events []study.Event, summary []byte) error {
	if b.left--; b.left < 0 {
		return store.ErrFull
	}
	return b.Store.Commit(ctx, id, expected, events, summary)
}

// TestInterrupted continues a copy that stopped in the middle.
func TestInterrupted(t *testing.T) {
	from, to := memory.New(), memory.New()
	longstudy.Fill(t, from, "long", "random", 5000, 1)
	info, err := from.Lookup(t.Context(), "long")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Study(t.Context(), from, &breaking{to, 2}, info); !errors.Is(err, store.ErrFull) {
		t.Fatalf("Study = %v", err)
	}
	c, err := Study(t.Context(), from, to, info)
	if err != nil || c.Already != 3*batchEvents || c.Events != uint64(info.Head) {
		t.Errorf("the second try: %+v, %v", c, err)
	}
	if c, err = Study(t.Context(), from, to, info); err != nil || c.Already != c.Events {
		t.Errorf("the third try: %+v, %v", c, err)
	}
}

// TestDifferent refuses to continue another study of the same name.
func TestDifferent(t *testing.T) {
	mark := func(text string) study.Event {
		return study.Event{Request: study.Request{ID: text}, Body: study.Paused{}}
	}
	for _, c := range []struct {
		source, target []string
		at             study.Position // 0 for none
	}{
		{[]string{"a", "b"}, []string{"a", "b"}, 0},
		{[]string{"a", "b"}, []string{"a"}, 0},
		{[]string{"a", "b"}, []string{"a", "c"}, 3},
		{[]string{"a"}, []string{"a", "b"}, 3},
		{[]string{"b"}, []string{"a", "b"}, 3},
	} {
		from, to := memory.New(), memory.New()
		var info store.Info
		for i, s := range []*memory.Store{to, from} {
			list := eventtest.Examples()[:1:1]
			for _, text := range [][]string{c.target, c.source}[i] {
				list = append(list, mark(text))
			}
			var err error
			if info, err = s.Create(t.Context(), "s", list); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Study(t.Context(), from, to, info)
		different, ok := errors.AsType[*DifferentError](err)
		if ok != (c.at != 0) || ok && different.Position != c.at || !ok && err != nil {
			t.Errorf("%v to %v: %v, want a difference at %d", c.source, c.target, err, c.at)
		}
	}
}

// bending is a store whose logs read otherwise than they were written.
type bending struct{ store.Store }

func (b bending) Read(ctx context.Context, id store.StudyID, from study.Position) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range b.Store.Read(ctx, id, from) {
			r.Event.Caller = fmt.Sprint("other", r.Position)
			if !yield(r, err) {
				return
			}
		}
	}
}

// TestCompared notices a destination that stores something else.
func TestCompared(t *testing.T) {
	from := memory.New()
	info, err := from.Create(t.Context(), "s", eventtest.Examples())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Study(t.Context(), from, bending{memory.New()}, info); !errors.As(err, new(*DifferentError)) {
		t.Errorf("Study = %v", err)
	}
}
