package actor

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/study"
)

// pretend is a log that stores nothing, whose times the test sets.
type pretend struct {
	*eventLog
	*state
	t               *testing.T
	wall, monotonic time.Time
}

// pass advances both clocks second by second, and settles after each.
func (p *pretend) pass(d time.Duration) {
	for range d / time.Second {
		p.wall, p.monotonic = p.wall.Add(time.Second), p.monotonic.Add(time.Second)
		p.settle()
	}
}

func (p *pretend) want(when string, state study.TrialState) {
	p.t.Helper()
	if trial, _ := p.study.Trial(0); trial.State != state {
		p.t.Fatalf("%s: the trial is %v, want %v", when, trial.State, state)
	}
}

// newPretend returns a log with a study of one running trial. The trial has a lease
// of a minute and one retry left.
func newPretend(t *testing.T, longLived bool, change func(*study.Spec)) *pretend {
	t.Helper()
	p := &pretend{state: &state{study: new(study.Study), leases: make(leases)}, t: t, wall: time.Unix(1e9, 0).UTC(), monotonic: time.Unix(5e8, 0)}
	p.eventLog = newLog(t.Context(), "s", nil, &Environment{LongLived: longLived, Now: func() time.Time { return p.wall }, Logger: slog.New(slog.DiscardHandler)})
	p.eventLog.monotonic, p.eventLog.state = func() time.Time { return p.monotonic }, p.state
	spec := testSpec(t, func(s *study.Spec) {
		if s.Lease = time.Minute; change != nil {
			change(s)
		}
	})
	config, err := spec.Space.Decode([]float64{0.5, 0.5, 0.5})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []study.Command{study.Create{Spec: spec}, study.Enqueue{Config: config}, study.Ask{Count: 1}} {
		if _, err := p.decide(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	p.settle()
	p.want("started", study.Running)
	return p
}

// TestClockEndsLeases checks that a lease ends after a minute, unless heartbeats come.
func TestClockEndsLeases(t *testing.T) {
	for _, longLived := range []bool{false, true} {
		p := newPretend(t, longLived, nil)
		p.pass(40 * time.Second)
		if _, err := p.decide(t.Context(), study.Heartbeat{Trial: 0}); err != nil {
			t.Fatal(err)
		}
		p.pass(59 * time.Second)
		p.want("before the deadline", study.Running)
		if !p.state.waits() {
			t.Error("the clock does not wait for a lease")
		}
		p.pass(time.Second)
		p.want("at the deadline", study.Queued)
		if p.state.waits() {
			t.Error("the clock waits for nothing")
		}
	}
}

// TestClockOfALongLivedService checks that steps of the wall clock end no lease, and
// that a stopped process extends all leases by its pause.
func TestClockOfALongLivedService(t *testing.T) {
	p := newPretend(t, true, nil)
	p.wall = p.wall.Add(24 * time.Hour)
	p.pass(20 * time.Second)
	p.wall = p.wall.Add(-48 * time.Hour)
	p.pass(20 * time.Second)
	p.want("the wall clock was set", study.Running)
	p.monotonic = p.monotonic.Add(time.Hour)
	p.pass(20 * time.Second) // the first second counts as pause too
	p.want("the process was stopped", study.Running)
	p.pass(time.Second)
	p.want("a minute without the pause", study.Queued)
}

// TestClockAfterLoading checks that the leases of a study just read begin anew.
func TestClockAfterLoading(t *testing.T) {
	p := newPretend(t, true, nil)
	p.pass(50 * time.Second)
	p.leases.grace(p.monotonic)
	p.pass(59 * time.Second)
	p.want("within the grace", study.Running)
	p.pass(time.Second)
	p.want("after it", study.Queued)
}

// TestClockEndsTheStudy checks that a study ends at its timeout, by the wall clock.
func TestClockEndsTheStudy(t *testing.T) {
	for _, longLived := range []bool{false, true} {
		p := newPretend(t, longLived, func(s *study.Spec) { s.Lease, s.Timeout = time.Hour, time.Minute })
		p.pass(59 * time.Second)
		if status, _ := p.study.Status(); status != study.StatusActive || !p.state.waits() {
			t.Errorf("before the timeout: %v, waits %v", status, p.state.waits())
		}
		p.pass(2 * time.Second)
		if status, how := p.study.Status(); status != study.StatusFinished || how.Reason != study.FinishedTime {
			t.Errorf("after the timeout: %v, %+v", status, how)
		}
	}
}

// TestClockOfABrokenLog checks that the clock stands still while the log decides
// nothing.
func TestClockOfABrokenLog(t *testing.T) {
	p := newPretend(t, true, nil)
	p.broken = errors.New("not now")
	p.pass(2 * time.Minute)
	p.want("broken", study.Running)
	p.broken = nil
	p.pass(time.Second) // the two minutes count as a pause
	p.want("whole again", study.Running)
	p.pass(time.Minute)
	p.want("a minute later", study.Queued)
}
