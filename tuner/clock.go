package tuner

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/bkbtuner/bkb/internal/planted"
	"github.com/bkbtuner/bkb/tuner/study"
)

// clock ends what is over by the time: leases, and a study whose timeout has passed.
//
// In a long-lived Tuner, leases go by the monotonic clock (see [leases]); otherwise by
// the stored deadlines and the wall clock. A study's timeout always goes by the wall
// clock.
//
// The log's lock guards looked; waits may be read at any time.
type clock struct {
	name      string
	longLived bool
	wall      func() time.Time
	monotonic func() time.Time
	logger    *slog.Logger
	looked    time.Time   // when settle last looked at the monotonic clock
	waits     atomic.Bool // for a lease or the study's end
}

// ledger is what the clock needs of the log. The log's lock is held.
type ledger interface {
	current() (*live, error)
	decide(ctx context.Context, cmd study.Command) (study.Reply, error)
}

// maxPause is the longest time between two looks at the clock in a process that runs.
// If more has passed the process was stopped, and so were its workers' heartbeats.
const maxPause = 5 * time.Second

func newClock(name string, o Options) *clock {
	return &clock{name: name, longLived: o.LongLived, wall: o.Now, monotonic: time.Now, logger: o.Logger}
}

// settle ends the leases that are over, and the study if its time is, in nobody's name;
// the log's lock is held.
func (c *clock) settle(l ledger) {
	ctx := context.Background()
	v, err := l.current()
	if err != nil {
		return
	}
	for _, e := range c.due(v) {
		if _, err := l.decide(ctx, e); err != nil {
			c.logger.Error("a lease could not be ended", "study", c.name, "trial", e.Trial, "error", err)
		}
	}
	if status, _ := v.study.Status(); status != study.StatusFinished && v.study.TimeOver(c.wall()) {
		if _, err := l.decide(ctx, study.Finish{Reason: study.FinishedTime}); err != nil {
			c.logger.Error("the study could not be finished", "study", c.name, "error", err)
		}
	}
}

// due returns the commands that end the leases which are over. If the process was
// stopped since the last look, every lease is longer by that pause.
func (c *clock) due(v *live) (due []study.Expire) {
	if c.longLived && !planted.Is(planted.LeaseByWallClock) {
		now := c.monotonic()
		if pause := now.Sub(c.looked); pause > maxPause && !c.looked.IsZero() {
			v.leases.shift(pause)
		}
		c.looked = now
		return v.leases.due(now)
	}
	for _, l := range v.study.Overdue(c.wall()) {
		due = append(due, study.Expire{Trial: l.Trial, Epoch: l.Epoch})
	}
	return due
}

// tick settles, and has the heartbeats committed that were decided since the last tick.
func (c *clock) tick(l *eventLog) {
	l.stage(func(v *live) error {
		c.settle(l)
		c.waits.Store(v.waits())
		return nil
	})
}
