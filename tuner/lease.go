package tuner

import (
	"slices"
	"time"

	"github.com/bkbtuner/bkb/internal/planted"
	"github.com/bkbtuner/bkb/tuner/study"
)

// leases are the running trials of a study by this process's monotonic clock.
type leases map[int]*lease

type lease struct {
	epoch    int
	length   time.Duration
	deadline time.Time // monotonic
	stored   time.Time // by the wall clock of the event
}

// observe keeps up with an event that happened now.
func (l leases) observe(e study.Event, now time.Time) {
	switch b := e.Body.(type) {
	case study.Started:
		l.hold(b.Trial, b.Epoch, b.Deadline, b.Deadline.Sub(e.Time), now)
	case study.Extended:
		if planted.Is(planted.HeartbeatLost) {
			return
		}
		length := b.Deadline.Sub(e.Time)
		if held := l[b.Trial]; held != nil && held.stored.Equal(b.Deadline) && !planted.Is(planted.ClockBack) {
			// The stored deadline was the later one. How far off it is says nothing: the
			// wall clock may have gone back.
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

// grace gives every lease its whole length from now on, and up to a tenth more,
// spread by trial so that they do not all expire at once.
func (l leases) grace(now time.Time) {
	for trial, held := range l {
		spread := held.length / 10 * time.Duration(trial%16) / 16
		held.deadline = now.Add(held.length + spread)
	}
}

// shift moves all deadlines: the process was stopped for so long.
func (l leases) shift(d time.Duration) {
	for _, held := range l {
		held.deadline = held.deadline.Add(d)
	}
}

// due returns what to do about the leases that are over, by trial.
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

// maxPause is how long nobody may have looked at the clock before we take it
// that the process was stopped meanwhile, and the workers' signs of life with it.
const maxPause = 5 * time.Second

// settle does what the clock asks for: expires leases and ends a study whose
// time is over; d.mu is held.
func (d *desk) settle() {
	if d.broken != nil {
		return
	}
	var due []study.Expire
	if now := time.Now(); d.t.options.LongLived && !planted.Is(planted.LeaseByWallClock) {
		if pause := now.Sub(d.looked); pause > maxPause && !d.looked.IsZero() {
			d.leases.shift(pause)
		}
		d.looked = now
		due = d.leases.due(now)
	} else {
		for _, l := range d.s.Overdue(d.t.options.Now()) {
			due = append(due, study.Expire{Trial: l.Trial, Epoch: l.Epoch})
		}
	}
	for _, c := range due {
		if _, err := d.decide(c); err != nil {
			d.t.options.Logger.Error("a lease could not be ended", "study", d.name, "trial", c.Trial, "error", err)
		}
	}
	if status, _ := d.s.Status(); status != study.StatusFinished && d.s.TimeOver(d.t.options.Now()) {
		if _, err := d.decide(study.Finish{Reason: study.FinishedTime}); err != nil {
			d.t.options.Logger.Error("the study could not be finished", "study", d.name, "error", err)
		}
	}
}

// tick is called every second on a long-lived desk.
func (d *desk) tick() {
	select {
	case <-d.loaded:
	default:
		return
	}
	if d.loadErr != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settle()
	status, _ := d.s.Status()
	d.waits.Store(len(d.leases) > 0 || status != study.StatusFinished && d.s.Spec().Timeout > 0)
	d.barrier() // heartbeats are stored no later than this
}
