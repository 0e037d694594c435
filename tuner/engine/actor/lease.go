package actor

import (
	"slices"
	"time"

	"github.com/bkbtuner/bkb/tuner/study"
)

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
