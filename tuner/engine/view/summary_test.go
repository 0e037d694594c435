package view

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
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
		MaxTrials:  rapid.IntRange(0, 20).Draw(t, "trials"), Timeout: 1000 * time.Hour, MaxCost: 30, MaxRetries: 1, Lease: time.Minute,
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
		reason := rapid.SampledFrom([]study.FailReason{study.FailedCrash, study.FailedCancelled}).Draw(t, "reason")
		return study.Outcome{State: study.Failed, Reason: reason, Message: "out of memory", Cost: 2}
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
		var d Digest
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
				if d.Observe(e); s.Position() == 1 {
					created = e
				}
				data := Summarize(&s, &d)
				got, ok := FromSummary(store.Summary{Study: 7, Position: s.Position(), Data: data, Created: created})
				want := Listed{Status("", 7, &s), d}
				got.Digest.violation, want.Digest.violation = nil, nil
				got.Digest.least, want.Digest.least = 0, 0 // these three only for later events
				got.Digest.idle, want.Digest.idle = 0, 0
				got.Digest.reached, want.Digest.reached = false, false
				if !ok || !reflect.DeepEqual(emptied(got.Show("a", now)), emptied(want.Show("a", now))) || !reflect.DeepEqual(got.Digest, want.Digest) {
					t.Fatalf("after %T the summary gives\n%+v, want\n%+v", e.Body, got, want)
				}
				if again := Summarize(&s, &got.Digest); !bytes.Equal(again, data) {
					t.Fatalf("after %T the summary changes when it is read", e.Body)
				}
			}
			return reply
		}
		do(study.Create{Spec: spec})
		config := space.NewConfig(space.Assignment{Name: "x", Value: space.Float(0.25)})
		for i := range rapid.IntRange(0, 30).Draw(t, "commands") {
			n := rapid.IntRange(0, max(0, s.Trials()-1)).Draw(t, "trial")
			switch rapid.IntRange(0, 9).Draw(t, "command") {
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
				do(study.Extend{MaxTrials: min(1, spec.MaxTrials), Timeout: time.Hour, MaxCost: 2, More: true})
			case 9:
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
	var d Digest
	for _, e := range events {
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
		d.Observe(e)
	}
	if data := Summarize(&s, &d); data == nil {
		t.Errorf("a study with %d attributes has no summary", len(spec.Attributes))
	}
}

// must ends the program on an error that a test does not expect.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
