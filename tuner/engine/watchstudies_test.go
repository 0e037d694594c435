package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestWatchStudies follows studies that are created, changed and deleted. What the watch has
// said is always what a list shows in the end.
func TestWatchStudies(t *testing.T) {
	tn := open(t, memory.New(), Options{LongLived: true}, nil)
	create := func(name string) {
		t.Helper()
		must(tn.CreateStudy(t.Context(), name, study.Create{Spec: testSpec(t, nil)}))
	}
	create("other")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next, stop := iter.Pull2(tn.WatchStudies(ctx))
	defer stop()
	have := make(map[store.StudyID]tuner.Study)
	listed, yields := 0, 0
	take := func() {
		t.Helper()
		news, err, ok := next()
		if !ok || err != nil {
			t.Fatalf("the watch ended: %v", err)
		}
		yields++
		for _, id := range news.Deleted {
			if _, had := have[id]; !had {
				t.Errorf("study %d was deleted before it was yielded", id)
			}
			delete(have, id)
		}
		for _, s := range news.Studies {
			have[s.ID] = s
		}
		if news.Listed {
			listed++
		}
	}
	agree := func(what string) {
		t.Helper()
		list, _, err := tn.Studies(t.Context(), "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; {
			same := len(list) == len(have)
			for _, s := range list {
				same = same && have[s.ID].Position == s.Position && have[s.ID].Name == s.Name
			}
			if same {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the watch has %v, the list %v", what, have, list)
			}
			take()
		}
	}
	take()
	if listed != 1 || len(have) != 2 {
		t.Fatalf("at first there are %d studies, listed %d times", len(have), listed)
	}
	before := yields
	for range 200 {
		tell(t, tn, must(tn.Ask(t.Context(), "s", study.Ask{New: true})).Trials[0].Number, loss(1))
	}
	agree("trials")
	if n := yields - before; n > 40 {
		t.Errorf("400 events came in %d parts", n)
	}
	create("new")
	agree("a new study")
	if err := tn.DeleteStudy(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	agree("a deletion")
	if err := tn.DeleteStudy(t.Context(), "new"); err != nil {
		t.Fatal(err)
	}
	create("new")
	agree("another study of the name")
	if listed != 1 {
		t.Errorf("listed %d times", listed)
	}
	cancel()
	if _, err, ok := next(); !ok || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
	stop()
	if n := len(tn.notices.watchers); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}

// TestWatchStudiesEnds checks that a watch ends with its service.
func TestWatchStudiesEnds(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	ended := make(chan error)
	go func() {
		for news, err := range tn.WatchStudies(context.Background()) {
			if err != nil || !news.Listed {
				ended <- fmt.Errorf("%v: %w", news, err)
				return
			}
			go tn.Close()
		}
	}()
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
}
