package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// tape is a state that keeps its changes.
type tape struct {
	id    store.StudyID
	texts []string
}

func newTape(id store.StudyID) Foreign { return &tape{id: id} }

func (p *tape) Apply(e study.Event) error {
	f, ok := e.Body.(study.Foreign)
	if !ok {
		return nil
	}
	if string(f.Change) == "spoiled" {
		return errors.New("the change is spoiled")
	}
	p.texts = append(p.texts, string(f.Change))
	return nil
}

// next returns a change that makes a trial of the tape's next number.
func (p *tape) next() ([]study.Foreign, error) {
	n := len(p.texts)
	return []study.Foreign{{Trial: n, State: study.Running, Change: fmt.Append(nil, n)}}, nil
}

func openForeign(t *testing.T, st store.Store, o Options) (*Engine, ForeignStudy) {
	t.Helper()
	o.Foreign = newTape
	tn := Open(st, o)
	t.Cleanup(func() { tn.Close() })
	s, err := tn.CreateForeign(t.Context(), "optuna.s", []study.Objective{{Name: "value", Direction: study.Minimize}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tn, s
}

// Concurrent changes each see those before them, and all of them are in the store.
func TestForeignChanges(t *testing.T) {
	st := newFaulty()
	tn, s := openForeign(t, st, Options{})
	const clients, each = 8, 25
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range each {
				if err := tn.Change(t.Context(), s, func(f Foreign) ([]study.Foreign, error) { return f.(*tape).next() }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := tn.Close(); err != nil {
		t.Fatal(err)
	}
	tn = Open(st, Options{Foreign: newTape})
	defer tn.Close()
	var texts []string
	if err := tn.Change(t.Context(), s, func(f Foreign) ([]study.Foreign, error) {
		if p := f.(*tape); p.id != s.ID {
			t.Errorf("the state is of study %d, want %d", p.id, s.ID)
		}
		texts = slices.Clone(f.(*tape).texts)
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if text != fmt.Sprint(i) {
			t.Fatalf("change %d is %q", i, text)
		}
	}
	if len(texts) != clients*each {
		t.Errorf("%d changes, want %d", len(texts), clients*each)
	}
	view, err := tn.Study(t.Context(), s.Name)
	if err != nil || view.Trials != clients*each || view.Counts[study.Running] != clients*each || !view.Spec.Foreign() {
		t.Errorf("%+v, %v", view, err)
	}
	found, err := tn.ForeignStudies(t.Context(), "optuna.")
	if err != nil || !slices.Equal(found, []ForeignStudy{s}) {
		t.Errorf("%v, %v", found, err)
	}
}

// A refused commit leaves the state as the store has it.
func TestForeignRefused(t *testing.T) {
	st := newFaulty()
	tn, s := openForeign(t, st, Options{})
	grow := func() error {
		return tn.Change(t.Context(), s, func(f Foreign) ([]study.Foreign, error) { return f.(*tape).next() })
	}
	if err := grow(); err != nil {
		t.Fatal(err)
	}
	st.on(func(int) error { return store.ErrFull })
	if err := grow(); !errors.Is(err, store.ErrFull) {
		t.Fatal(err)
	}
	st.on(nil)
	if err := grow(); err != nil {
		t.Fatal(err)
	}
	if view, err := tn.Study(t.Context(), s.Name); err != nil || view.Trials != 2 {
		t.Errorf("%d trials, %v", view.Trials, err)
	}
}

// The service neither suggests nor reads trials of a study of Optuna, and Optuna changes
// no other study.
func TestForeignApart(t *testing.T) {
	tn, s := openForeign(t, newFaulty(), Options{})
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"ask":  func() error { _, err := tn.Ask(ctx, s.Name, study.Ask{}); return err },
		"tell": func() error { _, err := tn.Tell(ctx, s.Name, study.Tell{}); return err },
		"enqueue": func() error {
			_, err := tn.Enqueue(ctx, s.Name, study.Enqueue{})
			return err
		},
		"best":     func() error { _, err := tn.Best(ctx, s.Name); return err },
		"diagnose": func() error { _, err := tn.Diagnose(ctx, s.Name); return err },
		"trials":   func() error { _, _, err := tn.Trials(ctx, s.Name, tuner.Filter{}); return err },
		"trial":    func() error { _, err := tn.Trial(ctx, s.Name, 0); return err },
		"columns":  func() error { _, err := tn.Columns(ctx, s.Name, tuner.ColumnQuery{}); return err },
		"importance": func() error {
			_, err := tn.Importance(ctx, s.Name, tuner.ImportanceQuery{})
			return err
		},
		"predict": func() error { _, err := tn.Predict(ctx, s.Name, tuner.PredictQuery{}); return err },
		"finish":  func() error { _, err := tn.Finish(ctx, s.Name, study.Finish{}); return err },
	} {
		if err := call(); !errors.Is(err, study.ErrForeign) || tuner.CodeOf(err) != tuner.Unsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := tn.CreateStudy(ctx, "s", study.Create{Spec: testSpec(t, nil)}); err != nil {
		t.Fatal(err)
	}
	own, err := tn.FindForeign(ctx, "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	none := func(Foreign) ([]study.Foreign, error) { return nil, nil }
	if err := tn.Change(ctx, own, none); !errors.Is(err, ErrNotForeign) {
		t.Error(err)
	}
	missing := (*store.NotFoundError)(nil)
	if err := tn.Change(ctx, ForeignStudy{s.ID + 1000, s.Name}, none); !errors.As(err, &missing) {
		t.Error(err)
	}
	exists := (*store.ExistsError)(nil)
	if _, err := tn.CreateForeign(ctx, "s", nil, nil); !errors.As(err, &exists) {
		t.Error(err)
	}
	// A study of Optuna that takes the name of a deleted one is another study.
	if err := tn.DeleteForeign(ctx, s); err != nil {
		t.Fatal(err)
	}
	if _, err := tn.CreateForeign(ctx, s.Name, []study.Objective{{Name: "value", Direction: study.Minimize}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := tn.Change(ctx, s, none); !errors.As(err, &missing) {
		t.Error(err)
	}
	if err := tn.DeleteForeign(ctx, s); !errors.As(err, &missing) {
		t.Error(err)
	}
}

// A service without Options.Foreign lists the studies of Optuna, and changes none.
func TestForeignListed(t *testing.T) {
	st := newFaulty()
	tn, s := openForeign(t, st, Options{})
	if err := tn.Change(t.Context(), s, func(f Foreign) ([]study.Foreign, error) { return f.(*tape).next() }); err != nil {
		t.Fatal(err)
	}
	if err := tn.Close(); err != nil {
		t.Fatal(err)
	}
	tn = Open(st, Options{LongLived: true})
	defer tn.Close()
	studies, _, err := tn.Studies(t.Context(), "", 0)
	if err != nil || len(studies) != 1 || studies[0].Counts[study.Running] != 1 {
		t.Errorf("%+v, %v", studies, err)
	}
	if err := tn.Change(t.Context(), s, nil); !errors.Is(err, ErrNotForeign) {
		t.Error(err)
	}
	if report, err := tn.Replay(t.Context(), s.Name, nil); err != nil || report.Events != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}

// A change that the other optimiser cannot read is damage of its study alone.
func TestForeignSpoiled(t *testing.T) {
	st := newFaulty()
	tn, s := openForeign(t, st, Options{})
	if err := tn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := st.Commit(t.Context(), s.ID, 1, []study.Event{{Time: time.Now(), Body: study.Foreign{Trial: study.OfStudy, Change: []byte("spoiled")}}}, nil); err != nil {
		t.Fatal(err)
	}
	tn = Open(st, Options{Foreign: newTape})
	defer tn.Close()
	err := tn.Change(t.Context(), s, func(Foreign) ([]study.Foreign, error) { return nil, nil })
	if damaged := (*store.CorruptError)(nil); !errors.As(err, &damaged) || damaged.Position != 2 || tuner.CodeOf(err) != tuner.Damaged {
		t.Error(err)
	}
}

// A full study of Optuna takes nothing new, and its trials can end.
func TestForeignQuota(t *testing.T) {
	tn, s := openForeign(t, newFaulty(), Options{MaxStudyBytes: 2000})
	var err error
	made := 0
	for ; made < 100 && err == nil; made++ {
		err = tn.Change(t.Context(), s, func(f Foreign) ([]study.Foreign, error) { return f.(*tape).next() })
	}
	if quota := (*tuner.QuotaError)(nil); !errors.As(err, &quota) {
		t.Fatalf("after %d trials: %v", made, err)
	}
	if err := tn.Change(t.Context(), s, func(Foreign) ([]study.Foreign, error) {
		return []study.Foreign{{Trial: 0, State: study.Failed}}, nil
	}); err != nil {
		t.Error(err)
	}
}

// A watch tells the number of a trial of Optuna, and its state if an event changes it.
func TestForeignWatched(t *testing.T) {
	tn, s := openForeign(t, newFaulty(), Options{})
	change := func(f Foreign) ([]study.Foreign, error) {
		started, err := f.(*tape).next()
		noted := study.Foreign{Trial: 0, Change: []byte("note")}
		ofStudy := study.Foreign{Trial: study.OfStudy, Change: []byte("name")}
		return append(started, noted, ofStudy), err
	}
	if err := tn.Change(t.Context(), s, change); err != nil {
		t.Fatal(err)
	}
	want := []*study.Trial{{State: study.Running}, {}, nil}
	for h, err := range tn.Watch(t.Context(), s.Name, 1) {
		if err != nil || h.Kind != "foreign" || (h.Trial == nil) != (want[0] == nil) || h.Trial != nil && (h.Trial.Number != 0 || h.Trial.State != want[0].State) {
			t.Errorf("%+v, %v, want the trial %v", h, err, want[0])
		}
		if want = want[1:]; len(want) == 0 {
			break
		}
	}
}
