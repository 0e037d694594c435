package study

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
	"pgregory.net/rapid"
)

// TestRandomCommands runs random commands, valid and invalid, under a clock that jumps.
// After each it checks the study against the promises of the package and against a twin
// made only from the events.
func TestRandomCommands(t *testing.T) {
	sp := parseSpace(t)
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{t: t, now: epoch0, requests: make(map[string]sent)}
		spec := Spec{
			Space:      sp,
			Objectives: []Objective{{"loss", Minimize}, {"acc", Maximize}}[:rapid.IntRange(1, 2).Draw(t, "objectives")],
			MaxTrials:  rapid.SampledFrom([]int{0, 0, 3, 8}).Draw(t, "max trials"),
			Timeout:    rapid.SampledFrom([]time.Duration{0, 0, time.Hour}).Draw(t, "timeout"),
			MaxCost:    rapid.SampledFrom([]float64{0, 0, 5}).Draw(t, "max cost"),
			MaxRetries: rapid.IntRange(0, 2).Draw(t, "max retries"),
			Lease:      time.Minute,
		}
		m.do(Create{Spec: spec})
		for range rapid.IntRange(1, 60).Draw(t, "length") {
			m.step()
		}
	})
}

// machine is a study under test with the data to check it.
type machine struct {
	t        *rapid.T
	live     Study
	twin     Study // has the same events and never decides
	now      time.Time
	before   []Trial // state before the last command
	requests map[string]sent
}

type sent struct {
	cmd   Command
	reply Reply
}

func (m *machine) step() {
	m.now = m.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, 50 * time.Second, -time.Hour, 25 * time.Hour}).Draw(m.t, "clock"))
	cmd := m.command()
	reply, ok := m.do(cmd)
	ask, isAsk := cmd.(Ask)
	if !ok || !isAsk {
		return
	}
	answer := len(reply.Trials) + reply.Missing
	for range reply.Missing {
		if rapid.IntRange(0, 9).Draw(m.t, "crash") == 0 {
			return // between an ask and its suggestions
		}
		started, ok := m.do(Start{Ask: ask, Trial: m.live.Trials(), Answer: answer, Suggestion: Suggestion{Config: m.config(), Seen: m.live.Position()}})
		if !ok {
			m.t.Fatalf("the study wanted a suggestion and refused it")
		}
		reply.Trials = append(slices.Clone(reply.Trials), started.Trials...)
		reply.Epochs = append(slices.Clone(reply.Epochs), started.Epochs...)
	}
	reply.Missing = 0
	if ask.RequestID != "" {
		m.requests[ask.RequestID] = sent{ask, reply}
	}
}

// do decides, checks and applies one command, and repeats it if it had an id.
func (m *machine) do(cmd Command) (Reply, bool) {
	m.before = slices.Collect(m.live.All(0))
	position, status := m.live.Position(), m.status()
	reply, events, err := m.live.Decide(m.now, cmd)
	m.checkDecision(cmd, reply, events, err)
	for _, e := range events {
		if err := m.live.Apply(e); err != nil {
			m.t.Fatalf("%#v led to an event that cannot be applied: %v", cmd, err)
		}
		if err := m.twin.Apply(e); err != nil {
			m.t.Fatalf("twin: %v", err)
		}
	}
	if !reflect.DeepEqual(m.live, m.twin) {
		m.t.Fatalf("%#v: deciding changed the study", cmd)
	}
	if m.live.Position() != position+Position(len(events)) {
		m.t.Fatalf("position %d after %d events at %d", m.live.Position(), len(events), position)
	}
	if _, extended := cmd.(Extend); status == StatusFinished && m.status() != StatusFinished && !extended {
		m.t.Fatalf("the study came back from the dead")
	}
	m.checkState()
	if id := requestID(cmd); err == nil && id != "" {
		if _, isStart := cmd.(Start); !isStart && len(events) > 0 {
			m.requests[id] = sent{cmd, reply}
		}
	}
	return reply, err == nil
}

func (m *machine) status() Status {
	status, _ := m.live.Status()
	return status
}

// checkDecision checks a decision before it is applied.
func (m *machine) checkDecision(cmd Command, reply Reply, events []Event, err error) {
	if err != nil {
		if len(events) > 0 || !reflect.DeepEqual(reply, Reply{}) {
			m.t.Fatalf("%#v: refused with %v, and yet %v", cmd, err, events)
		}
		return
	}
	if again, _, _ := m.live.Decide(m.now, cmd); !reflect.DeepEqual(again, reply) {
		m.t.Fatalf("%#v: decided twice, answered %+v and %+v", cmd, reply, again)
	}
	m.checkAnswer(cmd, reply, events)
	finished := m.status() == StatusFinished
	for _, e := range events {
		switch b := e.Body.(type) {
		case Started:
			if finished || m.status() == StatusPaused {
				m.t.Fatalf("a %v study handed out trial %d", m.status(), b.Trial)
			}
			if b.Trial < len(m.before) && m.before[b.Trial].State != Queued {
				m.t.Fatalf("trial %d was handed out while %s", b.Trial, m.before[b.Trial].State)
			}
		case Enqueued, Added:
			if finished {
				m.t.Fatalf("a finished study took in %#v", b)
			}
		}
	}
	if old, known := m.requests[requestID(cmd)]; known && len(events) > 0 {
		m.checkReuse(old.cmd, cmd)
	}
}

// checkAnswer compares an answer with those that the same request got before. An answer
// to an ask begins with the earlier ones and names no trial twice. Once it was
// complete, it never changes, and repeating the ask has no effect.
func (m *machine) checkAnswer(cmd Command, reply Reply, events []Event) {
	ask, ok := cmd.(Ask)
	if !ok {
		return
	}
	for i, n := range reply.Trials {
		if slices.Contains(reply.Trials[:i], n) {
			m.t.Fatalf("%#v: answered with trial %d twice", ask, n)
		}
	}
	old, known := m.requests[ask.RequestID]
	if !known || !reflect.DeepEqual(old.cmd, cmd) {
		return
	}
	n := min(len(old.reply.Trials), len(reply.Trials))
	if n < len(old.reply.Trials) || !slices.Equal(reply.Trials[:n], old.reply.Trials) || !slices.Equal(reply.Epochs[:n], old.reply.Epochs) {
		m.t.Fatalf("%#v: answered with %+v, before with %+v", ask, reply, old.reply)
	}
	if m.live.Spec().Timeout > 0 {
		return // a clock that goes back ends and begins the study's time repeatedly
	}
	if old.reply.Missing == 0 && (len(events) > 0 || reply.Missing > 0 || len(reply.Trials) > n) {
		m.t.Fatalf("%#v: the answer was complete with %+v, and now %+v", ask, old.reply, reply)
	}
}

// checkReuse checks the second effect of a request id. Only an interrupted ask may have
// one, or a request whose id may be forgotten after a day.
func (m *machine) checkReuse(old, cmd Command) {
	switch old.(type) {
	case Tell, Enqueue, Add:
	case Ask:
		if reflect.DeepEqual(old, cmd) {
			return
		}
	default:
		return
	}
	if _, isStart := cmd.(Start); !isStart {
		m.t.Fatalf("a request id had another effect: %#v after %#v", cmd, old)
	}
}

// checkState checks the state after a command.
func (m *machine) checkState() {
	s := &m.live
	if err := s.Check(); err != nil {
		m.t.Fatal(err)
	}
	made, cost := 0, 0.0
	for n, t := range slices.Collect(s.All(0)) {
		if t.Origin != OriginAdded {
			if made++; t.Outcome.Reason == FailedCancelled {
				made--
			}
			if t.State.Terminal() {
				cost += t.Outcome.Cost
			}
		}
		if t.Expiries > s.spec.MaxRetries+1 || t.Epoch > s.spec.MaxRetries+1 {
			m.t.Fatalf("trial %d was started %d times and expired %d times at %d retries", n, t.Epoch, t.Expiries, s.spec.MaxRetries)
		}
		for _, l := range t.Late {
			cost += l.Outcome.Cost
			if l.Epoch >= t.Epoch {
				m.t.Fatalf("trial %d: late result of epoch %d in epoch %d", n, l.Epoch, t.Epoch)
			}
		}
		if err := s.spec.Space.Validate(t.Config); err != nil {
			m.t.Fatalf("trial %d: %v", n, err)
		}
		m.checkOutcome(t)
		if n < len(m.before) {
			m.checkChange(m.before[n], t)
		}
	}
	if s.spec.MaxTrials > 0 && made > s.spec.MaxTrials {
		m.t.Fatalf("%d trials, %d allowed", made, s.spec.MaxTrials)
	}
	if math.Abs(cost-s.Cost()) > 1e-9 {
		m.t.Fatalf("cost %g, counted %g", s.Cost(), cost)
	}
}

func (m *machine) checkOutcome(t Trial) {
	if t.State != Completed {
		return
	}
	for _, o := range m.live.spec.Objectives {
		metric, ok := t.Outcome.Metric(o.Name)
		if !ok {
			m.t.Fatalf("trial %d completed without %s", t.Number, o.Name)
		}
		for _, v := range metric.Values {
			if math.IsNaN(v) || o.Direction.goodInfinity(v) {
				m.t.Fatalf("trial %d completed with %s = %g", t.Number, o.Name, v)
			}
		}
	}
}

// checkChange allows only the transitions of the diagram in doc.go.
func (m *machine) checkChange(was, is Trial) {
	legal := map[TrialState][]TrialState{
		Queued:  {Queued, Running, Completed, Failed, Infeasible, Pruned},
		Running: {Queued, Running, Completed, Failed, Infeasible, Pruned},
	}
	switch {
	case was.State.Terminal() && !was.provisional():
		if is.State != was.State || !is.Outcome.Equal(was.Outcome) || is.Epoch != was.Epoch {
			m.t.Fatalf("trial %d was %v and is %v", was.Number, was.Outcome, is.Outcome)
		}
	case !was.State.Terminal() && !slices.Contains(legal[was.State], is.State):
		m.t.Fatalf("trial %d went from %s to %s", was.Number, was.State, is.State)
	}
	if is.Epoch < was.Epoch || is.Epoch > was.Epoch+1 || len(is.Reports) < len(was.Reports) || len(is.Late) < len(was.Late) {
		m.t.Fatalf("trial %d went from %+v to %+v", was.Number, was, is)
	}
	if !is.Config.Equal(was.Config) || is.Origin != was.Origin || is.Created != was.Created {
		m.t.Fatalf("trial %d is another: %+v, %+v", was.Number, was, is)
	}
}

// command draws a new command, or sometimes repeats an earlier one.
func (m *machine) command() Command {
	t := m.t
	if len(m.requests) > 0 && rapid.IntRange(0, 9).Draw(t, "retry") == 0 {
		ids := slices.Sorted(func(yield func(string) bool) {
			for id := range m.requests {
				if !yield(id) {
					return
				}
			}
		})
		return m.requests[rapid.SampledFrom(ids).Draw(t, "id")].cmd
	}
	id := rapid.SampledFrom([]string{"", "", "a", "b", "c", "d"}).Draw(t, "request id")
	trial := rapid.IntRange(0, max(0, m.live.Trials())).Draw(t, "trial")
	epoch := rapid.IntRange(0, 3).Draw(t, "epoch")
	switch rapid.IntRange(0, 13).Draw(t, "command") {
	case 0, 1, 2:
		return Ask{
			RequestID: id, Count: rapid.IntRange(0, 3).Draw(t, "count"), New: rapid.Bool().Draw(t, "new"),
			Worker: rapid.SampledFrom([]string{"", "v", "w"}).Draw(t, "worker"),
		}
	case 3, 4:
		return Tell{RequestID: id, Trial: trial, Epoch: epoch, Outcome: m.outcome()}
	case 5:
		return Expire{trial, max(epoch, 1)}
	case 6:
		return ReportValues{id, trial, epoch, []Report{{Step: int64(rapid.IntRange(-1, 2).Draw(t, "step")), Values: []NamedValue{{"loss", m.number()}}}}}
	case 7:
		return Heartbeat{trial, epoch, 0}
	case 8:
		return Enqueue{id, m.config(), nil}
	case 9:
		return Add{id, m.config(), nil, m.outcome(), nil}
	case 10:
		return rapid.SampledFrom([]Command{Pause{id}, Resume{id}}).Draw(t, "switch")
	case 11:
		return rapid.SampledFrom([]Command{Resume{id}, SetAttributes{id, trial - 1, Attributes{"k": "v"}}, Finish{id, FinishedUser, ""}, Finish{id, FinishedTime, ""}}).Draw(t, "rare")
	case 12:
		return Extend{
			id, rapid.IntRange(-1, 9).Draw(t, "trials"), rapid.SampledFrom([]time.Duration{-1, 0, 0, time.Hour, 30 * time.Hour}).Draw(t, "time"),
			rapid.SampledFrom([]float64{0, 0, 2, 9, math.NaN(), math.Inf(1)}).Draw(t, "cost"), rapid.Bool().Draw(t, "more"),
		}
	default:
		seen := Position(rapid.IntRange(0, 40).Draw(t, "seen"))
		return Anchor{Seen: seen, Effective: seen + Position(rapid.IntRange(0, 9).Draw(t, "ahead"))}
	}
}

func (m *machine) config() space.Config {
	if rapid.IntRange(0, 9).Draw(m.t, "deep") == 0 {
		return space.NewConfig(space.Assignment{Name: "x", Value: space.Float(0)}, space.Assignment{Name: "kind", Value: space.String("b")}, space.Assignment{Name: "depth", Value: space.Int(3)})
	}
	return config(rapid.Float64Range(0, 1).Draw(m.t, "x"))
}

func (m *machine) number() float64 {
	return rapid.SampledFrom([]float64{0.5, 0.25, 0, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, 5e-324}).Draw(m.t, "number")
}

func (m *machine) outcome() Outcome {
	o := Outcome{
		State:  rapid.SampledFrom([]TrialState{Completed, Completed, Failed, Infeasible, Pruned, Running}).Draw(m.t, "outcome"),
		Reason: rapid.SampledFrom([]FailReason{FailedNone, FailedNone, FailedCancelled, FailedExpired}).Draw(m.t, "reason"),
		Cost:   rapid.SampledFrom([]float64{0, 1, 2}).Draw(m.t, "cost"),
	}
	for _, name := range []string{"loss", "acc", "extra"}[:rapid.IntRange(0, 3).Draw(m.t, "metrics")] {
		metric := Metric{Name: name, Values: []float64{m.number()}}
		if rapid.Bool().Draw(m.t, "replicate") {
			metric.Values = append(metric.Values, 0.125)
		}
		o.Metrics = append(o.Metrics, metric)
	}
	return o
}

// TestApplyRefusesWithoutTrace applies events in an order that no commands caused. The
// study refuses invalid events, does not change, and never panics.
func TestApplyRefusesWithoutTrace(t *testing.T) {
	sp := parseSpace(t)
	rapid.Check(t, func(t *rapid.T) {
		var s, twin Study
		events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Event { return anyEvent(t, sp) }), 1, 40).Draw(t, "events")
		for _, e := range append([]Event{{Time: epoch0, Body: Created{Spec{Space: sp, MaxRetries: 1}}}}, events...) {
			if err := s.Apply(e); err != nil {
				if !reflect.DeepEqual(s, twin) {
					t.Fatalf("%#v was refused (%v) and left a trace", e.Body, err)
				}
				continue
			}
			if err := twin.Apply(e); err != nil {
				t.Fatal(err)
			}
			if err := s.Check(); err != nil {
				t.Fatalf("%#v: %v", e.Body, err)
			}
		}
	})
}

func anyEvent(t *rapid.T, sp *space.Space) Event {
	n, epoch := rapid.IntRange(-2, 4).Draw(t, "trial"), rapid.IntRange(-1, 3).Draw(t, "epoch")
	outcome := Outcome{State: TrialState(rapid.IntRange(0, 7).Draw(t, "state"))}
	if outcome.State == Failed {
		outcome.Reason = FailReason(rapid.IntRange(0, 4).Draw(t, "reason"))
	}
	var suggestion *Suggestion
	if rapid.Bool().Draw(t, "new") {
		suggestion = &Suggestion{Config: config(0.5)}
	}
	body := rapid.SampledFrom([]Body{
		Created{Spec{Space: sp}},
		Paused{},
		Resumed{},
		Finished{Reason: FinishedUser},
		Raised{MaxTrials: n, Timeout: time.Duration(n), MaxCost: float64(n)},
		Enqueued{n, config(0), nil},
		Started{n, epoch, "w", epoch0, suggestion},
		Started{n, epoch, "w", epoch0, suggestion},
		Extended{n, epoch, epoch0},
		Reported{n, epoch, []Report{{Epoch: 1}}},
		Expired{n, epoch, rapid.Bool().Draw(t, "requeued")},
		Told{n, epoch, outcome},
		ToldLate{n, epoch, outcome},
		Added{n, config(0), nil, outcome, nil},
		Attributed{n, Attributes{"a": ""}},
		Anchored{},
		nil,
	}).Draw(t, "body")
	return Event{Time: epoch0, Request: Request{ID: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "id")}, Body: body}
}

func TestReplayStopsAtDamage(t *testing.T) {
	h := newHarness(t, nil)
	h.ask(Ask{Count: 3})
	s, err := Replay(slices.Values(h.log))
	if err != nil || !reflect.DeepEqual(*s, h.s) {
		t.Errorf("replay: %v", err)
	}
	if _, err := Replay(slices.Values(h.log[1:])); !errors.Is(err, ErrNotCreated) {
		t.Errorf("replay without the beginning: %v", err)
	}
	if _, err := Replay(slices.Values(append(slices.Clone(h.log), h.log[1]))); err == nil {
		t.Error("replay of an event that happened twice")
	} else if got := err.Error(); got != "event 5 (study.Started): the next trial is 3, not 0" {
		t.Errorf("replay of an event that happened twice: %v", err)
	}
}
