package actor

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/bkbtuner/bkb/tuner/study"
)

// clock ends leases whose time is over and studies whose timeout has passed.
//
// A long-lived engine measures leases by the monotonic clock (see [leases]). Otherwise
// leases end at their stored deadlines by the wall clock. A study's timeout always uses
// the wall clock.
//
// The log's lock guards looked. Reading waits needs no lock.
type clock struct {
	name      string
	longLived bool
	wall      func() time.Time
	monotonic func() time.Time
	logger    *slog.Logger
	looked    time.Time   // when settle last read the monotonic clock
	waits     atomic.Bool // whether a lease or timeout is still to end
}

// ledger is the part of the log that the clock uses. The log's lock is held.
type ledger interface {
	current() (*state, error)
	decide(ctx context.Context, cmd study.Command) (study.Reply, error)
}

// maxPause is the longest time between two ticks in a running process. A longer time
// means that the process was stopped, so that it missed its workers' heartbeats.
const maxPause = 5 * time.Second

func newClock(name string, env *Environment) *clock {
	return &clock{name: name, longLived: env.LongLived, wall: env.Now, monotonic: time.Now, logger: env.Logger}
}

// settle ends overdue leases, and the study if its timeout has passed. It does so
// without a caller's name. The log's lock is held.
func (c *clock) settle(l ledger) {
	ctx := context.Background()
	v, err := l.current()
	if err != nil {
		return
	}
	for _, e := range c.due(v) {
		if _, err := l.decide(ctx, e); err != nil {
			c.logger.Error("overdue lease not ended", "study", c.name, "trial", e.Trial, "error", err)
		}
	}
	c.stop(ctx, l, v)
}

// stop finishes the study if its timeout has passed, its target is reached or its patience is
// over. The log's lock is held.
func (c *clock) stop(ctx context.Context, l ledger, v *state) {
	finish, over := v.digest.Stop()
	if v.study.TimeOver(c.wall()) {
		finish, over = study.Finish{Reason: study.FinishedTime}, true
	}
	if status, _ := v.study.Status(); status == study.StatusFinished || !over {
		return
	}
	if _, err := l.decide(ctx, finish); err != nil {
		c.logger.Error("study not finished", "study", c.name, "reason", finish.Reason, "error", err)
	}
}

// due returns the commands that end overdue leases. If the process was stopped since
// the last tick, it first extends every lease by the pause.
func (c *clock) due(v *state) (due []study.Expire) {
	if c.longLived {
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

// tick settles the clock and commits the heartbeats decided since the last tick.
func (c *clock) tick(l *eventLog) {
	l.stage(func(v *state) error {
		c.settle(l)
		c.waits.Store(v.waits())
		return nil
	})
}
