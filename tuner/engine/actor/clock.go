package actor

import (
	"context"
	"time"

	"github.com/bkbtuner/bkb/tuner/study"
)

// The clock is the part of the log that ends leases whose time is over and studies whose timeout
// has passed.
//
// A long-lived engine measures leases by the monotonic clock (see [leases]). Otherwise
// leases end at their stored deadlines by the wall clock. A study's timeout always uses
// the wall clock.

// maxPause is the longest time between two ticks in a running process. A longer time
// means that the process was stopped, so that it missed its workers' heartbeats.
const maxPause = 5 * time.Second

// settle ends overdue leases, and the study if its timeout has passed. It does so
// without a caller's name. The log's lock is held.
func (l *eventLog) settle() {
	v, err := l.current()
	if err != nil {
		return
	}
	for _, e := range l.due(v) {
		if _, err := l.decide(context.Background(), e); err != nil {
			l.env.Logger.Error("overdue lease not ended", "study", l.name, "trial", e.Trial, "error", err)
		}
	}
	l.stop(v)
}

// stop finishes the study if its timeout has passed, its target is reached or its patience is
// over. The log's lock is held.
func (l *eventLog) stop(v *state) {
	finish, over := v.digest.Stop()
	if v.study.TimeOver(l.env.Now()) {
		finish, over = study.Finish{Reason: study.FinishedTime}, true
	}
	if status, _ := v.study.Status(); status == study.StatusFinished || !over {
		return
	}
	if _, err := l.decide(context.Background(), finish); err != nil {
		l.env.Logger.Error("study not finished", "study", l.name, "reason", finish.Reason, "error", err)
	}
}

// due returns the commands that end overdue leases. If the process was stopped since
// the last tick, it first extends every lease by the pause.
func (l *eventLog) due(v *state) (due []study.Expire) {
	if l.env.LongLived {
		now := l.monotonic()
		if pause := now.Sub(l.looked); pause > maxPause && !l.looked.IsZero() {
			v.leases.shift(pause)
		}
		l.looked = now
		return v.leases.due(now)
	}
	for _, o := range v.study.Overdue(l.env.Now()) {
		due = append(due, study.Expire{Trial: o.Trial, Epoch: o.Epoch})
	}
	return due
}

// tick settles and commits the heartbeats decided since the last tick.
func (l *eventLog) tick() {
	l.stage(func(v *state) error {
		l.settle()
		l.waits.Store(v.waits())
		return nil
	})
}
