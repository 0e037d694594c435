package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestMemoryOfStudies checks that no part of a study is read when memory is short.
// Studies in memory continue, and idle ones are dropped soon.
func TestMemoryOfStudies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaulty()
		first := open(t, st, Options{}, nil)
		for range 200 { // a few MB of events
			trial := ask(t, first, study.Ask{})[0]
			if _, err := first.Report(t.Context(), "s", study.ReportValues{Trial: trial.Number, Reports: wideReports()}); err != nil {
				t.Fatal(err)
			}
			tell(t, first, trial.Number, loss(1))
		}
		if _, err := first.CreateStudy(t.Context(), "other", study.Create{RequestID: "made", Spec: testSpec(t, nil)}); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		var used, looks atomic.Int64
		m := memlimit.Of(100<<20, func() int64 { looks.Add(1); return used.Load() }, func() {})
		tn := Open(&counting{st, make(map[store.StudyID]int), true}, Options{LongLived: true, Memory: m})
		defer tn.Close()
		if _, err := tn.Study(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}
		before := looks.Load()
		if _, err := tn.Study(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		if looks := looks.Load(); looks < before+3 {
			t.Errorf("reading a study looked at the memory %d times", looks-before)
		}
		used.Store(95 << 20)
		time.Sleep(10 * time.Second) // both are idle
		for _, name := range []string{"s", "other"} {
			_, err := tn.Study(t.Context(), name)
			if short := (*tuner.MemoryError)(nil); !errors.As(err, &short) || tuner.CodeOf(err) != tuner.Exhausted {
				t.Errorf("study %s while memory is short: %v", name, err)
			}
		}
		list, more, err := tn.Studies(t.Context(), "", 0)
		if err != nil || more || len(list) != 2 || list[0].Position == 0 || list[1].Position == 0 {
			t.Fatalf("studies that have been in memory: %d of them, %v", len(list), err)
		}
		tn.mu.Lock()
		clear(tn.recalled)
		tn.mu.Unlock()
		list, more, err = tn.Studies(t.Context(), "", 0)
		if err != nil || more || len(list) != 2 {
			t.Fatalf("%d studies, %v", len(list), err)
		}
		for _, s := range list { // a small study is read, also after a large one
			if large := s.Name == "s"; strings.Contains(s.Unread, "memory") != large || !large && s.Position == 0 {
				t.Errorf("study %q is unread because of %q", s.Name, s.Unread)
			}
		}
		again := study.Create{RequestID: "made", Spec: testSpec(t, nil)}
		if _, err := tn.CreateStudy(t.Context(), "other", again); tuner.CodeOf(err) != tuner.Exhausted {
			t.Errorf("creating a study again while memory is short: %v", err)
		}
		used.Store(0)
		if _, err := tn.CreateStudy(t.Context(), "other", again); err != nil {
			t.Errorf("creating a study again: %v", err)
		}
		again.RequestID = "later"
		if _, err := tn.CreateStudy(t.Context(), "other", again); tuner.CodeOf(err) != tuner.AlreadyExists {
			t.Errorf("creating a study of the same name: %v", err)
		}
		for _, name := range []string{"s", "other"} {
			if _, err := tn.Study(t.Context(), name); err != nil {
				t.Errorf("study %s when there is room: %v", name, err)
			}
		}
		used.Store(95 << 20)
		if _, err := tn.Study(t.Context(), "other"); err != nil {
			t.Errorf("a study in memory: %v", err)
		}
	})
}

// damagedStore cannot read one study.
type damagedStore struct {
	store.Store
	id store.StudyID
}

func (s *damagedStore) Read(ctx context.Context, id store.StudyID, after study.Position) iter.Seq2[store.Record, error] {
	if id != s.id {
		return s.Store.Read(ctx, id, after)
	}
	return func(yield func(store.Record, error) bool) {
		yield(store.Record{}, &store.CorruptError{Study: id, Position: 1, Reason: "made up"})
	}
}

// TestStudiesWithDamage checks that a damaged study does not hide the others.
func TestStudiesWithDamage(t *testing.T) {
	st := newFaulty()
	first := open(t, st, Options{}, nil)
	bad, err := first.CreateStudy(t.Context(), "bad", study.Create{Spec: testSpec(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	tn := Open(&damagedStore{st, bad.ID}, Options{})
	defer tn.Close()
	list, _, err := tn.Studies(t.Context(), "", 0)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if list[0].Name != "bad" || list[0].ID != bad.ID || !strings.Contains(list[0].Unread, "made up") {
		t.Errorf("the damaged study is %+v", list[0])
	}
	if list[1].Name != "s" || list[1].Unread != "" || list[1].Position == 0 {
		t.Errorf("the other study is %+v", list[1])
	}
	if _, err := tn.Study(t.Context(), "bad"); tuner.CodeOf(err) != tuner.Damaged {
		t.Errorf("the damaged study alone: %v", err)
	}
}

// wideReports returns a hundred reports of ten metrics.
func wideReports() (reports []study.Report) {
	for step := range 100 {
		r := study.Report{Step: int64(step)}
		for i := range 10 {
			r.Values = append(r.Values, study.NamedValue{Name: fmt.Sprint("metric-", i), Value: 1})
		}
		reports = append(reports, r)
	}
	return reports
}

// TestMemoryOfWatches checks that a watch waits while memory is short and loses
// nothing.
func TestMemoryOfWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		m := memlimit.Of(100<<20, used.Load, func() {})
		tn := open(t, newFaulty(), Options{LongLived: true, Memory: m}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var reports, small atomic.Int64
		go func() {
			for h, err := range tn.Watch(ctx, "s", tuner.From{After: 0}) {
				switch {
				case err != nil:
					return
				case h.Kind == "reported":
					reports.Add(int64(len(h.Trial.Reports)))
				default:
					small.Add(1)
				}
			}
		}()
		trial := ask(t, tn, study.Ask{})[0]
		report := func() {
			t.Helper()
			many := study.ReportValues{Trial: trial.Number}
			for step := range 10 {
				for _, r := range wideReports() {
					r.Step += int64(100 * step)
					many.Reports = append(many.Reports, r)
				}
			}
			for i := range many.Reports {
				many.Reports[i].Step += reports.Load()
			}
			if _, err := tn.Report(t.Context(), "s", many); err != nil {
				t.Fatal(err)
			}
		}
		report()
		time.Sleep(time.Second)
		if reports.Load() != 1000 || small.Load() != 2 {
			t.Errorf("the watch shows %d reports and %d other events", reports.Load(), small.Load())
		}
		used.Store(58 << 20) // room for small events
		report()
		tell(t, tn, trial.Number, loss(1))
		time.Sleep(time.Minute)
		if reports.Load() != 1000 || small.Load() != 2 {
			t.Errorf("while memory is short the watch shows %d reports and %d other events", reports.Load(), small.Load())
		}
		used.Store(0)
		time.Sleep(time.Second)
		if reports.Load() != 2000 || small.Load() != 3 {
			t.Errorf("afterwards the watch shows %d reports and %d other events", reports.Load(), small.Load())
		}
	})
}
