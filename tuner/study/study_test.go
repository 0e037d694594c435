package study

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

var epoch0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const testSpaceText = `{"version": 1, "parameters": {
  "x": {"type": "float", "low": 0, "high": 1},
  "kind": {"type": "categorical", "values": ["a", "b"]},
  "depth": {"type": "int", "low": 1, "high": 9, "when": {"kind": "b"}}}}`

func parseSpace(tb interface {
	Helper()
	Fatal(...any)
},
) *space.Space {
	tb.Helper()
	sp, _, err := space.Parse([]byte(testSpaceText))
	if err != nil {
		tb.Fatal(err)
	}
	return sp
}

func config(x float64) space.Config {
	return space.NewConfig(space.Assignment{Name: "x", Value: space.Float(x)}, space.Assignment{Name: "kind", Value: space.String("a")})
}

// harness runs commands on a study with a clock of its own.
type harness struct {
	t   *testing.T
	s   Study
	now time.Time
	log []Event
}

func newHarness(t *testing.T, change func(*Spec)) *harness {
	t.Helper()
	h := &harness{t: t, now: epoch0}
	spec := Spec{Space: parseSpace(t), Objectives: []Objective{{"loss", Minimize}}, Lease: time.Minute, MaxRetries: 1}
	if change != nil {
		change(&spec)
	}
	h.must(Create{Spec: spec})
	return h
}

// do decides and applies a command.
func (h *harness) do(c Command) (Reply, error) {
	h.t.Helper()
	reply, events, err := h.s.Decide(h.now, c)
	for _, e := range events {
		if err := h.s.Apply(e); err != nil {
			h.t.Fatalf("%+v: %v", c, err)
		}
		h.log = append(h.log, e)
	}
	if err := h.s.Check(); err != nil {
		h.t.Fatalf("after %+v: %v", c, err)
	}
	return reply, err
}

func (h *harness) must(c Command) Reply {
	h.t.Helper()
	reply, err := h.do(c)
	if err != nil {
		h.t.Fatalf("%+v: %v", c, err)
	}
	return reply
}

// refuse runs a command that must fail with an error of the type of target or in the
// words of target, and change nothing.
func (h *harness) refuse(c Command, words ...string) error {
	h.t.Helper()
	before := h.s.Position()
	_, err := h.do(c)
	if err == nil {
		h.t.Fatalf("%+v was not refused", c)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			h.t.Errorf("%+v: error %q does not say %q", c, err, w)
		}
	}
	if h.s.Position() != before {
		h.t.Errorf("%+v was refused and yet did something", c)
	}
	return err
}

// ask runs an Ask and makes the missing suggestions.
func (h *harness) ask(c Ask) []int {
	h.t.Helper()
	if c.Count == 0 {
		c.Count = 1
	}
	reply := h.must(c)
	trials := slices.Clone(reply.Trials)
	for range reply.Missing {
		n := h.s.Trials()
		h.must(Start{Ask: c, Trial: n, Answer: len(reply.Trials) + reply.Missing, Suggestion: Suggestion{Config: config(float64(n%10) / 10), Seed: uint64(n), Seen: h.s.Position(), Phase: "start"}})
		trials = append(trials, n)
	}
	return trials
}

func (h *harness) trial(n int) Trial {
	h.t.Helper()
	t, ok := h.s.Trial(n)
	if !ok {
		h.t.Fatalf("no trial %d", n)
	}
	return t
}

func loss(values ...float64) Outcome {
	return Outcome{State: Completed, Metrics: []Metric{{Name: "loss", Values: values}}}
}

func TestLifeOfATrial(t *testing.T) {
	h := newHarness(t, nil)
	if got := h.ask(Ask{Count: 3, Worker: "w"}); !slices.Equal(got, []int{0, 1, 2}) {
		t.Fatalf("asked for three trials, got %v", got)
	}
	h.must(ReportValues{Trial: 1, Epoch: 1, Reports: []Report{{Step: 1, Values: []NamedValue{{"loss", 0.9}}}}})
	h.now = h.now.Add(30 * time.Second)
	h.must(Heartbeat{Trial: 1, Epoch: 1})
	h.must(Tell{Trial: 1, Epoch: 1, Outcome: loss(0.3, 0.4, 0.5)})
	got := h.trial(1)
	if got.State != Completed || math.Abs(got.Outcome.Metrics[0].Mean()-0.4) > 1e-15 || got.Ended != h.now || got.ToldEpoch != 1 {
		t.Errorf("told trial: %+v", got)
	}
	if se, ok := got.Outcome.Metrics[0].StandardError(); !ok || math.Abs(se-0.1/math.Sqrt(3)) > 1e-15 {
		t.Errorf("standard error of 0.3, 0.4, 0.5: %g, %t", se, ok)
	}
	h.must(Tell{Trial: 2, Outcome: Outcome{State: Infeasible, Message: "does not fit into memory"}})
	h.must(Tell{Trial: 0, Outcome: Outcome{State: Failed, Message: "exit status 1"}})
	if got := h.trial(0).Outcome.String(); got != "failed(crash): exit status 1" {
		t.Errorf("outcome: %s", got)
	}
	if h.s.Count(Completed) != 1 || h.s.Count(Infeasible) != 1 || h.s.Count(Failed) != 1 {
		t.Errorf("counts are off")
	}
}

func TestStickyAsk(t *testing.T) {
	h := newHarness(t, nil)
	first := h.ask(Ask{Count: 2, Worker: "w"})
	h.now = h.now.Add(10 * time.Second)
	if again := h.ask(Ask{Count: 3, Worker: "w"}); !slices.Equal(again[:2], first) || again[2] != 2 {
		t.Errorf("asking for three again gave %v", again)
	}
	if d := h.trial(0).Deadline; d != h.now.Add(time.Minute) {
		t.Errorf("asking again did not renew the lease: %v", d)
	}
	if got := h.ask(Ask{Worker: "w", New: true}); got[0] != 3 {
		t.Errorf("asking for a new trial gave %v", got)
	}
	if got := h.ask(Ask{}); got[0] != 4 {
		t.Errorf("an unnamed worker was given %v", got)
	}
	if got := h.ask(Ask{}); got[0] != 5 {
		t.Errorf("an unnamed worker was given %v back", got)
	}
	if got := h.ask(Ask{Worker: "v"}); got[0] != 6 {
		t.Errorf("another worker was given %v", got)
	}
}

func TestTerminalIsFinal(t *testing.T) {
	h := newHarness(t, nil)
	h.ask(Ask{Count: 2})
	h.must(Tell{Trial: 0, Outcome: loss(0.25)})
	before := h.s.Position()
	h.must(Tell{Trial: 0, Outcome: loss(0.25)})
	h.must(Tell{Trial: 0, Epoch: 1, Outcome: loss(0.25)})
	if h.s.Position() != before {
		t.Error("telling the same again did something")
	}
	var told *AlreadyToldError
	if err := h.refuse(Tell{Trial: 0, Outcome: loss(0.5)}, "loss=0.25"); !errors.As(err, &told) || !told.Stored.Equal(loss(0.25)) {
		t.Errorf("the refusal does not carry the stored outcome: %v", err)
	}
	h.refuse(Tell{Trial: 0, Outcome: Outcome{State: Failed}}, "keeps its outcome")
	h.refuse(ReportValues{Trial: 0, Reports: []Report{{Step: 0, Values: []NamedValue{{"loss", 1}}}}}, "completed", "not running")
	h.refuse(Heartbeat{Trial: 0}, "completed")
	h.refuse(Tell{Trial: 7, Outcome: loss(1)}, "no trial 7", "0 to 1")
	h.refuse(Tell{Trial: 1, Epoch: 2, Outcome: loss(1)}, "epoch = 2", "started 1 times")
	h.refuse(Heartbeat{Trial: 1, Epoch: -1}, "epoch = -1")
}

func TestExpiryAndLateTells(t *testing.T) {
	h := newHarness(t, func(c *Spec) { c.MaxRetries = 1 })
	h.ask(Ask{Worker: "slow"})
	h.now = h.now.Add(2 * time.Minute)
	if due := h.s.Overdue(h.now); len(due) != 1 || due[0].Worker != "slow" {
		t.Fatalf("overdue: %v", due)
	}
	h.must(Expire{Trial: 0, Epoch: 1})
	if got := h.trial(0); got.State != Queued || got.Expiries != 1 {
		t.Fatalf("after the first expiry: %+v", got)
	}
	h.must(Expire{Trial: 0, Epoch: 1}) // outdated
	if got := h.ask(Ask{Worker: "fast"}); got[0] != 0 {
		t.Fatalf("the expired trial was not handed out again but %v", got)
	}
	var lost *LeaseError
	if err := h.refuse(Heartbeat{Trial: 0, Epoch: 1}, "to fast"); !errors.As(err, &lost) || lost.Current != 2 {
		t.Errorf("lost lease: %v", err)
	}
	// The slow worker was replaced. Its result is kept but does not become the trial's
	// outcome.
	if reply := h.must(Tell{Trial: 0, Epoch: 1, Outcome: loss(0.7)}); !reply.Late {
		t.Error("the tell of a worker that lost the trial is not marked late")
	}
	before := h.s.Position()
	if reply := h.must(Tell{Trial: 0, Epoch: 1, Outcome: loss(0.7)}); !reply.Late || h.s.Position() != before {
		t.Error("telling the same late result again did something")
	}
	h.refuse(Tell{Trial: 0, Epoch: 1, Outcome: loss(0.8)}, "handed out again", "late result of epoch 1: completed loss=0.7")
	if got := h.trial(0); got.State != Running || len(got.Late) != 1 || got.Late[0].Epoch != 1 {
		t.Errorf("after a late tell: %+v", got)
	}
	// No retry is left, so the second expiry fails the trial. No other worker took it
	// over, so the holder's late tell replaces that.
	h.must(Expire{Trial: 0, Epoch: 2})
	if got := h.trial(0); got.State != Failed || got.Outcome.Reason != FailedExpired {
		t.Fatalf("after the last expiry: %+v", got)
	}
	h.must(Tell{Trial: 0, Epoch: 2, Outcome: loss(0.2)})
	if got := h.trial(0); got.State != Completed || got.Outcome.Metrics[0].Mean() != 0.2 {
		t.Errorf("the late tell of an expired trial was not accepted: %+v", got)
	}
	h.refuse(Tell{Trial: 0, Epoch: 2, Outcome: loss(0.3)}, "loss=0.2")
}

func TestLateTellBeforeTakeover(t *testing.T) {
	h := newHarness(t, nil)
	h.ask(Ask{Count: 2})
	h.must(Expire{Trial: 0, Epoch: 1})
	h.must(Expire{Trial: 1, Epoch: 1})
	h.must(Tell{Trial: 1, Epoch: 1, Outcome: loss(0.2)})
	if got := h.trial(1); got.State != Completed {
		t.Errorf("the late tell of a trial that no worker took over was not accepted: %+v", got)
	}
	if got := h.ask(Ask{Count: 2}); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("the queue still holds the told trial: %v", got)
	}
}

func TestNumbersThatAreNot(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	h := newHarness(t, func(c *Spec) { c.Objectives = []Objective{{"loss", Minimize}, {"acc", Maximize}} })
	two := func(l, a float64) Outcome {
		return Outcome{State: Completed, Metrics: []Metric{{Name: "loss", Values: []float64{l}}, {Name: "acc", Values: []float64{a}}}}
	}
	h.ask(Ask{Count: 9})
	h.must(Tell{Trial: 0, Outcome: two(nan, 1)})
	if got := h.trial(0); got.State != Failed || got.Outcome.Reason != FailedNaN {
		t.Errorf("NaN: %v", got.Outcome)
	}
	h.must(Tell{Trial: 0, Outcome: two(nan, 1)}) // the same again
	h.must(Tell{Trial: 1, Outcome: two(inf, -inf)})
	if got := h.trial(1); got.State != Completed {
		t.Errorf("infinities on the bad side: %v", got.Outcome)
	}
	h.refuse(Tell{Trial: 2, Outcome: two(-inf, 0)}, "metrics.loss", "-Inf", "minimize", "failed")
	h.refuse(Tell{Trial: 2, Outcome: two(0, inf)}, "metrics.acc", "+Inf", "maximize")
	h.refuse(Tell{Trial: 2, Outcome: loss(1)}, "acc is missing")
	for _, v := range []float64{nan, inf, -inf} {
		o := two(1, 1)
		o.Metrics = append(o.Metrics, Metric{Name: "seconds", Values: []float64{v}})
		h.refuse(Tell{Trial: 2, Outcome: o}, "metrics.seconds", "finite")
		h.refuse(ReportValues{Trial: 2, Reports: []Report{{Step: 1, Values: []NamedValue{{"seconds", v}}}}}, "seconds", "finite")
	}
	for _, se := range []float64{nan, inf, -1} {
		o := two(1, 1)
		o.Metrics[0].StdErr, o.Metrics[0].HasStdErr = se, true
		h.refuse(Tell{Trial: 2, Outcome: o}, "metrics.loss.stderr", "finite and not negative")
	}
	o := two(1, 1)
	o.Metrics[0] = Metric{Name: "loss", Values: []float64{1, 2}, StdErr: 1, HasStdErr: true}
	h.refuse(Tell{Trial: 2, Outcome: o}, "exactly one value")
	o.Metrics[0] = Metric{Name: "acc", Values: []float64{1}}
	h.refuse(Tell{Trial: 2, Outcome: o}, "metrics.acc", "once")
	o.Metrics[0] = Metric{Name: "loss"}
	h.refuse(Tell{Trial: 2, Outcome: o}, "1 to 10000 values")
	for _, cost := range []float64{nan, inf, -1} {
		o := two(1, 1)
		o.Cost = cost
		h.refuse(Tell{Trial: 2, Outcome: o}, "cost", "finite and not negative")
	}
	// A diverging intermediate value of an objective is kept.
	h.must(ReportValues{Trial: 2, Reports: []Report{{Step: 1, Values: []NamedValue{{"loss", nan}}}, {Step: 2, Values: []NamedValue{{"loss", inf}}}}})
	h.must(ReportValues{Trial: 2, Reports: []Report{{Step: 1, Values: []NamedValue{{"loss", nan}}}}})
	h.refuse(ReportValues{Trial: 2, Reports: []Report{{Step: 3, Values: []NamedValue{{"loss", -inf}}}}}, "loss")
	if got := h.trial(2); len(got.Reports) != 2 || got.State != Running {
		t.Errorf("reports: %+v", got.Reports)
	}
}

func TestDirectionCompare(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	ranked := map[Direction][]float64{
		Minimize: {-inf, -math.MaxFloat64, -1, 0, 5e-324, 1, inf, nan},
		Maximize: {inf, math.MaxFloat64, 1, 5e-324, 0, -1, -inf, nan},
	}
	for d, order := range ranked {
		for i, a := range order {
			for j, b := range order {
				if got := d.Compare(a, b); got != cmpInt(i, j) {
					t.Errorf("%s.Compare(%g, %g) = %d", d, a, b, got)
				}
			}
		}
	}
}

func cmpInt(i, j int) int {
	switch {
	case i < j:
		return -1
	case i > j:
		return 1
	}
	return 0
}

func TestMeanWithoutOverflow(t *testing.T) {
	big := math.MaxFloat64
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{big, big}, big},
		{[]float64{big, big, -big, -big}, 0},
		{[]float64{-big, -big}, -big},
		{[]float64{math.Inf(1), 1}, math.Inf(1)},
		{[]float64{1}, 1},
	} {
		if got := (Metric{Values: c.values}).Mean(); got != c.want {
			t.Errorf("mean of %g: %g, want %g", c.values, got, c.want)
		}
	}
}

func TestReports(t *testing.T) {
	h := newHarness(t, nil)
	h.ask(Ask{Count: 1})
	at := func(step int64, v float64) Report { return Report{Step: step, Values: []NamedValue{{"loss", v}}} }
	h.must(ReportValues{Trial: 0, Reports: []Report{at(5, 0.5), at(3, 0.3), at(5, 0.5)}})
	h.must(ReportValues{Trial: 0, Reports: []Report{at(3, 0.3), {Step: 3, Values: []NamedValue{{"acc", 0.1}, {"loss", 0.3}}}, at(7, 0.7)}})
	if got := h.trial(0).Reports; len(got) != 4 || len(got[2].Values) != 1 || got[2].Values[0].Name != "acc" {
		t.Errorf("reports: %+v", got)
	}
	var conflict *ReportConflictError
	if err := h.refuse(ReportValues{Trial: 0, Reports: []Report{at(9, 1), at(5, 0.6)}}); !errors.As(err, &conflict) || conflict.Stored != 0.5 {
		t.Errorf("conflicting report: %v", err)
	}
	h.refuse(ReportValues{Trial: 0, Reports: []Report{at(9, 1), at(9, 2)}}, "step 9")
	h.refuse(ReportValues{Trial: 0}, "1 to 1000")
	h.refuse(ReportValues{Trial: 0, Reports: []Report{at(-1, 1)}}, "step", "negative")
	h.refuse(ReportValues{Trial: 0, Reports: []Report{{Step: 10}}}, "values")
	h.refuse(ReportValues{Trial: 0, Reports: []Report{{Step: 10, Values: []NamedValue{{"a", 1}, {"a", 1}}}}}, "twice")
	// A worker that takes over starts at step 0 with values of its own.
	h.must(Expire{Trial: 0, Epoch: 1})
	h.ask(Ask{})
	h.must(ReportValues{Trial: 0, Epoch: 2, Reports: []Report{at(3, 0.9)}})
	tr := h.trial(0)
	if got := tr.CurrentReports(); len(got) != 1 || got[0].Epoch != 2 || len(tr.Reports) != 5 {
		t.Errorf("reports after takeover: %+v", tr.Reports)
	}
}

func TestRequestIDs(t *testing.T) {
	h := newHarness(t, nil)
	ask := Ask{RequestID: "r1", Count: 2}
	first := h.ask(ask)
	reply, err := h.do(ask)
	if err != nil || !reply.Replayed || !slices.Equal(reply.Trials, first) || reply.Missing != 0 {
		t.Errorf("the same ask again: %+v, %v", reply, err)
	}
	if h.s.Trials() != 2 {
		t.Errorf("there are %d trials", h.s.Trials())
	}
	h.refuse(Ask{RequestID: "r1", Count: 3}, "r1", "new id")
	h.refuse(Pause{RequestID: "r1"}, "r1")
	h.refuse(Ask{RequestID: "a\x1b[31m", Count: 1}, "request_id", "the character U+001B")

	// After a crash between the two suggestions of an ask, the retry makes the rest.
	cut := Ask{RequestID: "r2", Count: 2}
	h.must(cut)
	h.must(Start{Ask: cut, Trial: 2, Answer: 2, Suggestion: Suggestion{Config: config(0.5)}})
	h.refuse(Start{Ask: cut, Trial: 3, Answer: 1, Suggestion: Suggestion{Config: config(0.5)}}, "answer")
	if got := h.ask(cut); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("the rest of an ask that was cut short: %v", got)
	}
	if reply := h.must(cut); !reply.Replayed || !slices.Equal(reply.Trials, []int{2, 3}) {
		t.Errorf("and once more: %+v", reply)
	}

	tell := Tell{RequestID: "t", Trial: 0, Outcome: loss(1)}
	h.must(tell)
	if reply := h.must(tell); !reply.Replayed {
		t.Errorf("the same tell again: %+v", reply)
	}
	// The order of names is not part of the content.
	two := func(a, b string) Tell {
		return Tell{RequestID: "two", Trial: 3, Outcome: Outcome{State: Failed, Metrics: []Metric{{Name: a, Values: []float64{1}}, {Name: b, Values: []float64{1}}}}}
	}
	h.must(two("p", "q"))
	h.must(two("q", "p"))
	h.refuse(Tell{RequestID: "t", Trial: 0, Outcome: loss(2)}, `"t"`)
	enqueue := Enqueue{RequestID: "e", Config: config(0.1)}
	if a, b := h.must(enqueue), h.must(enqueue); !slices.Equal(a.Trials, b.Trials) || h.s.Count(Queued) != 1 {
		t.Errorf("enqueued twice: %+v, %+v", a, b)
	}

	// Ids of notes are forgotten after a day and not before, and ids of asks never.
	note := SetAttributes{RequestID: "n", Trial: 1, Attributes: Attributes{"k": "v"}}
	h.must(note)
	h.now = h.now.Add(RequestRetention)
	h.must(Heartbeat{Trial: 1}) // an event that advances the study's time
	if reply := h.must(note); !reply.Replayed {
		t.Error("a note's id was forgotten too early")
	}
	h.now = h.now.Add(time.Second)
	h.must(Heartbeat{Trial: 1})
	if reply := h.must(note); reply.Replayed {
		t.Error("a note's id was not forgotten")
	}
	if reply := h.must(tell); !reply.Replayed {
		t.Error("a tell's id was forgotten")
	}
	if reply := h.must(ask); !reply.Replayed || !slices.Equal(reply.Trials, first) {
		t.Errorf("an ask's id was forgotten: %+v", reply)
	}
}

// TestAnswersStay repeats asks after the study has changed. The answer has the same
// trials and epochs as the first time.
func TestAnswersStay(t *testing.T) {
	h := newHarness(t, func(c *Spec) { c.MaxTrials = 3 })
	h.ask(Ask{Worker: "other"})
	short := Ask{RequestID: "short", Count: 5}
	if got := h.ask(short); !slices.Equal(got, []int{1, 2}) {
		t.Fatalf("an ask for more than there is: %v", got)
	}
	h.must(Expire{Trial: 0, Epoch: 1}) // one more trial is queued now
	if reply := h.must(short); !slices.Equal(reply.Trials, []int{1, 2}) || !reply.Replayed {
		t.Errorf("an answer that was complete grew: %+v", reply)
	}

	h = newHarness(t, nil)
	cut := Ask{RequestID: "cut", Count: 2, Worker: "w"}
	h.must(cut)
	h.must(Start{Ask: cut, Trial: 0, Answer: 2, Suggestion: Suggestion{Config: config(0.5)}})
	h.must(Expire{Trial: 0, Epoch: 1})
	if reply := h.must(cut); !slices.Equal(reply.Trials, []int{0}) || reply.Missing != 1 || reply.Epochs[0] != 1 {
		t.Errorf("an ask that was cut short, after an expiry: %+v", reply)
	}
	h.ask(Ask{Worker: "fast"}) // takes trial 0 over
	h.ask(cut)
	if reply := h.must(cut); !slices.Equal(reply.Trials, []int{0, 1}) || !slices.Equal(reply.Epochs, []int{1, 1}) {
		t.Errorf("the answer repeats the epochs of another worker: %+v", reply)
	}
	if _, err := h.do(Heartbeat{Trial: 0, Epoch: 1}); err == nil {
		t.Error("the worker that lost the trial can keep it alive")
	}

	h = newHarness(t, func(c *Spec) { c.Timeout = time.Hour })
	cut = Ask{RequestID: "cut", Count: 2}
	h.must(cut)
	h.must(Start{Ask: cut, Trial: 0, Answer: 2, Suggestion: Suggestion{Config: config(0.5)}})
	h.now = h.now.Add(time.Hour)
	if reply := h.must(cut); !slices.Equal(reply.Trials, []int{0}) || reply.Missing != 0 {
		t.Errorf("an ask that was cut short, after the study's time: %+v", reply)
	}
}

func TestExpiryInAFinishedStudy(t *testing.T) {
	h := newHarness(t, nil)
	h.ask(Ask{})
	h.must(Finish{Reason: FinishedUser})
	h.must(Expire{Trial: 0, Epoch: 1})
	if got := h.trial(0); got.State != Failed || got.Outcome.Reason != FailedExpired {
		t.Errorf("an expired trial that will not be handed out again is %s", got.State)
	}
	h.must(Tell{Trial: 0, Epoch: 1, Outcome: loss(1)})
}

func TestCosts(t *testing.T) {
	h := newHarness(t, func(c *Spec) { c.MaxCost = 10 })
	h.ask(Ask{Count: 2})
	h.must(Expire{Trial: 0, Epoch: 1})
	h.ask(Ask{})
	late := loss(1)
	late.Cost = 10
	h.must(Tell{Trial: 0, Epoch: 1, Outcome: late})
	if _, how := h.s.Status(); how.Reason != FinishedCost || h.s.Cost() != 10 {
		t.Errorf("finished %v at a cost of %g, told late", how, h.s.Cost())
	}
	h = newHarness(t, nil)
	h.ask(Ask{Count: 2})
	huge := loss(1)
	huge.Cost = math.MaxFloat64
	h.must(Tell{Trial: 0, Outcome: huge})
	h.refuse(Tell{Trial: 1, Outcome: huge}, "cost", "finite sum")
}

func TestQueue(t *testing.T) {
	h := newHarness(t, nil)
	h.must(Enqueue{Config: config(0.1), Attributes: Attributes{"why": "default"}})
	h.must(Enqueue{Config: config(0.2)})
	h.must(Enqueue{Config: config(0.3)})
	h.refuse(Enqueue{Config: space.NewConfig(space.Assignment{Name: "x", Value: space.Float(2)})}, "x")
	h.refuse(Tell{Trial: 1, Outcome: loss(1)}, "not been started")
	h.must(Tell{Trial: 1, Outcome: Outcome{State: Failed, Reason: FailedCancelled}})
	if got := h.ask(Ask{Count: 3}); !slices.Equal(got, []int{0, 2, 3}) {
		t.Errorf("asked for three with two queued: %v", got)
	}
	if got := h.trial(0); got.Origin != OriginEnqueued || got.Attributes["why"] != "default" || got.Epoch != 1 {
		t.Errorf("enqueued trial: %+v", got)
	}
}

func TestBudgetAndFinish(t *testing.T) {
	h := newHarness(t, func(c *Spec) { c.MaxTrials = 3 })
	h.must(Add{Config: config(0.5), Outcome: loss(9)}) // does not count
	h.ask(Ask{Count: 2})
	if got := h.ask(Ask{Count: 5}); len(got) != 1 {
		t.Fatalf("the last trial: %v", got)
	}
	var over *NoneLeftError
	if err := h.refuse(Ask{Count: 1}, "all 3 trials", "3 of them still run", "ask again after"); !errors.As(err, &over) || over.NextExpiry != h.now.Add(time.Minute) {
		t.Errorf("none left: %v", err)
	}
	h.refuse(Enqueue{Config: config(0.1)}, "no more than 3 trials")
	h.must(Tell{Trial: 1, Outcome: loss(1)})
	h.must(Tell{Trial: 2, Outcome: loss(1)})
	if status, _ := h.s.Status(); status != StatusActive {
		t.Errorf("finished while a trial runs: %v", status)
	}
	h.must(Tell{Trial: 3, Outcome: Outcome{State: Failed}})
	if status, how := h.s.Status(); status != StatusFinished || how.Reason != FinishedTrials {
		t.Errorf("status: %v, %v", status, how)
	}
	var finished *FinishedError
	if err := h.refuse(Ask{Count: 1}, "max trials"); !errors.As(err, &finished) {
		t.Errorf("ask on a finished study: %v", err)
	}
	for _, c := range []Command{Enqueue{Config: config(0)}, Add{Config: config(0), Outcome: loss(1)}, Pause{}, Resume{}, Finish{Reason: FinishedUser}} {
		h.refuse(c, "finished")
	}
}

// TestCancelledGivesItsPlaceBack cancels trials in each state that allows it.
func TestCancelledGivesItsPlaceBack(t *testing.T) {
	cancelled := Outcome{State: Failed, Reason: FailedCancelled}
	h := newHarness(t, func(c *Spec) { c.MaxTrials, c.MaxRetries = 3, 0 })
	counted := func(n, budget int) {
		t.Helper()
		if h.s.Counted() != n || h.s.trialBudget() != budget {
			t.Errorf("%d trials count and %d may be made, want %d and %d", h.s.Counted(), h.s.trialBudget(), n, budget)
		}
	}
	h.ask(Ask{Count: 2})
	h.must(Enqueue{Config: config(0.1)})
	counted(3, 0)
	h.must(Tell{Trial: 0, Outcome: cancelled}) // running
	h.must(Tell{Trial: 0, Outcome: cancelled})
	h.must(Tell{Trial: 2, Outcome: cancelled}) // queued
	counted(1, 2)
	h.must(Expire{Trial: 1, Epoch: 1})
	counted(1, 2)
	h.must(Tell{Trial: 1, Epoch: 1, Outcome: cancelled}) // expired
	h.must(Add{Config: config(0.5), Outcome: cancelled})
	counted(0, 3)
	h.ask(Ask{Count: 3})
	for n := 4; n <= 5; n++ {
		h.must(Tell{Trial: n, Outcome: loss(1)})
	}
	h.must(Tell{Trial: 6, Outcome: cancelled}) // the last one
	counted(2, 1)
	if status, _ := h.s.Status(); status != StatusActive {
		t.Errorf("the study is %s with room for a trial", status)
	}
	h.ask(Ask{})
	replaced := cancelled
	replaced.Attributes = Attributes{ReplacedAttribute: "completed"}
	h.must(Tell{Trial: 7, Outcome: replaced})
	counted(3, 0)
	if status, how := h.s.Status(); status != StatusFinished || how.Reason != FinishedTrials {
		t.Errorf("the study is %s, %v", status, how)
	}
	if s, err := Replay(slices.Values(h.log)); err != nil || !reflect.DeepEqual(*s, h.s) {
		t.Errorf("replay: %v", err)
	}
}

// TestExtend raises each limit of studies that have finished for each reason, by more and
// to a new limit.
func TestExtend(t *testing.T) {
	full := func(c *Spec) { c.MaxTrials, c.Timeout, c.MaxCost = 2, time.Hour, 10 }
	costly := func(x float64) Outcome {
		o := loss(1)
		o.Cost = x
		return o
	}
	limits := func(h *harness) Raised {
		spec := h.s.Spec()
		return Raised{spec.MaxTrials, spec.Timeout, spec.MaxCost}
	}
	for name, c := range map[string]struct {
		finish func(h *harness)
		cmd    Extend
		want   Raised
	}{
		"trials": {
			func(h *harness) {
				h.ask(Ask{Count: 2})
				h.must(Tell{Trial: 0, Outcome: loss(1)})
				h.must(Tell{Trial: 1, Outcome: loss(1)})
			},
			Extend{MaxTrials: 3, More: true},
			Raised{5, time.Hour, 10},
		},
		"trials to": {
			func(h *harness) {
				h.ask(Ask{Count: 2})
				h.must(Tell{Trial: 0, Outcome: loss(1)})
				h.must(Tell{Trial: 1, Outcome: loss(1)})
			},
			Extend{MaxTrials: 3},
			Raised{3, time.Hour, 10},
		},
		"cost":    {func(h *harness) { h.ask(Ask{}); h.must(Tell{Trial: 0, Outcome: costly(12)}) }, Extend{MaxCost: 5, More: true}, Raised{2, time.Hour, 17}},
		"cost to": {func(h *harness) { h.ask(Ask{}); h.must(Tell{Trial: 0, Outcome: costly(12)}) }, Extend{MaxCost: 20}, Raised{2, time.Hour, 20}},
		"time":    {func(h *harness) { h.now = h.now.Add(3 * time.Hour); h.must(Finish{Reason: FinishedTime}) }, Extend{Timeout: time.Minute, More: true}, Raised{2, 3*time.Hour + time.Minute, 10}},
		"time to": {func(h *harness) { h.now = h.now.Add(3 * time.Hour) }, Extend{Timeout: 4 * time.Hour}, Raised{2, 4 * time.Hour, 10}},
		"user":    {func(h *harness) { h.must(Finish{Reason: FinishedUser}) }, Extend{}, Raised{2, time.Hour, 10}},
		"active":  {func(*harness) {}, Extend{MaxTrials: 1, Timeout: time.Minute, MaxCost: 1, More: true}, Raised{3, time.Hour + time.Minute, 11}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, full)
			c.finish(h)
			made := h.s.Trials()
			c.cmd.RequestID = "more"
			h.must(c.cmd)
			if reply := h.must(c.cmd); !reply.Replayed || limits(h) != c.want {
				t.Errorf("limits %+v, want %+v", limits(h), c.want)
			}
			if got := h.ask(Ask{}); !slices.Equal(got, []int{made}) {
				t.Errorf("asked after the extension: %v", got)
			}
			if s, err := Replay(slices.Values(h.log)); err != nil || !reflect.DeepEqual(*s, h.s) {
				t.Errorf("replay: %v", err)
			}
		})
	}
	h := newHarness(t, full)
	h.refuse(Extend{MaxTrials: 1}, "max_trials = 1", "at least 2")
	h.refuse(Extend{MaxTrials: -1, More: true}, "max_trials", "not be negative")
	h.refuse(Extend{MaxTrials: MaxTrials, More: true}, "max_trials", "10000000")
	h.refuse(Extend{Timeout: math.MaxInt64, More: true}, "timeout")
	h.refuse(Extend{MaxCost: math.NaN()}, "max_cost")
	h.refuse(Extend{MaxCost: math.Inf(1)}, "max_cost", "finite")
	h.ask(Ask{Count: 2})
	h.must(Tell{Trial: 0, Outcome: loss(1)})
	h.must(Tell{Trial: 1, Outcome: costly(11)})
	h.refuse(Extend{MaxTrials: 5}, "max_cost = 10", "have cost 11", "raise this limit too")
	h.refuse(Extend{MaxCost: 20}, "max_trials = 2", "made 2 trials", "raise this limit too")
	h.now = h.now.Add(2 * time.Hour)
	h.refuse(Extend{MaxCost: 20, MaxTrials: 5}, "timeout = 1h", "raise this limit too")
	h.must(Extend{MaxCost: 20, MaxTrials: 5, Timeout: 3 * time.Hour})

	h = newHarness(t, nil)
	h.refuse(Extend{MaxTrials: 5}, "max_trials = 5", "no such limit")
	for _, reason := range []FinishReason{FinishedGap, FinishedExhausted} {
		h = newHarness(t, full)
		h.must(Finish{Reason: reason})
		h.refuse(Extend{MaxTrials: 5}, "finished")
	}
}

// TestExtendEndsAnswers checks that an ask that was cut short before a study finished gets no
// more trials after an extension, because it may have been repeated in between.
func TestExtendEndsAnswers(t *testing.T) {
	h := newHarness(t, nil)
	cut := Ask{RequestID: "cut", Count: 2}
	h.must(cut)
	h.must(Start{Ask: cut, Trial: 0, Answer: 2, Suggestion: Suggestion{Config: config(0.5)}})
	h.must(Finish{Reason: FinishedUser})
	for range 2 {
		if reply := h.must(cut); !slices.Equal(reply.Trials, []int{0}) || reply.Missing != 0 {
			t.Errorf("the ask again: %+v", reply)
		}
		h.must(Extend{})
	}
}

func TestFinishByTimeCostAndHand(t *testing.T) {
	h := newHarness(t, func(c *Spec) { c.Timeout, c.MaxCost = time.Hour, 10 })
	h.ask(Ask{Count: 2})
	h.refuse(Finish{Reason: FinishedTime}, "timeout of the study has not passed")
	h.refuse(Finish{Reason: FinishedTrials}, "must be")
	h.now = h.now.Add(time.Hour)
	h.refuse(Ask{Count: 1}, "finished (time)")
	h.must(Finish{Reason: FinishedTime})
	h.must(Finish{Reason: FinishedTime})
	h.must(Tell{Trial: 0, Outcome: loss(1)}) // running trials can still be told

	h = newHarness(t, func(c *Spec) { c.MaxCost = 10 })
	h.ask(Ask{Count: 3})
	costly := loss(1)
	costly.Cost = 6
	h.must(Tell{Trial: 0, Outcome: costly})
	h.must(Tell{Trial: 1, Outcome: costly})
	if _, how := h.s.Status(); how.Reason != FinishedCost || h.s.Cost() != 12 {
		t.Errorf("finished: %v at cost %g", how, h.s.Cost())
	}

	h = newHarness(t, nil)
	h.must(Pause{})
	h.must(Pause{})
	h.ask0Refused()
	h.must(Resume{})
	h.must(Finish{Reason: FinishedGap, Detail: "gap 1e-4 < 1e-3"})
	h.refuse(Ask{Count: 1}, "gap 1e-4")
}

func (h *harness) ask0Refused() {
	h.t.Helper()
	if err := h.refuse(Ask{Count: 1}); !errors.Is(err, ErrPaused) {
		h.t.Errorf("ask on a paused study: %v", err)
	}
}

func TestCreateRefuses(t *testing.T) {
	sp := parseSpace(t)
	loss := []Objective{{"loss", Minimize}}
	many := make([]Objective, MaxMetrics+1)
	for i := range many {
		many[i] = Objective{strings.Repeat("m", i+1), Minimize}
	}
	var parameters []space.Parameter
	for i := range 200 { // their JSON is too large to be read back
		var values []space.Value
		for j := range 2000 {
			values = append(values, space.Int(int64(j)))
		}
		parameters = append(parameters, space.NewOrdinal(fmt.Sprint("p", i), values...))
	}
	large, err := space.New(parameters...)
	if err != nil {
		t.Fatal(err)
	}
	for field, spec := range map[string]Spec{
		"space":                   {Objectives: loss},
		"bytes of JSON":           {Space: large, Objectives: loss},
		"objectives":              {Space: sp},
		"objectives = 65":         {Space: sp, Objectives: many},
		"objectives[0].name":      {Space: sp, Objectives: []Objective{{"", Minimize}}},
		"objectives[0].direction": {Space: sp, Objectives: []Objective{{"loss", 0}}},
		"objectives[1].name":      {Space: sp, Objectives: []Objective{{"loss", Minimize}, {"loss", Maximize}}},
		"max_trials":              {Space: sp, Objectives: loss, MaxTrials: -1},
		"timeout":                 {Space: sp, Objectives: loss, Timeout: -1},
		"max_cost":                {Space: sp, Objectives: loss, MaxCost: math.NaN()},
		"lease":                   {Space: sp, Objectives: loss, Lease: time.Millisecond},
		"max_retries":             {Space: sp, Objectives: loss, MaxRetries: -1},
		"proposer.options":        {Space: sp, Objectives: loss, Proposer: Component{"bkb", "[1]"}},
		"pruner.name":             {Space: sp, Objectives: loss, Pruner: Component{Name: "a\u202eb"}},
		"attributes":              {Space: sp, Objectives: loss, Attributes: Attributes{"": "x"}},
	} {
		var s Study
		_, events, err := s.Decide(epoch0, Create{Spec: spec})
		if err == nil || events != nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	var s Study
	if _, _, err := s.Decide(epoch0, Ask{Count: 1}); !errors.Is(err, ErrNotCreated) {
		t.Errorf("ask of the empty study: %v", err)
	}
	h := newHarness(t, nil)
	if err := h.refuse(Create{Spec: h.s.Spec()}); !errors.Is(err, ErrExists) {
		t.Errorf("created twice: %v", err)
	}
}

func TestLimits(t *testing.T) {
	h := newHarness(t, nil)
	h.ask(Ask{Count: 1})
	text := func(n int) string { return strings.Repeat("é", n/2) + strings.Repeat("x", n%2) }
	many := func(n int) []Metric {
		metrics := []Metric{{Name: "loss", Values: []float64{1}}}
		for len(metrics) < n {
			metrics = append(metrics, Metric{Name: text(len(metrics) + 1), Values: []float64{1}})
		}
		return metrics
	}
	for name, c := range map[string]func(n int) Command{
		"count 1000":     func(n int) Command { return Ask{Count: MaxCount + n} },
		"worker 128":     func(n int) Command { return Ask{Count: 1, Worker: text(MaxNameBytes + n)} },
		"request id 128": func(n int) Command { return Pause{RequestID: text(MaxNameBytes + n)} },
		"lease":          func(n int) Command { return Heartbeat{Trial: 0, Lease: MaxLease + time.Duration(n)} },
		"short lease":    func(n int) Command { return Heartbeat{Trial: 0, Lease: MinLease - time.Duration(n)} },
		"metrics 64": func(n int) Command {
			return Tell{Trial: 0, Outcome: Outcome{State: Failed, Metrics: many(MaxMetrics + n)}}
		},
		"replicates 10000": func(n int) Command { return Tell{Trial: 0, Outcome: loss(make([]float64, MaxReplicates+n)...)} },
		"message 4096": func(n int) Command {
			return Tell{Trial: 0, Outcome: Outcome{State: Failed, Message: text(MaxTextBytes + n)}}
		},
		"attributes 65536": func(n int) Command {
			return SetAttributes{Trial: 0, Attributes: Attributes{"key": text(MaxAttributesBytes - 3 + n)}}
		},
		"report batch 1000": func(n int) Command { return ReportValues{Trial: 0, Reports: steps(0, MaxReportBatch+n)} },
		"finish detail":     func(n int) Command { return Finish{Reason: FinishedUser, Detail: text(MaxTextBytes + n)} },
		"model 16 MiB": func(n int) Command {
			return Anchor{Effective: h.s.Position() + 1, Model: make([]byte, MaxModelBytes+n)}
		},
	} {
		if _, _, err := h.s.Decide(h.now, c(0)); err != nil {
			t.Errorf("%s, at the limit: %v", name, err)
		}
		var bad *InvalidError
		if _, _, err := h.s.Decide(h.now, c(1)); !errors.As(err, &bad) {
			t.Errorf("%s, past the limit: %v", name, err)
		}
	}
	for from := 0; from < MaxReports; from += MaxReportBatch {
		h.must(ReportValues{Trial: 0, Reports: steps(from, MaxReportBatch)})
	}
	h.refuse(ReportValues{Trial: 0, Reports: steps(MaxReports, 1)}, "100000 reports")
}

func steps(from, n int) []Report {
	reports := make([]Report, n)
	for i := range reports {
		reports[i] = Report{Step: int64(from + i), Values: []NamedValue{{"loss", 1}}}
	}
	return reports
}

func TestAttributes(t *testing.T) {
	h := newHarness(t, func(c *Spec) { c.Attributes = Attributes{"team": "blue", "tmp": "x"} })
	h.must(SetAttributes{Trial: OfStudy, Attributes: Attributes{"tmp": "", "owner": "ann"}})
	if got := h.s.Attributes(); len(got) != 2 || got["team"] != "blue" || got["owner"] != "ann" {
		t.Errorf("attributes: %v", got)
	}
	h.ask(Ask{})
	h.must(SetAttributes{Trial: 0, Attributes: Attributes{"host": "a"}})
	seen := h.trial(0)
	o := loss(1)
	o.Attributes = Attributes{"host": "", "commit": "abc"}
	h.must(Tell{Trial: 0, Outcome: o})
	if got := h.trial(0).Attributes; len(got) != 1 || got["commit"] != "abc" {
		t.Errorf("attributes: %v", got)
	}
	if len(seen.Attributes) != 1 || seen.Attributes["host"] != "a" || seen.State != Running {
		t.Errorf("a trial changed after it was returned: %+v", seen)
	}
	h.refuse(SetAttributes{Trial: 4, Attributes: Attributes{"a": "b"}}, "no trial 4")
}

func TestAnchors(t *testing.T) {
	h := newHarness(t, nil)
	h.ask(Ask{Count: 4})
	p := h.s.Position()
	h.refuse(Anchor{Seen: p + 1, Effective: p + 2}, "seen")
	h.refuse(Anchor{Seen: p, Effective: p}, "effective")
	h.must(Anchor{Seen: p, Effective: p + 3, Model: []byte("one")})
	if _, ok := h.s.Anchor(p + 2); ok {
		t.Error("the model is in effect too early")
	}
	if a, ok := h.s.Anchor(p + 3); !ok || string(a.Model) != "one" {
		t.Errorf("model in effect: %v, %t", a, ok)
	}
	h.must(Anchor{Seen: p + 1, Effective: p + 9, Model: []byte("two")})
	if a, _ := h.s.Anchor(p + 8); string(a.Model) != "one" {
		t.Errorf("model in effect before the second: %s", a.Model)
	}
	if a, _ := h.s.Anchor(p + 9); string(a.Model) != "two" {
		t.Errorf("model in effect after the second: %s", a.Model)
	}
	h.refuse(Anchor{Seen: p, Effective: p + 8}, "previous model")
}

// TestSnapshot takes snapshots of a study that continues across the borders of its
// table's chunks. It checks that each snapshot stays unchanged.
func TestSnapshot(t *testing.T) {
	h := newHarness(t, nil)
	type taken struct {
		view   *View
		trials []Trial
	}
	var all []taken
	take := func() { all = append(all, taken{h.s.Snapshot(), slices.Collect(h.s.All(0))}) }
	for range 2*chunkSize/100 + 1 {
		h.ask(Ask{Count: 100})
		take()
		h.must(Tell{Trial: h.s.Trials() - 50, Outcome: loss(1)})
		h.must(ReportValues{Trial: 1, Reports: steps(int(h.s.Position()), 1)})
		take()
	}
	h.must(Tell{Trial: 0, Outcome: loss(1)})
	for i, s := range all {
		if got := slices.Collect(s.view.All(0)); !reflect.DeepEqual(got, s.trials) {
			t.Errorf("snapshot %d changed after it was taken", i)
		}
	}
	if n := all[0].view.origins[OriginSuggested]; n != 100 {
		t.Errorf("suggested: %d", n)
	}
}
