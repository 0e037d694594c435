package view

import (
	"cmp"
	"fmt"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Digest is what lists show of a study beyond its state. It follows the events of the
// study, so that a list needs neither its trials nor its model.
type Digest struct {
	objectives []study.Objective
	patience   int
	target     *float64
	violation  func(study.Outcome) float64 // of the constraints
	best       tuner.Measured              // of the trials that break the constraints least
	least      float64                     // their violation
	idle       int                         // trials without a better one, since the last extension
	reached    bool                        // the target, since then
	told       time.Time                   // when the last outcome was told
	recent     recent
}

// Observe notes the next event.
func (d *Digest) Observe(e study.Event) {
	switch b := e.Body.(type) {
	case study.Created:
		*d = Digest{objectives: b.Spec.Objectives, patience: b.Spec.Patience, target: b.Spec.Target, violation: propose.Violation(b.Spec.Proposer)}
	case study.Raised:
		d.idle, d.reached = 0, false
	case study.Told:
		d.told = e.Time
		d.recent.add(e.Time)
		if b.Outcome.State != study.Failed {
			d.idle++
		}
		d.measure(b.Trial, b.Outcome)
	case study.Added:
		d.told = e.Time
		d.measure(b.Trial, b.Outcome)
	case study.ToldLate:
		d.told = e.Time
	}
}

// measure compares a completed trial with the best so far. Outcomes of completed trials
// never change, so the best never has to be searched again. A study of several
// objectives has no best trial.
func (d *Digest) measure(trial int, o study.Outcome) {
	if o.State != study.Completed || len(d.objectives) != 1 {
		return
	}
	m, _ := o.Metric(d.objectives[0].Name)
	y, broken := m.Mean(), d.violation(o)
	if d.best.Values != nil {
		c := cmp.Compare(broken, d.least)
		if c == 0 {
			c = cmp.Or(d.objectives[0].Direction.Compare(y, d.best.Values[0]), cmp.Compare(trial, d.best.Trial))
		}
		if c >= 0 {
			return
		}
	}
	d.best, d.least, d.idle = tuner.Measured{Trial: trial, Values: []float64{y}}, broken, 0
	d.reached = d.target != nil && broken == 0 && d.objectives[0].Direction.Compare(y, *d.target) <= 0
}

// Stop returns the command that finishes the study because of its target or its patience. ok
// is false if there is no such reason.
func (d *Digest) Stop() (c study.Finish, ok bool) {
	switch {
	case d.reached:
		return study.Finish{Reason: study.FinishedTarget, Detail: fmt.Sprintf("trial %d has %g, and the target is %g", d.best.Trial, d.best.Values[0], *d.target)}, true
	case d.patience > 0 && d.idle >= d.patience && d.best.Values != nil:
		return study.Finish{Reason: study.FinishedPatience, Detail: fmt.Sprintf("no trial was better than trial %d in the last %d", d.best.Trial, d.idle)}, true
	}
	return c, false
}

// show adds the digest to a study.
func (d *Digest) show(v *tuner.Study, now time.Time) {
	v.BestMeasured, v.LastTold, v.ToldLastHour = d.best, d.told, d.recent.lastHour(now)
}

// recent counts outcomes by minute for one hour.
type recent struct {
	minute int64 // since the epoch, of the newest count
	counts [60]uint32
}

func (r *recent) add(t time.Time) {
	m := t.Unix() / 60
	for ; r.minute < m; r.minute++ { // forget the minutes in between
		if m-r.minute > int64(len(r.counts)) {
			r.minute, r.counts = m, [60]uint32{}
			break
		}
		r.counts[(r.minute+1)%60] = 0
	}
	if r.minute-m < int64(len(r.counts)) { // the wall clock may have gone back
		r.counts[m%60]++
	}
}

// lastHour returns the outcomes of the minute of now and of the 59 before.
func (r *recent) lastHour(now time.Time) (n int) {
	last := now.Unix() / 60
	for m := max(last-59, r.minute-59); m <= min(last, r.minute); m++ {
		n += int(r.counts[m%60])
	}
	return n
}

// maxTouched is how many of the last events a study in memory knows the trials of.
const maxTouched = 20_000

// Touched has the trials of the last events of a study, so that a page that follows it
// need not read its log again.
type Touched struct {
	position study.Position // of the last event
	trials   []int32        // of the event at each position, by its remainder, or NoTrial
}

// Observe notes the next event.
func (t *Touched) Observe(e study.Event) {
	n, ok := e.Trial()
	if !ok {
		n = tuner.NoTrial
	}
	if i := int(t.position % maxTouched); i == len(t.trials) {
		t.trials = append(t.trials, int32(n))
	} else {
		t.trials[i] = int32(n)
	}
	t.position++
}

// Between returns the trials of the events after one position and up to another. A trial
// may be there several times. ok is false if not all of these events are known.
func (t *Touched) Between(after, upTo study.Position) (trials []int32, ok bool) {
	if after > upTo || upTo > t.position || t.position-after > study.Position(len(t.trials)) {
		return nil, false
	}
	for p := after; p < upTo; p++ {
		if n := t.trials[p%maxTouched]; n != tuner.NoTrial {
			trials = append(trials, n)
		}
	}
	return trials, true
}
