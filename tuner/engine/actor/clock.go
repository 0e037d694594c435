package actor

import (
	"context"
	"slices"
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

// leases holds the leases of a study's running trials, by this process's monotonic
// clock.
type leases map[int]*lease

type lease struct {
	epoch    int
	length   time.Duration
	deadline time.Time // monotonic
	stored   time.Time // by the wall clock of the event
}

// observe applies an event that happened now.
func (l leases) observe(e study.Event, now time.Time) {
	switch b := e.Body.(type) {
	case study.Started:
		l.hold(b.Trial, b.Epoch, b.Deadline, b.Deadline.Sub(e.Time), now)
	case study.Extended:
		length := b.Deadline.Sub(e.Time)
		if held := l[b.Trial]; held != nil && held.stored.Equal(b.Deadline) {
			// The stored deadline was later, so this heartbeat did not move it. The
			// time left is not the lease's length, because the wall clock may have gone
			// back.
			length = held.length
		}
		l.hold(b.Trial, b.Epoch, b.Deadline, length, now)
	case study.Told:
		delete(l, b.Trial)
	case study.Expired:
		delete(l, b.Trial)
	}
}

func (l leases) hold(trial, epoch int, stored time.Time, length time.Duration, now time.Time) {
	length = max(length, 0) // the wall clock may have stepped
	l[trial] = &lease{epoch, length, now.Add(length), stored}
}

// grace restarts every lease at its full length plus up to a tenth. The extra time
// differs by trial, so that they do not all expire at once.
func (l leases) grace(now time.Time) {
	for trial, held := range l {
		spread := held.length / 10 * time.Duration(trial%16) / 16
		held.deadline = now.Add(held.length + spread)
	}
}

// shift extends all leases by the time for which the process was stopped.
func (l leases) shift(d time.Duration) {
	for _, held := range l {
		held.deadline = held.deadline.Add(d)
	}
}

// due returns the commands that end overdue leases, ordered by trial.
func (l leases) due(now time.Time) []study.Expire {
	var due []study.Expire
	for trial, held := range l {
		if !held.deadline.After(now) {
			due = append(due, study.Expire{Trial: trial, Epoch: held.epoch})
		}
	}
	slices.SortFunc(due, func(a, b study.Expire) int { return a.Trial - b.Trial })
	return due
}
