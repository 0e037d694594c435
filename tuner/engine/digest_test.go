package engine

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// TestBestMeasured compares the best trial that the digest keeps with a search of all
// trials, in studies with and without constraints.
func TestBestMeasured(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 1))
	values := []float64{0, 1, 1, 2, 3, math.Inf(1), math.Inf(-1), math.NaN()}
	for round := range 20 {
		tn := open(t, memory.New(), Options{}, func(c *study.Spec) {
			c.Objectives[0].Direction = study.Direction(1 + round%2)
			c.Proposer.Name = propose.BKB
			if round%4 > 1 {
				c.Proposer.Options = `{"constraints": {"size": {"max": 5}}}`
			}
		})
		// The configurations do not matter here, and models cost time.
		tn.env.Propose = func(_ study.Component, spec study.Spec) (propose.Proposer, error) {
			return propose.New(study.Component{Name: propose.Random}, spec)
		}
		tn.forgetName("s")
		if s := must(tn.Study(t.Context(), "s")); s.BestMeasured.Values != nil || !s.LastTold.IsZero() {
			t.Errorf("a new study: %+v", s)
		}
		objective := must(tn.Study(t.Context(), "s")).Spec.Objectives[0].Name
		told := 0
		for range 25 {
			asked := must(tn.Ask(t.Context(), "s", study.Ask{Count: 1 + rng.IntN(3), New: true}))
			for _, trial := range asked.Trials {
				metric := []float64{values[rng.IntN(len(values))]}
				if rng.IntN(3) == 0 {
					metric = append(metric, values[rng.IntN(3)])
				}
				o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: objective, Values: metric}, {Name: "size", Values: []float64{rng.Float64() * 10}}}}
				switch rng.IntN(6) {
				case 0:
					o = study.Outcome{State: study.Failed}
				case 1:
					o.State = study.Pruned
				case 2:
					continue
				}
				if _, err := tn.Tell(t.Context(), "s", study.Tell{Trial: trial.Number, Outcome: o}); err == nil {
					told++
				} else if tuner.CodeOf(err) != tuner.Invalid { // an infinity on the good side
					t.Fatal(err)
				}
			}
			stored := snapshot(t, tn)
			got := must(tn.Study(t.Context(), "s"))
			var want []study.Trial
			for _, n := range propose.Best(stored) {
				trial, _ := stored.Trial(n)
				want = append(want, trial)
			}
			switch {
			case len(want) == 0 && got.BestMeasured.Values != nil:
				t.Fatalf("seed %d, round %d: trial %d is the best of none", seed, round, got.BestMeasured.Trial)
			case len(want) > 0 && (got.BestMeasured.Values == nil || got.BestMeasured.Trial != want[0].Number):
				t.Fatalf("seed %d, round %d: the best is %+v, want trial %d", seed, round, got.BestMeasured, want[0].Number)
			case len(want) > 0:
				if m, _ := want[0].Outcome.Metric(objective); m.Mean() != got.BestMeasured.Values[0] {
					t.Fatalf("seed %d, round %d: trial %d has %v, want %v", seed, round, want[0].Number, got.BestMeasured.Values, m.Mean())
				}
			}
			if got.ToldLastHour != told {
				t.Fatalf("seed %d, round %d: %d told in the last hour, want %d", seed, round, got.ToldLastHour, told)
			}
		}
	}
}

// counting counts how often each study is read.
type counting struct {
	store.Store
	reads   map[store.StudyID]int
	without bool // it has no summaries
}

// Summaries implements [store.Store].
func (c *counting) Summaries(ctx context.Context, ids []store.StudyID) ([]store.Summary, error) {
	if c.without {
		return nil, nil
	}
	return c.Store.Summaries(ctx, ids)
}

func (c *counting) Read(ctx context.Context, id store.StudyID, from study.Position) iter.Seq2[store.Record, error] {
	c.reads[id]++
	return c.Store.Read(ctx, id, from)
}

// shown is a study as text, with its space in JSON.
func shown(s tuner.Study) string {
	text := must(s.Spec.Space.MarshalJSON())
	s.Spec.Space = nil
	return fmt.Sprintf("%+v %s", s, text)
}

// TestListsReadStudiesOnce checks that a list reads a study without a summary only if it
// has changed, and one with a summary not at all. The list shows what the study itself
// shows.
func TestListsReadStudiesOnce(t *testing.T) {
	for _, without := range []bool{true, false} {
		t.Run(fmt.Sprint("without=", without), func(t *testing.T) { testListsReadStudiesOnce(t, without) })
	}
}

func testListsReadStudiesOnce(t *testing.T, without bool) {
	perList := 0
	if without {
		perList = 1
	}
	s := memory.New()
	tn := open(t, s, Options{}, func(*study.Spec) {})
	for i := range 3 {
		asked := must(tn.Ask(t.Context(), "s", study.Ask{New: true}))
		tell(t, tn, asked.Trials[0].Number, loss(float64(i)))
	}
	want := must(tn.Study(t.Context(), "s"))
	c := &counting{s, make(map[store.StudyID]int), without}
	other := Open(c, Options{})
	list := func() []tuner.Study {
		t.Helper()
		studies, _, err := other.Studies(t.Context(), "", 0)
		if err != nil || len(studies) != 1 {
			t.Fatalf("%d studies: %v", len(studies), err)
		}
		return studies
	}
	for range 3 {
		if got := list()[0]; shown(got) != shown(want) {
			t.Errorf("the list shows %+v, want %+v", got, want)
		}
	}
	if n := c.reads[want.ID]; n != perList {
		t.Errorf("three lists read the study %d times", n)
	}
	tell(t, tn, must(tn.Ask(t.Context(), "s", study.Ask{New: true})).Trials[0].Number, loss(-1)) // another writer of the store
	want = must(tn.Study(t.Context(), "s"))
	if got := list()[0]; got.BestMeasured.Trial != 3 || shown(got) != shown(want) {
		t.Errorf("after a change the list shows %+v, want %+v", got, want)
	}
	if n := c.reads[want.ID]; n != 2*perList {
		t.Errorf("after a change the study was read %d times", n)
	}
	// A study that is dropped from memory is not read again.
	must(other.Study(t.Context(), "s"))
	reads := c.reads[want.ID]
	other.mu.Lock()
	d := other.inUse["s"]
	other.drop(d)
	delete(other.recalled, want.ID)
	other.mu.Unlock()
	<-d.stored
	if got := list()[0]; shown(got) != shown(want) {
		t.Errorf("after it was dropped the list shows %+v, want %+v", got, want)
	}
	if n := c.reads[want.ID]; n != reads {
		t.Errorf("a list read a study that had just been in memory: %d reads, were %d", n, reads)
	}
	if err := other.DeleteStudy(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if studies, _, err := other.Studies(t.Context(), "", 0); err != nil || len(studies) != 0 {
		t.Errorf("after its deletion: %v, %v", studies, err)
	}
}

// TestSeen follows the time of a worker's last call.
func TestSeen(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	tn := open(t, memory.New(), Options{Now: func() time.Time { return now }}, func(*study.Spec) {})
	n := must(tn.Ask(t.Context(), "s", study.Ask{})).Trials[0].Number
	seen := func(what string) {
		t.Helper()
		if trial := must(tn.Trial(t.Context(), "s", n)); !trial.Seen.Equal(now) {
			t.Errorf("after %s the trial was last seen at %s, want %s", what, trial.Seen, now)
		}
	}
	seen("the ask")
	now = now.Add(time.Minute)
	must(tn.Heartbeat(t.Context(), "s", study.Heartbeat{Trial: n}))
	seen("a heartbeat")
	now = now.Add(time.Minute)
	must(tn.Report(t.Context(), "s", study.ReportValues{Trial: n, Reports: []study.Report{{Step: 1, Values: []study.NamedValue{{Name: "loss", Value: 1}}}}}))
	seen("a report")
	last := now
	now = now.Add(time.Minute)
	if err := tn.SetAttributes(t.Context(), "s", study.SetAttributes{Trial: n, Attributes: study.Attributes{"a": "b"}}); err != nil {
		t.Fatal(err)
	}
	if trial := must(tn.Trial(t.Context(), "s", n)); !trial.Seen.Equal(last) {
		t.Errorf("a note counts as a call of the worker: %s", trial.Seen)
	}
}

// TestModelState follows a study until it has a model, and one whose trials were all run
// elsewhere.
func TestModelState(t *testing.T) {
	state := func(tn *Engine) (surrogate.State, int) {
		t.Helper()
		d := must(tn.Diagnose(t.Context(), "s"))
		return d.State, d.Missing
	}
	tn := open(t, memory.New(), Options{}, func(c *study.Spec) { c.Proposer.Name = propose.BKB })
	s, missing := state(tn)
	if s != surrogate.Waiting || missing < 2 {
		t.Fatalf("a new study: state %d, %d missing", s, missing)
	}
	for left := missing; left > 0; left-- {
		if s, m := state(tn); s != surrogate.Waiting || m != left {
			t.Fatalf("state %d with %d missing, want %d", s, m, left)
		}
		n := must(tn.Ask(t.Context(), "s", study.Ask{New: true})).Trials[0].Number
		tell(t, tn, n, loss(float64(left)))
	}
	if s, m := state(tn); s != surrogate.AtNextAsk || m != 0 {
		t.Fatalf("with enough results: state %d, %d missing", s, m)
	}
	must(tn.Ask(t.Context(), "s", study.Ask{New: true}))
	d := must(tn.Diagnose(t.Context(), "s"))
	if d.State != surrogate.Ready || d.Results != missing || d.EventResults != missing || d.Position == 0 || len(d.LengthScales) == 0 {
		t.Errorf("after the ask: %+v", d)
	}
	added := open(t, memory.New(), Options{}, func(c *study.Spec) { c.Proposer.Name = propose.BKB })
	for i := range 50 {
		config := snapshot(t, tn)
		trial, _ := config.Trial(i % config.Trials())
		must(added.Add(t.Context(), "s", study.Add{Config: trial.Config, Outcome: loss(float64(i))}))
	}
	if s, _ := state(added); s != surrogate.AtNextAsk {
		t.Errorf("a study of added trials: state %d", s)
	}
	if !slices.Equal(must(added.Diagnose(t.Context(), "s")).Warnings, nil) {
		t.Error("there are warnings without a model")
	}
}

// must ends the program on an error that a test does not expect.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
