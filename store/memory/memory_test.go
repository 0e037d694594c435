package memory

import (
	"errors"
	"fmt"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness { return storetest.Harness{Store: New()} })
}

func TestShared(t *testing.T) {
	storetest.RunShared(t, func(*testing.T) store.Shared { return New() })
}

func TestStudiesLimit(t *testing.T) {
	s := New()
	s.maxStudies = 2
	first := eventtest.Examples()[:1]
	var last store.Info
	for i := range s.maxStudies {
		var err error
		if last, err = s.Create(t.Context(), fmt.Sprint(i), first); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Create(t.Context(), "more", first)
	if e, ok := errors.AsType[*store.LimitError](err); !ok || e.Limit != 2 {
		t.Errorf("error is %v, want a limit of 2", err)
	}
	if err := s.Delete(t.Context(), last.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "more", first); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}

// A record that is damaged in memory is refused when it is read.
func TestDamage(t *testing.T) {
	s := New()
	info, err := s.Create(t.Context(), "a", eventtest.Examples())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SaveSummaries(t.Context(), []store.Summary{{Study: info.ID, Position: info.Head, Data: []byte("fold")}}); err != nil {
		t.Fatal(err)
	}
	l := s.studies[info.ID]
	l.records[4][7] ^= 1
	l.summary[9] ^= 1
	var last study.Position
	for r, err := range s.Read(t.Context(), info.ID, 1) {
		if err == nil {
			last = r.Position
			continue
		}
		if e, ok := errors.AsType[*store.CorruptError](err); !ok || e.Position != 5 || e.Study != info.ID {
			t.Errorf("error is %v, want damage at position 5", err)
		}
	}
	if last != 4 {
		t.Errorf("the last sound record was %d, want 4", last)
	}
	if list, err := s.Summaries(t.Context(), []store.StudyID{info.ID}); len(list) != 0 || err != nil {
		t.Errorf("a damaged summary was loaded: %v, %v", list, err)
	}
}
