package engine

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"pgregory.net/rapid"
)

// summarySpec has a constraint and attributes.
func summarySpec(t *rapid.T) study.Spec {
	spec := study.Spec{
		Space:      must(space.New(space.NewFloat("x", 0, 1))),
		Objectives: []study.Objective{{Name: "loss", Direction: rapid.SampledFrom([]study.Direction{study.Minimize, study.Maximize}).Draw(t, "direction")}},
		MaxTrials:  rapid.IntRange(0, 20).Draw(t, "trials"), MaxRetries: 1, Lease: time.Minute,
		Proposer: study.Component{Name: "bkb", Options: `{"constraints": {"memory": {"max": 2}}}`},
	}
	if rapid.Bool().Draw(t, "attributes") {
		spec.Attributes = study.Attributes{"owner": "räuber", "": ""}
	}
	if rapid.Bool().Draw(t, "several") {
		spec.Objectives = append(spec.Objectives, study.Objective{Name: "size", Direction: study.Minimize})
	}
	return spec
}

func summaryOutcome(t *rapid.T, spec study.Spec) study.Outcome {
	if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		return study.Outcome{State: study.Failed, Reason: study.FailedCrash, Message: "out of memory", Cost: 2}
	}
	value := rapid.SampledFrom([]float64{-1, 0, 0.5, 3, 3, 1e300})
	o := study.Outcome{State: study.Completed, Cost: rapid.SampledFrom([]float64{0, 0.25}).Draw(t, "cost")}
	for _, objective := range spec.Objectives {
		o.Metrics = append(o.Metrics, study.Metric{Name: objective.Name, Values: []float64{value.Draw(t, "value"), value.Draw(t, "again")}})
	}
	o.Metrics = append(o.Metrics, study.Metric{Name: "memory", Values: []float64{value.Draw(t, "memory")}})
	return o
}

// TestSummaries makes random studies. After every event the summary gives the study that
// the log gives.
func TestSummaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		spec := summarySpec(t)
		var s study.Study
		var d digest
		var created study.Event
		do := func(c study.Command) study.Reply {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 59, 3000}).Draw(t, "seconds")) * time.Second)
			reply, events, err := s.Decide(now, c)
			if err != nil {
				return reply // the study is finished, say
			}
			for _, e := range events {
				if err := s.Apply(e); err != nil {
					t.Fatal(err)
				}
				if d.observe(e); s.Position() == 1 {
					created = e
				}
				data := summarize(&s, &d)
				got, ok := glanceOf(store.Summary{Study: 7, Position: s.Position(), Data: data, Created: created})
				want := glance{view("", 7, &s), d}
				got.digest.keeps, want.digest.keeps = nil, nil
				if !ok || !reflect.DeepEqual(emptied(got.show("a", now)), emptied(want.show("a", now))) || !reflect.DeepEqual(got.digest, want.digest) {
					t.Fatalf("after %T the summary gives\n%+v, want\n%+v", e.Body, got, want)
				}
				if again := summarize(&s, &got.digest); !bytes.Equal(again, data) {
					t.Fatalf("after %T the summary changes when it is read", e.Body)
				}
			}
			return reply
		}
		do(study.Create{Spec: spec})
		config := space.NewConfig(space.Assignment{Name: "x", Value: space.Float(0.25)})
		for i := range rapid.IntRange(0, 30).Draw(t, "commands") {
			n := rapid.IntRange(0, max(0, s.Trials()-1)).Draw(t, "trial")
			switch rapid.IntRange(0, 8).Draw(t, "command") {
			case 0, 1:
				do(study.Enqueue{Config: config})
				do(study.Ask{Count: 1, Worker: "w"})
			case 2:
				do(study.Start{Ask: study.Ask{Count: 1, Worker: "w", New: true}, Trial: s.Trials(), Suggestion: study.Suggestion{Config: config}})
			case 3, 4:
				if trial, ok := s.Trial(n); ok {
					do(study.Tell{Trial: n, Epoch: trial.Epoch, Outcome: summaryOutcome(t, spec)})
				}
			case 5:
				do(study.Add{Config: config, Outcome: summaryOutcome(t, spec)})
			case 6:
				do(study.SetAttributes{Trial: study.OfStudy, Attributes: study.Attributes{fmt.Sprint("k", i%3): rapid.SampledFrom([]string{"", "v"}).Draw(t, "attribute")}})
			case 7:
				do(rapid.SampledFrom([]study.Command{study.Pause{}, study.Resume{}}).Draw(t, "pause"))
			case 8:
				if trial, ok := s.Trial(n); ok && trial.State == study.Running {
					now = trial.Deadline
					do(study.Expire{Trial: n, Epoch: trial.Epoch})
				}
			}
		}
		if rapid.Bool().Draw(t, "finish") {
			do(study.Finish{Reason: study.FinishedUser, Detail: "good enough"})
		}
	})
}

// emptied has nil for empty maps, which lists do not distinguish.
func emptied(s tuner.Study) tuner.Study {
	if len(s.Attributes) == 0 {
		s.Attributes = nil
	}
	return s
}

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
		if err := r.Check(t.Context(), s, []store.Info{info}, &verify.Options{Summaries: CheckSummary}); err != nil {
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

// TestLargestAttributesHaveSummary checks that a study is not read from its log for having
// many attributes.
func TestLargestAttributesHaveSummary(t *testing.T) {
	spec := study.Spec{
		Space:      must(space.New(space.NewFloat("x", 0, 1))),
		Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}},
		Attributes: make(study.Attributes),
	}
	for i, left := 0, study.MaxAttributesBytes; left > 0; i++ {
		key := fmt.Sprint("key-", i)
		value := string(bytes.Repeat([]byte("v"), min(left-min(left, len(key)), 60)))
		spec.Attributes[key] = value
		left -= len(key) + len(value)
		if left < 0 {
			delete(spec.Attributes, key)
		}
	}
	var s study.Study
	_, events, err := s.Decide(time.Now(), study.Create{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	var d digest
	for _, e := range events {
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
		d.observe(e)
	}
	if data := summarize(&s, &d); data == nil {
		t.Errorf("a study with %d attributes has no summary", len(spec.Attributes))
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
