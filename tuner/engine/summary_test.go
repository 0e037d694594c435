package engine

import (
	"context"
	"iter"
	"sync"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// earlier is a store as an earlier program uses it, which knows nothing of summaries.
type earlier struct{ store.Store }

func (s earlier) Commit(ctx context.Context, id store.StudyID, expected study.Position, events []study.Event, _ []byte) error {
	return s.Store.Commit(ctx, id, expected, events, nil)
}

// TestListsUpgrade lists the studies of an earlier program. The first list reads them, and
// those after it do not, also in another process.
func TestListsUpgrade(t *testing.T) {
	s := memory.New()
	first := open(t, earlier{s}, Options{}, nil)
	var want tuner.Study
	for i := range 3 {
		tell(t, first, ask(t, first, study.Ask{})[0].Number, loss(float64(i)))
		want = must(first.Study(t.Context(), "s"))
		for _, reads := range []int{1, 0} {
			c := &counting{s, make(map[store.StudyID]int), false}
			studies, _, err := Open(c, Options{}).Studies(t.Context(), "", 0)
			if err != nil || len(studies) != 1 || shown(studies[0]) != shown(want) {
				t.Errorf("the list is %+v (%v), want %+v", studies, err, want)
			}
			if n := c.reads[want.ID]; n != reads {
				t.Errorf("the list read the study %d times, want %d", n, reads)
			}
		}
	}
}

// TestCheckSummaries compares the summaries that concurrent calls leave with the logs. A
// wrong one is found.
func TestCheckSummaries(t *testing.T) {
	s := memory.New()
	tn := open(t, s, Options{}, nil)
	check := func() verify.Report {
		t.Helper()
		info := must(s.Lookup(t.Context(), "s"))
		var r verify.Report
		if err := r.Check(t.Context(), s, []store.Info{info}, &verify.Options{Summaries: view.CheckSummary}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for range 5 {
		var work sync.WaitGroup
		for i := range 8 {
			work.Go(func() {
				for range 5 {
					asked, err := tn.Ask(t.Context(), "s", study.Ask{New: true})
					if err == nil {
						_, err = tn.Tell(t.Context(), "s", study.Tell{Trial: asked.Trials[0].Number, Outcome: loss(float64(i))})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		work.Wait()
		if r := check(); !r.OK() || r.Summaries != 1 {
			t.Fatalf("%d summaries, problems %v", r.Summaries, r.Problems)
		}
	}
	info := must(s.Lookup(t.Context(), "s"))
	sums := must(s.Summaries(t.Context(), []store.StudyID{info.ID}))
	sums[0].Data[len(sums[0].Data)-1]++
	if err := s.SaveSummaries(t.Context(), sums); err != nil {
		t.Fatal(err)
	}
	if r := check(); r.OK() {
		t.Error("a wrong summary passes the check")
	}
	sums[0].Data[0]++ // of another version, which counts as missing
	if err := s.SaveSummaries(t.Context(), sums); err != nil {
		t.Fatal(err)
	}
	if r := check(); !r.OK() {
		t.Errorf("a summary of another version: %v", r.Problems)
	}
	list, _, err := Open(s, Options{}).Studies(t.Context(), "", 0)
	if want := must(tn.Study(t.Context(), "s")); err != nil || len(list) != 1 || shown(list[0]) != shown(want) {
		t.Errorf("the list is %+v (%v), want %+v", list, err, want)
	}
}

// ghostly is a store whose list has a study that was deleted in the meantime.
type ghostly struct{ store.Store }

func (g ghostly) List(ctx context.Context, after string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		if after < "ghost" && !yield(store.Info{ID: 1 << 40, Name: "ghost", Head: 3}, nil) {
			return
		}
		for info, err := range g.Store.List(ctx, after) {
			if !yield(info, err) {
				return
			}
		}
	}
}

// TestPageOfDeletedStudies checks that a page whose studies were all deleted does not end
// the list.
func TestPageOfDeletedStudies(t *testing.T) {
	tn := Open(ghostly{memory.New()}, Options{})
	defer tn.Close()
	spec := study.Spec{Space: must(space.New(space.NewFloat("x", 0, 1))), Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}}
	if _, err := tn.CreateStudy(t.Context(), "real", study.Create{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	list, more, err := tn.Studies(t.Context(), "", 1)
	if err != nil || more || len(list) != 1 || list[0].Spec.Space == nil {
		t.Errorf("the page has %d studies, more is %v, and the error is %v", len(list), more, err)
	}
	if list, more, err := tn.Studies(t.Context(), "real", 1); len(list) > 0 || more || err != nil {
		t.Errorf("the last page has %d studies, more is %v, and the error is %v", len(list), more, err)
	}
}
